"""What a run did, step by step, kept small; and which part of it fits on a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from nram.errors import UsageError
from nram.limits import wrong_cells
from nram.programs.execute import check_max_steps
from nram.programs.interpret import Ending, Machine
from nram.programs.ir import MODULES, Program, Row
from nram.programs.memory import prepare_memory
from nram.tasks.base import Instance

MAX_STEPS = 200_000
MAX_LISTED = 20_000_000  # memory cells, where every step is to show all of them
LEAST_CELLS = 4  # are shown however narrow the page is


@dataclass(frozen=True, slots=True)
class Access:
    """One READ or WRITE: where, and what was read or written."""

    pointer: int
    value: int


@dataclass(frozen=True, slots=True)
class TracedStep:
    """A step without its memory, which follows from the writes before it."""

    number: int
    registers: tuple[int, ...]
    state: int
    row: int
    """From 0; people count rows from 1."""
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]

    @property
    def reads_in_words(self) -> str:
        """What READ was given: 'p:1', all of them if there are several."""
        return ", ".join(f"p:{access.pointer}" for access in self.reads)

    @property
    def writes_in_words(self) -> str:
        """What WRITE was given: 'p:6 a:2'."""
        return ", ".join(f"p:{access.pointer} a:{access.value}" for access in self.writes)


@dataclass(frozen=True)
class Trace:
    """A whole run."""

    program: Program
    start: tuple[int, ...]
    steps: tuple[TracedStep, ...]
    ending: Ending
    limit: int
    """The most steps it could have taken."""
    instance: Instance | None = None
    """The instance of the task it was run on, where it is known."""

    def memories(self) -> Iterator[list[int]]:
        """The memory at the start of every step, and at the end. Always the same list: copy what you keep."""
        memory = list(self.start)
        for step in self.steps:
            yield memory
            for access in step.writes:
                memory[access.pointer] = access.value
        yield memory

    def place(self, step: TracedStep) -> str:
        """The row that was carried out: its number, after that of its state if there are several."""
        return f"{step.row + 1}" if len(self.program.states) == 1 else f"{step.state}:{step.row + 1}"

    @property
    def output_cells(self) -> frozenset[int]:
        """Those that the task asks for; none where it is not known."""
        return frozenset() if self.instance is None else frozenset(self.instance.cells)

    @cached_property
    def idle_from(self) -> int | None:
        """The step from which on nothing changes any more, if the run ends so."""
        found = None
        following = [*(step.registers for step in self.steps[1:]), tuple(self.ending.registers)]
        for step, memory, registers in zip(self.steps, self.memories(), following, strict=False):
            idle = registers == step.registers and all(memory[one.pointer] == one.value for one in step.writes)
            idle = idle and self.program.states[step.state][step.row].next_state == step.state
            found = (found or step.number) if idle else None
        return found

    def outcome(self) -> list[str]:
        """How it ended, in words."""
        ending = self.ending
        steps = f"{ending.steps} step{'' if ending.steps == 1 else 's'}"
        lines = [f"halted by itself after {steps}" if ending.halted else f"stopped at the limit of {steps}"]
        if not ending.halted and self.idle_from is not None:
            lines[0] += f"; nothing changes from step {self.idle_from} on"
        if self.instance is not None:
            lines.append(verdict(self.instance, ending.memory))
        return lines

    def __str__(self) -> str:
        from nram.pictures.traces import trace_to_text

        return trace_to_text(self)

    def _repr_svg_(self) -> str:
        """What a notebook shows."""
        from nram.pictures.trace_svg import trace_to_svg

        return trace_to_svg(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What IPython shows in a terminal."""
        printer.text(str(self))

    def require_listable(self) -> None:
        """Refuse what would be too large with the whole memory at every step."""
        if (len(self.steps) + 1) * len(self.start) > MAX_LISTED:
            raise UsageError(
                f"{len(self.steps)} steps of {len(self.start)} cells are too much for this form: "
                "give fewer with --max-steps, or a smaller memory"
            )


def verdict(instance: Instance, memory: Sequence[int]) -> str:
    """Whether a memory holds what was asked for, and where it does not."""
    asked = instance.cells
    wrong = wrong_cells(memory, instance)
    if not wrong:
        return f"right: {'the output cell is' if len(asked) == 1 else f'all {len(asked)} output cells are'} as expected"
    shown = [f"cell {cell} holds {memory[cell]}, not {instance.output[cell]}" for cell in wrong[:5]]
    more = [f"{len(wrong) - 5} more"] if len(wrong) > 5 else []
    return f"WRONG in {len(wrong)} of {len(asked)} output cells: {'; '.join(shown + more)}"


