"""Circuits: what is drawn is what the row does, and the drawing can be read."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, replace

import pytest

from nram.errors import UsageError
from nram.pictures.circuit_graph import Circuit, Input, circuit_of
from nram.pictures.circuits import (
    MAX_OPERATIONS,
    MAX_ROWS,
    circuit_dot,
    circuit_svg,
    layout_of,
    program_dot,
    program_svg,
)
from nram.programs.interpret import Machine
from nram.programs.ir import MODULES, Constant, Operation, Output, Program, Register, Row
from nram.programs.text import from_text

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = """</svg><script>alert("x")</script> & 'q' \\" \\N ]]> --> é"""


def rows_of(program: Program) -> list[tuple[int, int]]:
    return [(state, row) for state, rows in enumerate(program.states) for row in range(len(rows))]


def one_row(*lines: str, registers: str = "r1 r2 r3") -> Program:
    return from_text("\n".join(["nram program 1", f"registers: {registers}", "always:", *lines]))


# ---- what is drawn


def carry_out(circuit: Circuit, names: tuple[str, ...], held: list[int], memory: list[int]) -> list[int]:
    """The registers after the step, computed by the drawn circuit alone; the memory is changed in place."""
    values: list[int] = []
    after = list(held)

    def value(given: Input) -> int:
        return given.constant if given.source is None else values[given.source]

    for part in circuit.parts:
        if part.kind == "before":
            values.append(held[names.index(part.name)])
        elif part.kind == "after":
            values.append(value(part.inputs[0]))
            after[names.index(part.name)] = values[-1]
        else:
            module = MODULES[part.name]
            output = module.integer(memory if part.memory != "nothing" else len(memory), *map(value, part.inputs))
            values.append(0 if part.memory == "writes" else output)
    return after


def test_the_drawn_circuit_does_what_the_row_does(random_programs):
    dropped = 0
    for rng, program in random_programs(60):
        for state, row in rows_of(program):
            size = rng.randint(3, 9)
            machine = Machine(program, [rng.randrange(size) for _ in range(size)])
            machine.registers = held = [rng.randrange(size) for _ in program.registers]
            memory = list(machine.memory)
            machine.compute(program.states[state][row])
            circuit = circuit_of(program, state, row)
            assert carry_out(circuit, program.registers, held, memory) == machine.registers
            assert memory == machine.memory
            dropped += sum(part.kind == "module" for part in circuit.parts) < len(program.states[state][row].operations)
    assert dropped > 50


def test_operations_whose_outputs_are_not_used_are_left_out_and_counted():
    program = one_row("unused = ADD(r1, r2)", "also = INC(unused)", "o = INC(r3)", "WRITE(r3, o)")
    circuit = circuit_of(program, 0, 0)
    assert [part.name for part in circuit.parts] == ["r3", "INC", "WRITE", "r3"]
    assert "2 operations whose outputs are not used: left out." in circuit.remarks


def test_registers_neither_read_nor_changed_are_left_out_and_named():
    circuit = circuit_of(one_row("r1 := 2"), 0, 0)
    assert [(part.kind, part.name) for part in circuit.parts] == [("after", "r1")]
    assert "r2, r3 are neither read nor changed." in circuit.remarks


def test_a_register_in_the_condition_is_tested():
    program = from_text("nram program 1\nregisters: r1 r2 r3\n\nwhen r2 = 0:\n    r1 := 2\notherwise:\n    halt\n")
    assert circuit_of(program, 0, 0).remarks == ("r2 is only tested.", "r3 is neither read nor changed.")


def test_a_register_that_is_read_and_kept_is_shown_on_both_sides():
    parts = circuit_of(one_row("r1 := r2"), 0, 0).parts
    assert [(part.kind, part.name, part.kept) for part in parts] == [
        ("before", "r2", False),
        ("after", "r1", False),
        ("after", "r2", True),
    ]


