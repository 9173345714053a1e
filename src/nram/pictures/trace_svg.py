"""A trace as a picture for notebooks: the paper's table, with what each step read, wrote and changed."""

from __future__ import annotations

from collections.abc import Sequence

from nram.pictures.shapes import Path, Picture, Rectangle, Text, Theme
from nram.pictures.trace_records import Trace
from nram.pictures.trace_table import CAPTIONS, KEY, Column, Room, tabulate

LETTER = 7.9  # width of a letter, with some reserve
HEIGHT = 20  # of a line
GAP = 8  # between columns
GROUP = 14  # added between groups of columns
MARGIN = 14
BASE = 14.5  # from the top of a line to the base of its letters
HEADING = HEIGHT  # the top of the headings, below the captions


def trace_to_svg(
    trace: Trace, *, most_cells: int | None = 32, most_steps: int | None = 40, theme: Theme = "auto"
) -> str:
    """The picture. None shows all cells, or all steps."""
    if most_cells is None and most_steps is None:
        trace.require_listable()
    table = tabulate(trace, None if most_cells is None else Room(most_cells), most_steps)
    tops = _tops(table.left_out)
    picture, x = Picture(f"{trace.program.name}: trace"), 0.0
    for group, caption in zip(table.groups, CAPTIONS, strict=True):
        if caption:
            picture.text(x, BASE, caption, "small", 6.5)
        start = x
        for column in group:
            _column(picture, column, x, tops)
            x += LETTER * column.width + GAP
        x = max(x, start + 6.5 * len(caption) + GAP) + GROUP
    width = picture.width = x - GROUP - GAP
    for top in (tops[0], tops[-1]):
        picture.shapes.append(Path(((0, top - 3), (width, top - 3)), "line"))
    for left_out, top in zip(table.left_out, tops, strict=False):
        if left_out:
            words = f"... {left_out} step{'' if left_out == 1 else 's'} left out"
            picture.shapes.append(Text(0, top + HEIGHT + BASE, words, "pale"))
    y = _key(picture, tops[-1] + HEIGHT + 6.0, bool(trace.output_cells))
    remarks = [(words, "wrong" if words.startswith("WRONG") else "value") for words in trace.outcome()]
    remarks += [(table.note, "pale")] if table.note else []
    for words, kind in remarks:
        picture.text(0, y + BASE, words, kind, LETTER)
        y += HEIGHT
    picture.height = y
    return picture.on_ground(MARGIN).to_svg(theme)


def _tops(left_out: Sequence[int]) -> list[float]:
    """The top of each line, with room for a remark where steps are left out."""
    tops = [HEADING + HEIGHT + 6.0]
    for count in left_out:
        tops.append(tops[-1] + HEIGHT * (2 if count else 1))
    tops[-1] += 6
    return tops


def _column(picture: Picture, column: Column, x: float, tops: Sequence[float]) -> None:
    width, shapes = LETTER * column.width, picture.shapes
    if column.asked:
        _box(picture, x, HEADING, width, "asked")
    ends, anchor = (x, "start") if column.kind == "access" else (x + width, "end")
    kind = "pale" if column.kind not in ("cell", "gap") else "address asked" if column.asked else "address"
    shapes.append(Text(ends, HEADING + BASE, column.heading, kind, anchor))
    for line, (words, top) in enumerate(zip(column.words, tops, strict=True)):
        for mark in column.marks_of(line):
            _box(picture, x, top, width, mark)
        if words:
            shapes.append(Text(ends, top + BASE, words, "value", anchor))


def _box(picture: Picture, x: float, top: float, width: float, kind: str) -> None:
    inner = 2.0 if kind == "read" else 0.0  # inside the frame of a value that is also new
    picture.shapes.append(
        Rectangle(x - 3 + inner, top + inner, width + 6 - 2 * inner, HEIGHT - 1 - 2 * inner, kind, 2 * inner)
    )


def _key(picture: Picture, y: float, asked: bool) -> float:
    """What the marks mean, in one line. Returns the height below it."""
    x = 4.0
    for kind, words in KEY.items():
        if kind != "asked" or asked:
            _box(picture, x, y, 12, kind)
            picture.text(x + 20, y + BASE - 1, words, "small", 6)
            x += 32 + 6 * len(words)
    picture.text(x, y + BASE - 1, "p: pointer, a: value", "small", 6)
    return y + HEIGHT + 4
