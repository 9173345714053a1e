"""A trace as a picture: the table of the paper, with what each step read, wrote and changed. Notebooks show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from nram.pictures.trace_records import Excerpt, Line, Room, Trace, excerpt

LETTER = 7.9  # the width of one, amply
HEIGHT = 20  # of a line
GAP = 8  # between columns
GROUP = 14  # more, between groups of them
MARGIN = 14
BASE = 14.5  # of the letters, below the top of their line

# Notebooks may put the picture into their page, where its rules must not reach anything else.
STYLE = """
svg.nram-trace text{font-family:"DejaVu Sans Mono",Menlo,Consolas,"Liberation Mono",monospace;font-size:13px;
fill:#1c2733}
svg.nram-trace .pale{fill:#5d6b79}
svg.nram-trace .wrong{fill:#c62f45;font-weight:bold}
svg.nram-trace .changed{fill:#ffe9a8}
svg.nram-trace .asked{fill:#dfeee3}
svg.nram-trace .read{fill:none;stroke:#2f6fab;stroke-width:1.2}
svg.nram-trace .written{fill:none;stroke:#c62f45;stroke-width:2}
"""


@dataclass(frozen=True)
class Column:
    """Words under a heading, and for each of them how it is marked."""

    heading: str
    words: tuple[str, ...]
    marks: tuple[tuple[str, ...], ...]
    asked: bool = False
    """The heading is that of an output cell."""
    to_the_left: bool = False

    @property
    def width(self) -> float:
        return LETTER * max(len(word) for word in (self.heading, *self.words))


def trace_to_svg(trace: Trace, *, most_cells: int | None = 32, most_steps: int | None = 40) -> str:
    """The picture. None shows all cells, or all steps."""
    if most_cells is None and most_steps is None:
        trace.require_listable()
    part = excerpt(trace, None if most_cells is None else Room(most_cells), most_steps)
    groups = _groups(part)
    tops = _tops(part.lines)
    elements, x = [], float(MARGIN)
    for group in groups:
        for column in group:
            elements += _column(column, x, tops)
            x += column.width + GAP
        x += GROUP
    width = x - GROUP - GAP + MARGIN
    elements.append(f'<path d="M{MARGIN} {tops[0] - 3:g}H{width - MARGIN:g}" stroke="#8a97a4"/>')
    elements.append(f'<path d="M{MARGIN} {tops[-1] - 3:g}H{width - MARGIN:g}" stroke="#d5dce3"/>')
    for line, top in zip(part.lines, tops, strict=True):
        if line.left_out:
            words = f"... {line.left_out} step{'' if line.left_out == 1 else 's'} left out"
            elements.append(_text(MARGIN, top + HEIGHT + BASE, words, "pale"))
    y = tops[-1] + HEIGHT + 6.0
    said = [(words, "wrong" if words.startswith("WRONG") else "") for words in trace.outcome()]
    said += [(part.note(), "pale")] if part.note() else []
    said.append(("p: pointer, a: value written; blue frame: read, red: written, yellow: changed", "pale"))
    for words, kind in said:
        elements.append(_text(MARGIN, y + BASE, words, kind))
        width = max(width, 2 * MARGIN + LETTER * len(words))
        y += HEIGHT
    size = f'width="{width:g}" height="{y + MARGIN:g}" viewBox="0 0 {width:g} {y + MARGIN:g}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="nram-trace" {size} role="img">\n'
        f"<title>{escape(trace.program.name)}: trace</title>\n<style>{STYLE}</style>\n"
        '<rect width="100%" height="100%" fill="#ffffff"/>\n' + "\n".join(elements) + "\n</svg>\n"
    )


def _groups(part: Excerpt) -> list[list[Column]]:
    """Step, memory, registers, and what was done: the columns of the table."""
    lines, trace = part.lines, part.trace
    plain = ((),) * len(lines)
    steps = [line.step for line in lines]
    row = "row" if len(trace.program.states) == 1 else "state:row"
    return [
        [Column("step", tuple(line.label for line in lines), plain)],
        [_cell_column(part, place) for place in part.columns()],
        [
            Column(name, tuple(str(line.registers[i]) for line in lines), tuple(_changes(lines, i)))
            for i, name in enumerate(trace.program.registers)
        ],
        [Column("READ", tuple(step.reads_in_words if step else "" for step in steps), plain, to_the_left=True)],
        [Column("WRITE", tuple(step.writes_in_words if step else "" for step in steps), plain, to_the_left=True)],
        [Column(row, tuple(trace.place(step) if step else "" for step in steps), plain)],
    ]


def _cell_column(part: Excerpt, place: int | None) -> Column:
    lines = part.lines
    if place is None:
        return Column("...", ("...",) * len(lines), ((),) * len(lines))
    cell = part.cells[place]
    marks = []
    for line, before in zip(lines, (None, *lines), strict=False):
        found = ["changed"] if before is not None and before.memory[place] != line.memory[place] else []
        if line.step and any(access.pointer == cell for access in line.step.writes):
            found.append("written")
        elif line.step and any(access.pointer == cell for access in line.step.reads):
            found.append("read")
        marks.append(tuple(found))
    words = tuple(str(line.memory[place]) for line in lines)
    return Column(str(cell), words, tuple(marks), asked=cell in part.trace.output_cells)


def _changes(lines: Sequence[Line], register: int) -> list[tuple[str, ...]]:
    values = [line.registers[register] for line in lines]
    return [("changed",) if i and value != values[i - 1] else () for i, value in enumerate(values)]


def _tops(lines: Sequence[Line]) -> list[float]:
    """Where each line begins, with room for a remark where steps are left out."""
    tops, y = [], MARGIN + HEIGHT + 6.0
    for line in lines:
        tops.append(y)
        y += HEIGHT * (2 if line.left_out else 1)
    tops[-1] += 6
    return tops


def _column(column: Column, x: float, tops: Sequence[float]) -> list[str]:
    elements = [_box(x, MARGIN, column.width, "asked")] if column.asked else []
    ends = x if column.to_the_left else x + column.width
    anchor = "" if column.to_the_left else "end"
    elements.append(_text(ends, MARGIN + BASE, column.heading, "pale", anchor))
    for words, marks, top in zip(column.words, column.marks, tops, strict=True):
        elements += [_box(x, top, column.width, mark) for mark in marks]
        if words:
            elements.append(_text(ends, top + BASE, words, "", anchor))
    return elements


def _box(x: float, top: float, width: float, kind: str) -> str:
    return f'<rect class="{kind}" x="{x - 3:g}" y="{top:g}" width="{width + 6:g}" height="{HEIGHT - 1}"/>'


def _text(x: float, y: float, words: str, kind: str, anchor: str = "") -> str:
    shown = f' class="{kind}"' if kind else ""
    where = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text{shown} x="{x:g}" y="{y:g}"{where}>{escape(words)}</text>'