def test_wires_are_named_as_in_the_paper_where_their_order_matters():
    program = one_row(
        "a = READ(r1)",
        "b = LESS-THAN(a, r2)",
        "c = LESS-OR-EQUAL-THAN(b, r2)",
        "d = ADD(c, r1)",
        "e = SUB(d, r1)",
        "f = EQUALITY-TEST(e, r2)",
        "g = MAX(d, f)",
        "h = DEC(g)",
        "WRITE(h, a)",
    )
    labels = {part.name: [given.label for given in part.inputs] for part in circuit_of(program, 0, 0).parts}
    assert labels["READ"] == ["p"]
    assert labels["WRITE"] == ["p", "a"]
    assert labels["LESS-THAN"] == labels["LESS-OR-EQUAL-THAN"] == ["x", "y"]
    assert labels["SUB"] == ["a", "b"]
    assert labels["ADD"] == labels["MAX"] == labels["EQUALITY-TEST"] == ["", ""]
    assert labels["DEC"] == [""]


def test_modules_that_give_constants_are_drawn_as_constants():
    parts = circuit_of(one_row("two = TWO()", "o = ADD(two, r1)", "r1 := o"), 0, 0).parts
    assert [part.name for part in parts] == ["r1", "ADD", "r1"]
    assert parts[1].inputs[0] == Input(None, 2)


def test_the_order_of_accesses_is_told_only_where_a_write_comes_before_another_access():
    told = circuit_of(one_row("o = READ(r1)", "WRITE(r2, o)", "q = READ(r1)", "r1 := q"), 0, 0)
    assert [part.turn for part in told.parts if part.kind == "module"] == [1, 2, 3]
    plain = circuit_of(one_row("o = READ(r1)", "q = READ(o)", "WRITE(r2, q)"), 0, 0)
    assert all(part.turn is None for part in plain.parts)


# ---- how it is drawn


@dataclass(frozen=True)
class Rectangle:
    left: float
    top: float
    right: float
    bottom: float

    def touches(self, other: Rectangle) -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )

    def holds(self, x: float, y: float) -> bool:
        return self.left + 0.1 < x < self.right - 0.1 and self.top + 0.1 < y < self.bottom - 0.1


def shapes(svg: str) -> tuple[list[Rectangle], list[list[tuple[float, float]]]]:
    """The boxes, and points along the wires, of a picture of one circuit."""
    root = ElementTree.fromstring(svg)
    boxes = []
    for rect in root.iter(f"{SVG}rect"):
        if rect.get("class", "").startswith("box"):
            x, y, w, h = (float(rect.get(name, "")) for name in ("x", "y", "width", "height"))
            boxes.append(Rectangle(x, y, x + w, y + h))
    wires = [points_of(path.get("d", "")) for path in root.iter(f"{SVG}path") if "wire" in path.get("class", "")]
    return boxes, wires


def points_of(line: str) -> list[tuple[float, float]]:
    """Points along a path of M, H and C."""
    points: list[tuple[float, float]] = []
    for command, words in re.findall(r"([MHC])([^MHC]*)", line):
        numbers = [float(word) for word in words.split()]
        if command == "M":
            points.append((numbers[0], numbers[1]))
            continue
        x0, y0 = points[-1]
        for i in range(1, 21):
            t = i / 20
            if command == "H":
                points.append((x0 + t * (numbers[0] - x0), y0))
            else:
                x1, y1, x2, y2, x3, y3 = numbers
                a, b, c, d = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3
                points.append((a * x0 + b * x1 + c * x2 + d * x3, a * y0 + b * y1 + c * y2 + d * y3))
    return points


