"""Drawings of programs, as in the paper: a circuit for every row of the table, as a picture or for graphviz.

The registers before the step are at the left, those after it (r1′) at the right. Between them are the modules, each to
the right of all that it depends on. Wires have labels where their order matters: p and a of READ and WRITE (pointer and
value), x and y of the comparisons, a and b of SUB. The rows of a state are tried in order; a line at the left leads
from each to the next. Long programs are drawn in several columns.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path as FilePath

from nram.errors import UsageError
from nram.extras import require
from nram.files import write_result
from nram.pictures.circuit_graph import Circuit, Part, circuit_of
from nram.pictures.layout import Box, Drawing, Point, Wire, assign_layers, draw
from nram.pictures.shapes import Circle, Path, Picture, Rectangle, Text, Theme
from nram.pictures.trace_records import PICTURE_SUFFIXES
from nram.programs.ir import Program

MAX_OPERATIONS = 100  # in a circuit as a picture; graphviz has no limit
MAX_ROWS = 300  # in one picture
SUFFIXES = (*PICTURE_SUFFIXES, ".dot")

LETTER = 8.0  # width of a letter of a module's name, with some reserve
PORT = 20  # between the inputs of a box
CONSTANT = 31  # width at the left of a box for its constants
MARGIN = 18.0
RAIL = 20.0  # at the left of every row, for the line that leads to it
BETWEEN_ROWS, BETWEEN_COLUMNS = 30.0, 44.0
TITLE = 24.0  # from the top of a row to the middle of its condition
TALL, SHAPE = 1000.0, 1.25  # a picture becomes wider before it is taller than this and this times its width


# ---- whole pictures


def draw_program(
    program: Program,
    path: str | FilePath,
    *,
    row: tuple[int, int] | None = None,
    columns: int | None = None,
    theme: Theme = "auto",
) -> None:
    """Write a picture of a program, or of one row (state and row, both from 0), in the format that the suffix names.

    SVG and DOT need no other library, PNG and PDF need matplotlib. A long program is drawn in several columns;
    `columns` says in how many. The theme is for a light or a dark page. With 'auto' an SVG has both and follows its
    reader; PNG and PDF are light.
    """
    write_result(FilePath(path), drawn_program(program, FilePath(path), row, columns, theme))


def drawn_program(
    program: Program, path: FilePath, row: tuple[int, int] | None, columns: int | None, theme: Theme
) -> bytes:
    """What `draw_program` writes to the path."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(f"{path} has an unknown suffix: use {', '.join(SUFFIXES)}, or a folder ({path}/)")
    if suffix == ".dot":
        return (program_dot(program) if row is None else circuit_dot(program, *row)).encode()
    picture = program_picture(program, columns) if row is None else circuit_picture(program, *row)
    if suffix == ".svg":
        return picture.to_svg(theme).encode()
    require("plots", f"a picture ({suffix})")
    from nram.pictures.figures import bytes_of, picture_figure

    return bytes_of(picture_figure(picture, theme), suffix)


def circuit_svg(program: Program, state: int, row: int, theme: Theme = "auto") -> str:
    """The circuit of a row as SVG. States and rows count from 0."""
    return circuit_picture(program, state, row).to_svg(theme)


def program_svg(program: Program, columns: int | None = None, theme: Theme = "auto") -> str:
    """All rows of a program as SVG, in so many columns (default: as its length asks for)."""
    return program_picture(program, columns).to_svg(theme)


def circuit_picture(program: Program, state: int, row: int) -> Picture:
    """The circuit of a row. States and rows count from 0."""
    return picture_of(circuit_of(program, state, row), program.name)


def picture_of(circuit: Circuit, name: str) -> Picture:
    """A circuit on a page of its own. Boxes name their parts, wires the parts from which they come."""
    picture = _row_picture(circuit)
    picture.name = f"{name}, {circuit.label}"
    return picture.on_ground(MARGIN)