def record_trace(
    program: Program,
    memory: Any,
    max_steps: int | None = None,
    memory_size: int | None = None,
    instance: Instance | None = None,
) -> Trace:
    """Run a program on one memory and keep what happened. `instance` is what the memory was drawn as, if it was."""
    cells = prepare_memory(memory, memory_size)
    if cells.ndim != 1:
        raise UsageError("a trace is of one memory, not of a batch: give one")
    limit = check_max_steps(max_steps, len(cells))
    start = tuple(cells.tolist())
    machine = Machine(program, start)  # `trace` would copy the memory at every step
    steps: list[TracedStep] = []
    while not machine.halted and len(steps) < limit:
        if len(steps) == MAX_STEPS:
            raise UsageError(
                f"the run has not ended after {MAX_STEPS} steps, the most that a trace can hold: "
                "give fewer with --max-steps, or a smaller memory"
            )
        row = machine.choose()
        before = tuple(machine.registers), machine.state, machine.row
        reads, writes = _accesses(row, *machine.compute(row)[:2])
        steps.append(TracedStep(len(steps) + 1, *before, reads, writes))
    return Trace(program, start, tuple(steps), machine.ending(), limit, instance)


def _accesses(
    row: Row, arguments: list[list[int]], outputs: list[int]
) -> tuple[tuple[Access, ...], tuple[Access, ...]]:
    """What the row read and what it wrote."""
    reads, writes = [], []
    for operation, given, output in zip(row.operations, arguments, outputs, strict=True):
        match MODULES[operation.module].memory:
            case "reads":
                reads.append(Access(given[0], output))
            case "writes":
                writes.append(Access(given[0], given[1]))
    return tuple(reads), tuple(writes)


# ---- what of it fits on a page


@dataclass(frozen=True)
class Room:
    """How wide the columns of the memory may be in all, and how wide one is, and one that stands for a gap."""

    total: int
    cell: int = 1
    gap: int = 1


@dataclass(frozen=True)
class Line:
    """One line of the table."""

    memory: tuple[int, ...]
    """Of the shown cells."""
    registers: tuple[int, ...]
    step: TracedStep | None
    """None at the end."""
    left_out: int
    """How many steps are left out between this line and the next."""

    @property
    def label(self) -> str:
        return "end" if self.step is None else str(self.step.number)


@dataclass(frozen=True)
class Excerpt:
    """The shown part of a trace."""

    trace: Trace
    cells: tuple[int, ...]
    lines: tuple[Line, ...]

    def columns(self) -> list[int | None]:
        """Places among the shown cells, with None where cells are left out."""
        return columns_with_gaps(self.cells, len(self.trace.start))

    def note(self) -> str:
        """What is left out, in words; empty if nothing is."""
        cells = len(self.trace.start) - len(self.cells)
        steps = sum(line.left_out for line in self.lines)
        parts = [f"{cells} of {len(self.trace.start)} cells"] if cells else []
        parts += [f"{steps} of {len(self.trace.steps)} steps"] if steps else []
        return f"left out: {' and '.join(parts)}" if parts else ""


def excerpt(trace: Trace, room: Room | None, most_steps: int | None) -> Excerpt:
    """The first and the last steps, and the cells that they touch before others; None means all."""
    count = len(trace.steps)
    shown = shown_steps(count, most_steps, trace.idle_from)
    cells = tuple(range(len(trace.start)))
    if room is not None:
        cells = cells_that_fit(len(cells), _most_telling(trace, shown, room.total // room.cell), room)
    after = dict(zip(shown, [*shown[1:], count], strict=False))
    lines = []
    for place, memory in enumerate(trace.memories()):
        values = tuple(memory[cell] for cell in cells) if place in after or place == count else ()
        if place == count:
            lines.append(Line(values, tuple(trace.ending.registers), None, 0))
        elif place in after:
            step = trace.steps[place]
            lines.append(Line(values, step.registers, step, after[place] - place - 1))
    return Excerpt(trace, cells, tuple(lines))


def shown_steps(count: int, most: int | None, idle_from: int | None = None) -> list[int]:
    """The places of the steps to show: the first and the last, of idle ones at the end only the first and the last."""
    if most is None or count <= most:
        return list(range(count))
    if idle_from is not None and idle_from < count:
        return [*shown_steps(idle_from, most), count - 1]
    first = (most + 1) // 2
    return [*range(first), *range(count - (most - first), count)]


def cells_that_fit(size: int, ranking: Iterable[int], room: Room) -> tuple[int, ...]:
    """All cells if there is room, otherwise those that come first in the ranking, in their order."""
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
    """Places among the shown cells, with None where cells are left out."""
    columns: list[int | None] = []
    before = -1
    for place, cell in enumerate(cells):
        columns += [place] if cell == before + 1 else [None, place]
        before = cell
    return columns if before + 1 == size else [*columns, None]


def _most_telling(trace: Trace, shown: Sequence[int], spare: int) -> list[int]:
    """Cells touched in the shown steps, from both ends of the run inwards; then those asked for; then the first."""
    cells: dict[int, None] = {}
    for i in range(len(shown)):
        step = trace.steps[shown[i // 2] if i % 2 == 0 else shown[-1 - i // 2]]
        cells.update(dict.fromkeys(access.pointer for access in (*step.writes, *step.reads)))
    cells.update(dict.fromkeys(sorted(trace.output_cells)[:spare]))
    cells.update(dict.fromkeys(range(min(spare + LEAST_CELLS, len(trace.start)))))
    return list(cells)
