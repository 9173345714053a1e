"""A trace as a picture for notebooks: the paper's table, with what each step read, wrote and changed."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from nram.pictures.trace_records import Trace
from nram.pictures.trace_table import Column, Room, tabulate

LETTER = 7.9  # width of a letter, with some reserve
HEIGHT = 20  # of a line
GAP = 8  # between columns
GROUP = 14  # added between groups of columns
MARGIN = 14
BASE = 14.5  # from the top of a line to the base of its letters

# A notebook may put the picture into its page: the rules must not affect anything else there.
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


def trace_to_svg(trace: Trace, *, most_cells: int | None = 32, most_steps: int | None = 40) -> str:
    """The picture. None shows all cells, or all steps."""
    if most_cells is None and most_steps is None:
        trace.require_listable()
    table = tabulate(trace, None if most_cells is None else Room(most_cells), most_steps)
    tops = _tops(table.left_out)
    elements, x = [], float(MARGIN)
    for group in table.groups:
        for column in group:
            elements += _column(column, x, tops)
            x += LETTER * column.width + GAP
        x += GROUP
    width = x - GROUP - GAP + MARGIN
    elements.append(f'<path d="M{MARGIN} {tops[0] - 3:g}H{width - MARGIN:g}" stroke="#8a97a4"/>')
    elements.append(f'<path d="M{MARGIN} {tops[-1] - 3:g}H{width - MARGIN:g}" stroke="#d5dce3"/>')
    for left_out, top in zip(table.left_out, tops, strict=False):
        if left_out:
            words = f"... {left_out} step{'' if left_out == 1 else 's'} left out"
            elements.append(_text(MARGIN, top + HEIGHT + BASE, words, "pale"))
    y = tops[-1] + HEIGHT + 6.0
    remarks = [(words, "wrong" if words.startswith("WRONG") else "") for words in trace.outcome()]
    remarks += [(table.note, "pale")] if table.note else []
    remarks.append(("p: pointer, a: value written; blue frame: read, red: written, yellow: changed", "pale"))
    for words, kind in remarks:
        elements.append(_text(MARGIN, y + BASE, words, kind))
        width = max(width, 2 * MARGIN + LETTER * len(words))
        y += HEIGHT
    size = f'width="{width:g}" height="{y + MARGIN:g}" viewBox="0 0 {width:g} {y + MARGIN:g}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="nram-trace" {size} role="img">\n'
        f"<title>{escape(trace.program.name)}: trace</title>\n<style>{STYLE}</style>\n"
        '<rect width="100%" height="100%" fill="#ffffff"/>\n' + "\n".join(elements) + "\n</svg>\n"
    )


def _tops(left_out: Sequence[int]) -> list[float]:
    """The top of each line, with room for a remark where steps are left out."""
    tops = [MARGIN + HEIGHT + 6.0]
    for count in left_out:
        tops.append(tops[-1] + HEIGHT * (2 if count else 1))
    tops[-1] += 6
    return tops


def _column(column: Column, x: float, tops: Sequence[float]) -> list[str]:
    width = LETTER * column.width
    elements = [_box(x, MARGIN, width, "asked")] if column.asked else []
    ends, anchor = (x, "") if column.kind == "access" else (x + width, "end")
    elements.append(_text(ends, MARGIN + BASE, column.heading, "pale", anchor))
    for line, (words, top) in enumerate(zip(column.words, tops, strict=True)):
        elements += [_box(x, top, width, mark) for mark in column.marks_of(line)]
        if words:
            elements.append(_text(ends, top + BASE, words, "", anchor))
    return elements


def _box(x: float, top: float, width: float, kind: str) -> str:
    return f'<rect class="{kind}" x="{x - 3:g}" y="{top:g}" width="{width + 6:g}" height="{HEIGHT - 1}"/>'


def _text(x: float, y: float, words: str, kind: str, anchor: str = "") -> str:
    shown = f' class="{kind}"' if kind else ""
    where = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text{shown} x="{x:g}" y="{y:g}"{where}>{escape(words)}</text>'