def program_picture(program: Program, columns: int | None = None) -> Picture:
    """All rows of a program, in reading order: down the first column, then down the next."""
    if program.rows > MAX_ROWS:
        raise UsageError(
            f"the program has {program.rows} rows, too many for one picture (at most {MAX_ROWS}): draw one with --row "
            "STATE:ROW or each into its own file with --out FOLDER/, or make the program shorter with 'nram simplify'"
        )
    rows = program_rows(program)
    pictures = [_row_picture(circuit_of(program, state, row)) for state, row in rows]
    page = Picture(program.name)
    page.text(0, 14, textwrap.shorten(program.name, 70, placeholder="..."), "name", 11.5)
    x, top = 0.0, 34.0
    for column in _columns(pictures, columns):
        y = top
        for index in column:
            _rail(page, x, y, pictures[index].height, rows[index], rows[index + 1 : index + 2])
            page.place(pictures[index], x + RAIL, y)
            y += pictures[index].height + BETWEEN_ROWS
        x += RAIL + max(pictures[index].width for index in column) + BETWEEN_COLUMNS
    return page.on_ground(MARGIN)


def program_rows(program: Program) -> list[tuple[int, int]]:
    """State and row of every row of a program, both from 0."""
    return [(state, row) for state, rows in enumerate(program.states) for row in range(len(rows))]


def _columns(pictures: Sequence[Picture], count: int | None) -> list[list[int]]:
    """The indices of the rows in every column: in so many columns, or in the fewest that give the page a good shape."""
    heights = [picture.height + BETWEEN_ROWS for picture in pictures]
    for tried in range(count or 1, len(pictures)):
        columns = _balanced(heights, tried)
        tall = max(sum(heights[index] for index in column) for column in columns)
        wide = sum(max(pictures[index].width for index in column) + RAIL + BETWEEN_COLUMNS for column in columns)
        if count or tall <= max(TALL, SHAPE * wide):
            return columns
    return [[index] for index in range(len(pictures))]


def _balanced(heights: Sequence[float], count: int) -> list[list[int]]:
    """At most `count` columns whose tallest is as short as possible, found by bisection of the height."""
    least, most = max(heights), sum(heights)
    while most - least > 1:
        middle = (least + most) / 2
        least, most = (least, middle) if len(_filled(heights, middle)) <= count else (middle, most)
    return _filled(heights, most)


def _filled(heights: Sequence[float], tallest: float) -> list[list[int]]:
    """Columns no taller than this, each filled before the next begins."""
    columns: list[list[int]] = [[]]
    used = 0.0
    for index, height in enumerate(heights):
        if used + height > tallest and columns[-1]:
            columns.append([])
            used = 0.0
        columns[-1].append(index)
        used += height
    return columns


def _rail(
    page: Picture, x: float, y: float, height: float, row: tuple[int, int], following: Sequence[tuple[int, int]]
) -> None:
    """The line at the left of a row: from the row before it in its state, and on to the next."""
    middle = y + TITLE
    if row[1] > 0:
        page.arrow([(x + 4, y - BETWEEN_ROWS / 2), (x + 4, middle), (x + RAIL - 5, middle)], "kept")
    if following and following[0][0] == row[0]:
        if row[1] == 0:
            page.shapes.append(Circle(x + 4, middle, 3, "arrow kept"))
        page.shapes.append(Path(((x + 4, middle), (x + 4, y + height + BETWEEN_ROWS / 2)), "wire kept"))


# ---- one row


def _row_picture(circuit: Circuit) -> Picture:
    picture = Picture()
    picture.text(0, 10, circuit.label, "small", 6.5)
    y = 29.0
    for line in textwrap.wrap(circuit.title, 78):
        picture.text(0, y, line, "title", 9.2)
        y += 18
    if circuit.ending:
        _ending(picture, circuit, y - 8)
        y += 20
    picture.height = y + 2
    if circuit.parts:
        _draw_parts(picture, layout_of(circuit.parts), picture.height)
    else:
        picture.text(0, picture.height + 10, "nothing changes", "small", 6.5)
        picture.height += 16
    for remark in circuit.remarks:
        for line in textwrap.wrap(remark, 110):
            picture.height += 16
            picture.text(0, picture.height, line, "small", 6.5)
    return picture


