"""Traces as tables of words: which steps and cells fit on a page, and what each column shows.

Text, LaTeX, web pages and pictures all render the same table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from nram.pictures.trace_records import Trace

LEAST_CELLS = 4  # are shown however narrow the page is
GAP = "..."
CAPTIONS = ("", "memory, by address", "registers", "", "", "")  # of the groups of a table
KEY = {
    "read": "read by this step",
    "written": "written by the step before",
    "changed": "changed",
    "asked": "output cell",
}
"""The marks, and what they mean."""

Marks = tuple[str, ...]


@dataclass(frozen=True)
class Room:
    """The width of all columns of the memory together, of one of them, and of one that stands for a gap."""

    total: int
    cell: int = 1
    gap: int = 1


@dataclass(frozen=True)
class Column:
    """A heading, a word for each line below it, and the marks of each word.

    'changed' and 'written' are about the step before the line, 'read' is about the step of the line.
    """

    kind: Literal["step", "cell", "gap", "register", "access", "row"]
    heading: str
    words: tuple[str, ...]
    marks: tuple[Marks, ...] = ()
    """Empty if no word is marked."""
    asked: bool = False
    """Whether it is an output cell."""

    @property
    def all_words(self) -> tuple[str, ...]:
        return (self.heading, *self.words)

    @property
    def width(self) -> int:
        return max(map(len, self.all_words))

    def marks_of(self, line: int) -> Marks:
        return self.marks[line] if self.marks else ()


@dataclass(frozen=True)
class TraceTable:
    """The shown part of a trace. Groups of columns: step, memory, registers, READ, WRITE, row."""

    groups: tuple[tuple[Column, ...], ...]
    left_out: list[int]
    """How many steps are left out after each line but the last, which is the end of the run."""
    note: str
    """What is left out, in words; empty if nothing is."""

    @property
    def columns(self) -> list[Column]:
        return [column for group in self.groups for column in group]


def tabulate(trace: Trace, room: Room | None, most_steps: int | None) -> TraceTable:
    """The first and the last steps, and first of all the cells that they touch; None means all."""
    count, size = len(trace.steps), len(trace.start)
    shown = shown_steps(count, most_steps, trace.idle_from)
    cells = tuple(range(size))
    if room is not None:
        cells = cells_that_fit(size, _most_telling(trace, shown, room.total // room.cell), room)
    steps = [trace.steps[index] for index in shown]
    wanted = {*shown, count}
    memories = [[memory[cell] for cell in cells] for index, memory in enumerate(trace.memories()) if index in wanted]
    registers = [*(step.registers for step in steps), trace.ending.registers]
    reads = [*({access.pointer for access in step.reads} for step in steps), set()]
    # A line shows what the step before it wrote, not what the step itself will write.
    writes = [{access.pointer for access in trace.steps[i - 1].writes} if i else set() for i in (*shown, count)]

    def cell_column(position: int | None) -> Column:
        if position is None:
            return Column("gap", GAP, (GAP,) * len(memories))
        cell = cells[position]
        values = [memory[position] for memory in memories]
        marks = [
            (*changed, *["written"] * (cell in written), *["read"] * (cell in read))
            for changed, read, written in zip(_changes(values), reads, writes, strict=True)
        ]
        return Column("cell", str(cell), _words(values), tuple(marks), asked=cell in trace.output_cells)

    groups = (
        (Column("step", "step", _words([*(step.number for step in steps), "end"])),),
        tuple(map(cell_column, columns_with_gaps(cells, size))),
        tuple(
            Column("register", name, _words(values), _changes(values))
            for name, values in zip(trace.program.registers, zip(*registers, strict=True), strict=True)
        ),
        (Column("access", "READ", _words([*(step.reads_in_words for step in steps), ""])),),
        (Column("access", "WRITE", _words([*(step.writes_in_words for step in steps), ""])),),
        (Column("row", trace.row_heading, _words([*map(trace.row_in_words, steps), ""])),),
    )
    left_out = gaps_after(shown, count)
    return TraceTable(groups, left_out, note_of(size - len(cells), size, sum(left_out), count))


def _words(values: Iterable[object]) -> tuple[str, ...]:
    return tuple(map(str, values))


def _changes(values: Sequence[int]) -> tuple[Marks, ...]:
    return tuple(("changed",) if i and value != values[i - 1] else () for i, value in enumerate(values))


# ---- what fits


def shown_steps(count: int, most: int | None, idle_from: int | None = None) -> list[int]:
    """The indices of the steps to show: the first and the last; of idle ones at the end only the first and the last."""
    if most is None or count <= most:
        return list(range(count))
    if idle_from is not None and idle_from < count:
        return [*shown_steps(idle_from, most), count - 1]
    first = (most + 1) // 2
    return [*range(first), *range(count - (most - first), count)]


def gaps_after(shown: Sequence[int], count: int) -> list[int]:
    """How many of `count` steps are left out after each shown one."""
    return [following - index - 1 for index, following in zip(shown, [*shown[1:], count], strict=False)]


def note_of(cells: int, all_cells: int, steps: int, all_steps: int) -> str:
    """What is left out, in words; empty if nothing is."""
    parts = [f"{cells} of {all_cells} cells"] if cells else []
    parts += [f"{steps} of {all_steps} steps"] if steps else []
    return f"left out: {' and '.join(parts)}" if parts else ""


def cells_that_fit(size: int, ranking: Iterable[int], room: Room) -> tuple[int, ...]:
    """All cells if there is room, otherwise those that come first in the ranking, by address."""
    if size * room.cell <= room.total:
        return tuple(range(size))
    chosen: set[int] = set()
    runs = 0
    for cell in ranking:
        grown = runs + 1 - (cell - 1 in chosen) - (cell + 1 in chosen)
        ends = (cell == 0 or 0 in chosen) + (cell == size - 1 or size - 1 in chosen)
        needed = (len(chosen) + 1) * room.cell + (grown + 1 - ends) * room.gap
        if needed <= room.total or len(chosen) < LEAST_CELLS:
            chosen.add(cell)
            runs = grown
    return tuple(sorted(chosen))


def columns_with_gaps(cells: Sequence[int], size: int) -> list[int | None]:
    """Positions among the shown cells, with None where cells are left out."""
    columns: list[int | None] = []
    before = -1
    for position, cell in enumerate(cells):
        columns += [position] if cell == before + 1 else [None, position]
        before = cell
    return columns if before + 1 == size else [*columns, None]


def _most_telling(trace: Trace, shown: Sequence[int], spare: int) -> list[int]:
    """Cells touched in the shown steps, from both ends of the run inwards; then output cells; then the first."""
    cells: dict[int, None] = {}
    for i in range(len(shown)):
        step = trace.steps[shown[i // 2] if i % 2 == 0 else shown[-1 - i // 2]]
        cells.update(dict.fromkeys(access.pointer for access in (*step.writes, *step.reads)))
    cells.update(dict.fromkeys(sorted(trace.output_cells)[:spare]))
    cells.update(dict.fromkeys(range(min(spare + LEAST_CELLS, len(trace.start)))))
    return list(cells)


# ---- as text


def table_lines(groups: Sequence[Sequence[Column]], left_out: Sequence[int]) -> list[str]:
    """The table as text: a line for each step, with the steps left out after it, and the other lines below a rule."""
    blocks = [_aligned(group) for group in groups]
    heading, *lines = [" | ".join(parts).rstrip() for parts in zip(*blocks, strict=True)]
    rule = "-+-".join("-" * len(block[0]) for block in blocks)
    text = [heading, rule]
    for line, count in zip(lines, left_out, strict=False):
        text.append(line)
        if count:
            text.append(f"{GAP:>{len(blocks[0][0])}} | {count} step{'' if count == 1 else 's'}")
    return [*text, rule, *lines[len(left_out) :]]


def _aligned(group: Sequence[Column]) -> list[str]:
    """Columns that stand together, the heading first: lines of the same length."""
    columns = [
        [word.ljust(column.width) if column.kind == "access" else word.rjust(column.width) for word in column.all_words]
        for column in group
    ]
    return [" ".join(words) for words in zip(*columns, strict=True)]