def test_boxes_do_not_overlap_and_wires_run_from_output_to_input_around_them(random_programs):
    drawn = 0
    for _, program in random_programs(40):
        for state, row in rows_of(program)[:3]:
            circuit = circuit_of(program, state, row)
            boxes, wires = shapes(circuit_svg(program, state, row))
            assert len(boxes) == len(circuit.parts)
            for i, box in enumerate(boxes):
                assert not any(box.touches(other) for other in boxes[:i])
            # Every input of every part has a wire that ends at its left side.
            ends = [wire[-1] for wire in wires]
            for part, box in zip(circuit.parts, boxes, strict=True):
                at = sorted({y for x, y in ends if abs(x - box.left) < 0.02 and box.top < y < box.bottom})
                assert len(at) == len(part.inputs)
            assert len(wires) == sum(len(part.inputs) for part in circuit.parts)
            # Every wire begins at the right side of a box, at a constant, or where another wire runs.
            on_wires = {(round(x), round(y)) for wire in wires for x, y in wire[1:]}
            for wire in wires:
                x, y = wire[0]
                at_box = any(abs(x - box.right) < 0.02 and box.top < y < box.bottom for box in boxes)
                constant = len({y for _, y in wire}) == 1 and wire[-1][0] - x < 12
                assert at_box or constant or (round(x), round(y)) in on_wires
                assert not any(box.holds(*point) for box in boxes for point in wire)
            drawn += len(wires)
    assert drawn > 1000


def test_every_wire_leads_from_its_own_source_to_its_own_input(random_programs):
    for _, program in random_programs(40):
        for state, row in rows_of(program)[:3]:
            layout = layout_of(circuit_of(program, state, row).parts)
            corners, boxes = layout.drawing.corners, layout.boxes
            for wire, path in zip(layout.wires, layout.drawing.paths, strict=True):
                assert layout.parts[wire.target].inputs[wire.port].source == wire.source
                start, end = corners[wire.source], corners[wire.target]
                source, target = boxes[wire.source], boxes[wire.target]
                assert (path[0].x, path[0].y) == (start.x + source.width, start.y + source.height / 2)
                assert (path[-1].x, path[-1].y) == (end.x, end.y + target.inputs[wire.port])
                assert [point.x for point in path] == sorted(point.x for point in path)


def test_a_picture_stands_alone_on_a_ground_of_its_own(copy_program):
    root = ElementTree.fromstring(circuit_svg(copy_program, 0, 1))
    ground = next(root.iter(f"{SVG}rect"))
    assert [ground.get(name) for name in ("class", "x", "y")] == ["ground", "0", "0"]
    assert (ground.get("width"), ground.get("height")) == (root.get("width"), root.get("height"))
    width, height = float(root.get("width", "")), float(root.get("height", ""))
    assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"
    boxes, wires = shapes(circuit_svg(copy_program, 0, 1))
    assert 0 < max(box.right for box in boxes) < width
    assert 0 < max(max(y for _, y in wire) for wire in wires) < height
    assert "http" not in ElementTree.tostring(root, encoding="unicode").replace("http://www.w3.org/2000/svg", "")


def test_the_same_row_gives_the_same_picture(random_programs):
    for _, program in random_programs(6):
        assert program_svg(program) == program_svg(replace(program))


def test_a_program_shows_every_row_with_its_condition_and_what_follows():
    program = from_text(
        "nram program 1\nname: two states\nregisters: r1\n"
        "state 0:\nwhen r1 = 0:\n r1 := 2\n next 1\notherwise:\n halt\n"
        "state 1:\nalways:\n o = DEC(r1)\n r1 := o\n next 0\n"
    )
    words = [text.text for text in ElementTree.fromstring(program_svg(program)).iter(f"{SVG}text")]
    for expected in ("two states", "state 0, row 1", "when r1 = 0", "then state 1", "state 0, row 2", "else"):
        assert expected in words
    for expected in ("then halt", "nothing changes", "state 1, row 1", "always", "then state 0", "DEC", "r1", "r1′"):
        assert expected in words


def test_a_row_after_the_first_says_that_the_rows_before_it_did_not_apply():
    program = from_text(
        "nram program 1\nregisters: a b\nwhen a = 0, b > 0:\n a := 1\nwhen b > 0:\n b := 0\notherwise:\n halt\n"
    )
    titles = [circuit_of(program, 0, row).title for row in range(3)]
    assert titles == ["when a = 0, b > 0", "else when b > 0", "else"]
    words = [text.text for text in ElementTree.fromstring(program_svg(program)).iter(f"{SVG}text")]
    assert [word for word in words if word in titles] == titles
    assert all(f"{row}: {title}" in program_dot(program) for row, title in zip((1, 2, 3), titles, strict=True))