def _ending(picture: Picture, circuit: Circuit, y: float) -> None:
    """A label below the condition: what follows the step."""
    words, kind = f"then {circuit.ending}", " stop" * circuit.halts
    wide = 7.2 * len(words) + 14
    picture.shapes.append(Rectangle(0, y - 4, wide, 18, f"tag{kind}", 9))
    picture.shapes.append(Text(wide / 2, y + 9, words, f"ending{kind}", "middle"))
    picture.width = max(picture.width, wide)


@dataclass(frozen=True)
class CircuitLayout:
    """Positions of the parts of a circuit. A box includes the space for constants at its left."""

    parts: tuple[Part, ...]
    boxes: tuple[Box, ...]
    wires: tuple[Wire, ...]
    drawing: Drawing


def layout_of(parts: Sequence[Part]) -> CircuitLayout:
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


def _laid_out(parts: tuple[Part, ...]) -> CircuitLayout:
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
    return CircuitLayout(parts, tuple(boxes), tuple(wires), draw(boxes, wires))


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


def _without_twist(layout: CircuitLayout, index: int) -> Part:
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


def _draw_parts(picture: Picture, layout: CircuitLayout, top: float) -> None:
    parts, drawing = layout.parts, layout.drawing
    wires = zip(layout.wires, drawing.paths, drawing.fresh, strict=True)
    for wire, path, fresh in sorted(wires, key=lambda one: one[0].source):  # wires of one source are one group
        target = parts[wire.target]
        points = [*path[fresh:-1], Point(path[-1].x + _room(parts, target), path[-1].y)]
        picture.arrow(_line(points, top), "kept" * target.kept, wire.source)
    for point in drawing.branches:
        picture.shapes.append(Circle(point.x, point.y + top, 2.4, "branch"))
    for index, (part, box, corner) in enumerate(zip(parts, layout.boxes, drawing.corners, strict=True)):
        _draw_part(picture, index, part, box, Point(corner.x, corner.y + top), _room(parts, part))
    picture.width = max(picture.width, drawing.width)
    picture.height = top + drawing.height + 4


def _draw_part(picture: Picture, index: int, part: Part, box: Box, corner: Point, room: int) -> None:
    x, wide = corner.x + room, box.width - room
    kind = "register" if part.kind != "module" else "" if part.memory == "nothing" else part.memory
    round_ = 4 if part.kind == "module" else 15
    shapes = picture.shapes
    shapes.append(Rectangle(x, corner.y, wide, box.height, f"box {kind}".strip(), round_, index))
    middle = x + (wide + 12 * _has_labels(part)) / 2
    prime = "\u2032" if part.kind == "after" else ""
    shapes.append(Text(middle, corner.y + box.height / 2 + 4.5, part.name + prime, "label", "middle"))
    if part.turn is not None:
        shapes.append(Text(x + wide - 4, corner.y + 10, str(part.turn), "turn", "end"))
    for given, below in zip(part.inputs, box.inputs, strict=True):
        y = corner.y + below
        if given.label:
            shapes.append(Text(x + 6, y + 4, given.label, "argument"))
        if given.source is None:
            centre = corner.x + 12
            picture.arrow([(centre + 8, y), (x, y)], "")
            shapes.append(Circle(centre, y, 8, "constant"))
            shapes.append(Text(centre, y + 4, str(given.constant), "digit", "middle"))


def _line(points: Sequence[Point], top: float) -> list[tuple[float, ...]]:
    """A path of horizontal pieces and bends that begin and end horizontally."""
    line: list[tuple[float, ...]] = [(points[0].x, points[0].y + top)]
    for a, b in zip(points, points[1:], strict=False):
        middle = (a.x + b.x) / 2
        bend = () if a.y == b.y else (middle, a.y + top, middle, b.y + top)
        line.append((*bend, b.x, b.y + top))
    return line


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
