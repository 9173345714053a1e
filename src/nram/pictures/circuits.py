"""Drawings of programs, as in the paper: a circuit for every row of the table, as SVG or for graphviz.

The registers before the step are at the left, those after it (r1′) at the right. Between them are the modules, each to
the right of all that it depends on. Wires have labels where their order matters: p and a of READ and WRITE (pointer and
value), x and y of the comparisons, a and b of SUB.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape

from nram.errors import UsageError
from nram.pictures.circuit_graph import Circuit, Part, circuit_of
from nram.pictures.layout import Box, Drawing, Point, Wire, assign_layers, draw
from nram.programs.ir import Program

MAX_OPERATIONS = 100  # in a circuit as SVG; graphviz has no limit
MAX_ROWS = 300  # in one picture

LETTER = 8.0  # width of a letter of a module's name, with some reserve
PORT = 20  # between the inputs of a box
CONSTANT = 31  # width at the left of a box for its constants
MARGIN = 18.0

STYLE = """
text{font-family:"DejaVu Sans Mono",Menlo,Consolas,"Liberation Mono",monospace;font-size:13px;fill:#1c2733}
.title{font-family:"DejaVu Sans",Helvetica,Arial,sans-serif;font-size:14px;font-weight:bold}
.name{font-family:"DejaVu Sans",Helvetica,Arial,sans-serif;font-size:17px;font-weight:bold}
.small{font-family:"DejaVu Sans",Helvetica,Arial,sans-serif;font-size:11px;fill:#5d6b79}
.argument{font-size:11px;font-style:italic;fill:#44535f}
.turn{font-size:9px;fill:#5d6b79}
.ending{font-family:"DejaVu Sans",Helvetica,Arial,sans-serif;font-size:11px;font-weight:bold}
.digit{font-size:11px}
.box{stroke:#3b4a59;stroke-width:1.2;fill:#eef3f9}
.box.reads{fill:#e6f4ea}
.box.writes{fill:#fdeae8}
.box.register{fill:#fbf6e3}
.constant{stroke:#8a97a4;fill:#ffffff}
.wire{stroke:#3b4a59;stroke-width:1.4;fill:none}
.wire.kept{stroke:#aab5bf}
.branch{fill:#3b4a59}
.source:hover .wire{stroke:#c62f45;stroke-width:2.2}
"""


# ---- as SVG


def circuit_svg(program: Program, state: int, row: int) -> str:
    """The circuit of a row as a picture. States and rows count from 0."""
    circuit = circuit_of(program, state, row)
    return _page([_figure(circuit)], f"{program.name}, {circuit.label}")


def program_svg(program: Program) -> str:
    """All rows of a program, one below the other, in one picture."""
    if program.rows > MAX_ROWS:
        raise UsageError(
            f"the program has {program.rows} rows, too many for one picture (at most {MAX_ROWS}): draw one with --row "
            "STATE:ROW or each into its own file with --out FOLDER/, or make the program shorter with 'nram simplify'"
        )
    figures = [_figure(circuit_of(program, state, row)) for state, row in program_rows(program)]
    return _page(figures, program.name, heading=True)


def program_rows(program: Program) -> list[tuple[int, int]]:
    """State and row of every row of a program, both from 0."""
    return [(state, row) for state, rows in enumerate(program.states) for row in range(len(rows))]


class _Figure:
    """Elements of a picture, with its width and height."""

    def __init__(self) -> None:
        self.elements: list[str] = []
        self.width = 0.0
        self.height = 0.0

    def text(self, x: float, y: float, words: str, kind: str, *, letter: float = 0.0, anchor: str = "") -> None:
        """Words on the line at y. With `letter`, the width of a letter, the picture becomes wide enough for them."""
        where = f' text-anchor="{anchor}"' if anchor else ""
        self.elements.append(f'<text class="{kind}" x="{_n(x)}" y="{_n(y)}"{where}>{escape(words)}</text>')
        self.width = max(self.width, x + letter * len(words))


def _figure(circuit: Circuit) -> _Figure:
    figure = _Figure()
    figure.text(0, 10, circuit.label, "small", letter=6.5)
    y = 29.0
    for line in textwrap.wrap(circuit.title, 78):
        figure.text(0, y, line, "title", letter=9.2)
        y += 18
    if circuit.ending:
        _ending(figure, circuit, y - 8)
        y += 20
    figure.height = y + 2
    if circuit.parts:
        _draw_parts(figure, layout_of(circuit.parts), figure.height)
    else:
        figure.text(0, figure.height + 10, "nothing changes", "small", letter=6.5)
        figure.height += 16
    for remark in circuit.remarks:
        for line in textwrap.wrap(remark, 110):
            figure.height += 16
            figure.text(0, figure.height, line, "small", letter=6.5)
    return figure


def _ending(figure: _Figure, circuit: Circuit, y: float) -> None:
    """A label below the condition: what follows the step."""
    words = f"then {circuit.ending}"
    fill, ink = ("#c62f45", "#ffffff") if circuit.halts else ("#dfe6ee", "#1c2733")
    wide = 7.2 * len(words) + 14
    figure.elements.append(f'<rect x="0" y="{_n(y - 4)}" width="{_n(wide)}" height="18" rx="9" fill="{fill}"/>')
    figure.elements.append(
        f'<text class="ending" x="{_n(wide / 2)}" y="{_n(y + 9)}" text-anchor="middle" style="fill:{ink}">'
        f"{escape(words)}</text>"
    )
    figure.width = max(figure.width, wide)


@dataclass(frozen=True)
class Layout:
    """Positions of the parts of a circuit. A box includes the space for constants at its left."""

    parts: tuple[Part, ...]
    boxes: tuple[Box, ...]
    wires: tuple[Wire, ...]
    drawing: Drawing


def layout_of(parts: Sequence[Part]) -> Layout:
    """A layout of these parts. Where the order of a module's inputs does not matter, it may exchange them."""
    modules = sum(part.kind == "module" for part in parts)
    if modules > MAX_OPERATIONS:
        raise UsageError(
            f"a row of {modules} operations is too large for a picture (at most {MAX_OPERATIONS}): "
            "write it for graphviz (--out FILE.dot) or read it with 'nram show'"
        )
    layout = _laid_out(tuple(parts))
    exchanged = tuple(_without_twist(layout, index) for index in range(len(parts)))
    return layout if exchanged == layout.parts else _laid_out(exchanged)


def _laid_out(parts: tuple[Part, ...]) -> Layout:
    layers = _layers(parts)
    widest = max((len(part.name) for part in parts if part.kind != "module"), default=0)
    boxes = []
    for index, part in enumerate(parts):
        width = LETTER * (len(part.name) if part.kind == "module" else widest + 1) + 20 + 12 * _has_labels(part)
        height = 30 if len(part.inputs) < 2 else 24 + PORT * (len(part.inputs) - 1)
        inputs = tuple((height - PORT * (len(part.inputs) - 1)) / 2 + PORT * i for i in range(len(part.inputs)))
        rank = None if part.kind == "module" else index
        boxes.append(Box(width + _room(parts, part), height, inputs, layers[index], rank))
    wires = [
        Wire(given.source, index, port)
        for index, part in enumerate(parts)
        for port, given in enumerate(part.inputs)
        if given.source is not None
    ]
    return Layout(parts, tuple(boxes), tuple(wires), draw(boxes, wires))


def _layers(parts: Sequence[Part]) -> list[int]:
    before = sum(part.kind == "before" for part in parts)
    end = sum(part.kind != "after" for part in parts)  # represents all registers after the step: they share a layer
    pairs = [
        (given.source, min(index, end))
        for index, part in enumerate(parts)
        for given in part.inputs
        if given.source is not None
    ]
    arcs = [(a, b, 1) for a, b in pairs] + [(index, end, 1) for index in range(end)] + _memory_order(parts)
    layers = assign_layers(end + 1, before, arcs, pairs)
    return [layers[min(index, end)] for index in range(len(parts))]


def _memory_order(parts: Sequence[Part]) -> list[tuple[int, int, int]]:
    """Accesses after a write stand to the right of it. A write does not stand to the left of earlier reads."""
    accesses = [(index, part.memory == "writes") for index, part in enumerate(parts) if part.memory != "nothing"]
    return [
        (a, b, 1 if a_writes else 0)
        for i, (a, a_writes) in enumerate(accesses)
        for b, b_writes in accesses[i + 1 :]
        if a_writes or b_writes
    ]


def _without_twist(layout: Layout, index: int) -> Part:
    """The part with its two inputs exchanged if their wires cross just before it and the order does not matter."""
    part = layout.parts[index]
    wires = [i for i, wire in enumerate(layout.wires) if wire.target == index]
    if len(wires) != 2 or _has_labels(part):
        return part
    upper, lower = (_last_height(layout.drawing.paths[i]) for i in wires)
    return replace(part, inputs=part.inputs[::-1]) if upper > lower else part


def _last_height(path: Sequence[Point]) -> float:
    """The height of a wire before its last bend."""
    return next((point.y for point in reversed(path) if point.y != path[-1].y), path[-1].y)


def _has_labels(part: Part) -> bool:
    return any(given.label for given in part.inputs)


def _room(parts: Sequence[Part], part: Part) -> int:
    """The space for constants at the left of a box. Registers after the step are aligned, so all have it or none."""
    alike = [part] if part.kind == "module" else [other for other in parts if other.kind == part.kind]
    return CONSTANT if any(given.source is None for other in alike for given in other.inputs) else 0


def _draw_parts(figure: _Figure, layout: Layout, top: float) -> None:
    parts, drawing = layout.parts, layout.drawing
    by_source: dict[int, list[str]] = {}
    for wire, path, fresh in zip(layout.wires, drawing.paths, drawing.fresh, strict=True):
        target = parts[wire.target]
        points = [*path[fresh:-1], Point(path[-1].x + _room(parts, target), path[-1].y)]
        kept = " kept" if target.kept else ""
        line = f'<path class="wire{kept}" marker-end="url(#arrow{kept.strip()})" d="{_line(points, top)}"/>'
        by_source.setdefault(wire.source, []).append(line)
    for lines in by_source.values():
        figure.elements += ['<g class="source">', *lines, "</g>"]
    for point in drawing.branches:
        figure.elements.append(f'<circle class="branch" cx="{_n(point.x)}" cy="{_n(point.y + top)}" r="2.4"/>')
    for part, box, corner in zip(parts, layout.boxes, drawing.corners, strict=True):
        _draw_part(figure, part, box, Point(corner.x, corner.y + top), _room(parts, part))
    figure.width = max(figure.width, drawing.width)
    figure.height = top + drawing.height + 4


def _draw_part(figure: _Figure, part: Part, box: Box, corner: Point, room: int) -> None:
    x, wide = corner.x + room, box.width - room
    kind = part.memory if part.kind == "module" else "register"
    round_ = 4 if part.kind == "module" else 15
    figure.elements.append(
        f'<rect class="box {kind}" x="{_n(x)}" y="{_n(corner.y)}" width="{_n(wide)}" height="{_n(box.height)}" '
        f'rx="{round_}"/>'
    )
    middle = x + (wide + 12 * _has_labels(part)) / 2
    prime = "\u2032" if part.kind == "after" else ""
    figure.text(middle, corner.y + box.height / 2 + 4.5, part.name + prime, "module", anchor="middle")
    if part.turn is not None:
        figure.text(x + wide - 4, corner.y + 10, str(part.turn), "turn", anchor="end")
    for given, below in zip(part.inputs, box.inputs, strict=True):
        y = corner.y + below
        if given.label:
            figure.text(x + 6, y + 4, given.label, "argument")
        if given.source is None:
            centre = corner.x + 12
            figure.elements.append(
                f'<path class="wire" marker-end="url(#arrow)" d="M{_n(centre + 8)} {_n(y)}H{_n(x)}"/>'
                f'<circle class="constant" cx="{_n(centre)}" cy="{_n(y)}" r="8"/>'
            )
            figure.text(centre, y + 4, str(given.constant), "digit", anchor="middle")


def _line(points: Sequence[Point], top: float) -> str:
    """A path of horizontal pieces and bends that begin and end horizontally."""
    words = [f"M{_n(points[0].x)} {_n(points[0].y + top)}"]
    for a, b in zip(points, points[1:], strict=False):
        if a.y == b.y:
            words.append(f"H{_n(b.x)}")
        else:
            middle = _n((a.x + b.x) / 2)
            words.append(f"C{middle} {_n(a.y + top)} {middle} {_n(b.y + top)} {_n(b.x)} {_n(b.y + top)}")
    return "".join(words)


def _page(figures: Iterable[_Figure], name: str, heading: bool = False) -> str:
    """Figures, one below the other, on white."""
    body = []
    width, y = 0.0, MARGIN
    if heading:
        title = _Figure()
        title.text(0, 14, textwrap.shorten(name, 70, placeholder="..."), "name", letter=11.5)
        body.append(_placed(title, y))
        width, y = title.width, y + 34
    for index, figure in enumerate(figures):
        if index:
            body.append(f'<path d="M{_n(MARGIN)} {_n(y)}h60" stroke="#c4ccd4"/>')
            y += 18
        body.append(_placed(figure, y))
        width, y = max(width, figure.width), y + figure.height + 18
    width, height = _n(width + 2 * MARGIN), _n(y)
    arrows = "".join(
        f'<marker id="arrow{kind}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
        f'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 1L8 4L0 7z" fill="{colour}"/></marker>'
        for kind, colour in (("", "#3b4a59"), ("kept", "#aab5bf"))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img">\n<title>{escape(name)}</title>\n<style>{STYLE}</style>\n<defs>{arrows}</defs>\n'
        f'<rect width="100%" height="100%" fill="#ffffff"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


def _placed(figure: _Figure, y: float) -> str:
    elements = "\n".join(figure.elements)
    return f'<g transform="translate({_n(MARGIN)} {_n(y)})">\n{elements}\n</g>'


def _n(number: float) -> str:
    """A number with at most two decimals, as short as possible."""
    return f"{number:.2f}".rstrip("0").rstrip(".")


# ---- for graphviz


def circuit_dot(program: Program, state: int, row: int) -> str:
    """The circuit of a row in the language of graphviz."""
    circuit = circuit_of(program, state, row)
    lines = [f"digraph {_quoted(program.name)} {{", *_DOT_STYLE, f"  label={_quoted(_heading(circuit))};"]
    return "\n".join([*lines, *_dot_parts(circuit, "", "  "), "}"]) + "\n"


def program_dot(program: Program) -> str:
    """All rows of a program, each in its own cluster."""
    lines = [f"digraph {_quoted(program.name)} {{", *_DOT_STYLE, f"  label={_quoted(program.name)};"]
    for state, row in reversed(program_rows(program)):  # graphviz begins at the bottom
        circuit = circuit_of(program, state, row)
        lines += [f"  subgraph {_quoted(f'cluster {state}:{row + 1}')} {{"]
        lines += [f"    label={_quoted(_heading(circuit))};", *_dot_parts(circuit, f"{state}:{row + 1} ", "    ")]
        lines += ["  }"]
    return "\n".join([*lines, "}"]) + "\n"


_DOT_STYLE = (
    '  rankdir=LR; bgcolor=white; labelloc=t; labeljust=l; fontname="Helvetica"; newrank=true;',
    '  node [shape=box, fontname="Courier"]; edge [fontname="Helvetica-Oblique", fontsize=11, arrowsize=0.6];',
)


def _heading(circuit: Circuit) -> str:
    return f"{circuit.label}: {circuit.title}" + (f" ({circuit.ending})" if circuit.ending else "")


def _dot_parts(circuit: Circuit, prefix: str, indent: str) -> list[str]:
    """Nodes and edges. `prefix` keeps the names of several circuits apart."""
    names = []
    counts: dict[str, int] = {}
    for part in circuit.parts:
        kind = {"before": "old ", "module": "", "after": "new "}[part.kind] + part.name
        counts[kind] = counts.get(kind, 0) + 1
        names.append(_quoted(prefix + kind + (f" {counts[kind]}" if part.kind == "module" else "")))
    lines = []
    for kind, rank in (("before", "min"), ("after", "max")):
        if group := [name for name, part in zip(names, circuit.parts, strict=True) if part.kind == kind]:
            lines.append(f"{indent}{{ rank={rank}; {'; '.join(group)}; }}")
    for name, part in zip(names, circuit.parts, strict=True):
        shape = "" if part.kind == "module" else ", style=rounded"
        prime = "'" if part.kind == "after" else ""
        turn = f" ({part.turn})" if part.turn is not None else ""
        lines.append(f"{indent}{name} [label={_quoted(part.name + prime + turn)}{shape}];")
        for port, given in enumerate(part.inputs):
            end = f" [headlabel={_quoted(given.label)}]" if given.label else ""
            if given.source is not None:
                source = names[given.source]
            else:
                source = f'{name[:-1]} input {port + 1}"'
                lines.append(f"{indent}{source} [label={_quoted(str(given.constant))}, shape=plaintext];")
            lines.append(f"{indent}{source} -> {name}{end};")
    if not circuit.parts:
        lines.append(f"{indent}{_quoted(prefix + 'nothing')} [label={_quoted('nothing changes')}, shape=plaintext];")
    return lines


def _quoted(text: str) -> str:
    """A string for graphviz, where a backslash begins an escape."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