def test_hostile_names_stay_names():
    program = replace(one_row("graph := node", registers="node graph edge"), name=HOSTILE)
    for svg in (circuit_svg(program, 0, 0), program_svg(program)):
        root = ElementTree.fromstring(svg)
        assert root.findtext(f"{SVG}title", "").startswith(HOSTILE)
        assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
            *("svg", "title", "style", "defs", "marker", "path", "rect", "g", "text", "circle")
        }
    assert "node" in circuit_dot(program, 0, 0)


# ---- for graphviz


STRING = r'"((?:[^"\\]|\\.)*)"'


def plain(quoted: str) -> str:
    return re.sub(r"\\(.)", r"\1", quoted)


def check_dot(dot: str) -> None:
    """Outside of strings there are only words, braces and signs of the language, and the braces match."""
    rest = re.sub(STRING, "S", dot)
    assert re.fullmatch(r"[\w\s{}\[\]=,;.>-]*", rest)
    depth = 0
    for sign in rest:
        depth += (sign == "{") - (sign == "}")
        assert depth >= 0
    assert depth == 0


def test_dot_has_a_node_for_every_part_and_an_edge_for_every_wire(random_programs):
    for _, program in random_programs(30):
        for state, row in rows_of(program)[:4]:
            circuit = circuit_of(program, state, row)
            dot = circuit_dot(program, state, row)
            check_dot(dot)
            nodes = re.findall(rf"^ *{STRING} \[label=", dot, re.MULTILINE)
            edges = re.findall(rf"{STRING} -> {STRING}", dot)
            constants = sum(given.source is None for part in circuit.parts for given in part.inputs)
            assert len(set(nodes)) == len(nodes) == len(circuit.parts) + constants or not circuit.parts
            assert len(edges) == sum(len(part.inputs) for part in circuit.parts)
            assert {end for edge in edges for end in edge} <= set(nodes)


def test_dot_quotes_hostile_names_and_keeps_rows_apart():
    program = replace(one_row("graph := node", registers="node graph edge"), name=HOSTILE)
    for dot in (circuit_dot(program, 0, 0), program_dot(program)):
        check_dot(dot)
        named = re.match(rf"digraph {STRING}", dot)
        assert named is not None and plain(named[1]) == HOSTILE
    several = program_dot(from_text("nram program 1\nregisters: a\nwhen a = 0:\n a := 1\notherwise:\n a := 2\n"))
    nodes = re.findall(rf"^ *{STRING} \[label=", several, re.MULTILINE)
    assert len(nodes) == len(set(nodes)) == 4


# ---- what is refused


def test_rows_that_do_not_exist_are_refused(copy_program):
    with pytest.raises(UsageError, match="no state 1: the program has only state 0"):
        circuit_svg(copy_program, 1, 0)
    with pytest.raises(UsageError, match="state 0 has no row 3: it has rows 1 to 2"):
        circuit_dot(copy_program, 0, 2)


def test_what_no_page_can_hold_is_refused_with_a_way_out():
    chain = [Operation("INC", (Register(0),))]
    chain += [Operation("INC", (Output(i),)) for i in range(MAX_OPERATIONS)]
    long = Program(("a",), ((Row((None,), tuple(chain), (Output(MAX_OPERATIONS),)),),))
    with pytest.raises(UsageError, match=r"\.dot"):
        circuit_svg(long, 0, 0)
    check_dot(circuit_dot(long, 0, 0))
    row = Row((None,), (), (Constant(1),))
    with pytest.raises(UsageError, match=f"{MAX_ROWS + 1} rows"):
        program_svg(Program(("a",), ((row,),) * (MAX_ROWS + 1)))
