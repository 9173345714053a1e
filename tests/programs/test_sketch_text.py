"""Sketches are read, printed and refused with their lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from nram.errors import UsageError
from nram.programs.files import read_program
from nram.programs.ir import Constant, Output, ProgramError, Register
from nram.programs.library import is_sketch_file, load_sketch
from nram.programs.sketch import HOLE, SketchOperation
from nram.programs.sketch_text import sketch_from_text
from nram.programs.text import from_text

EVERYTHING = """nram sketch 1
name: all kinds of holes
registers: r1 r2

state 0:
when r1 = 0, ?:
    ?
else when r1 ?, r2 = 0:
    o1 = READ(?)
    ?
    o2 = ?(o1, 2)
    o3 = ?
    o4 = ZERO()
    WRITE(r1, ?)
    ?
    r1, r2 := o2, ?
    halt ?
else when ?:
    halt
else:
    ?
    next ?

state 1:
always:
    o1 = WRITE(0, ?)
    r1 := o1
    next 0
"""


def _sketch(body: str, registers: str = "r1 r2") -> str:
    return f"nram sketch 1\nregisters: {registers}\n\n{body}"


def test_a_sketch_is_printed_as_it_is_written_and_read_again():
    sketch = sketch_from_text(EVERYTHING)
    assert str(sketch) == EVERYTHING
    assert sketch_from_text(str(sketch)) == sketch
    assert sketch.holes == EVERYTHING.count("?")


def test_what_the_holes_stand_for():
    first, second, third, last = sketch_from_text(EVERYTHING).states[0]
    assert first.anything and first.any_when and first.when == (True, None)
    assert second.when == (HOLE, True) and not second.any_when and second.open_conditions
    assert second.operations[0] == SketchOperation("READ", (HOLE,))
    assert second.operations[1] == SketchOperation(None, (Output(0), Constant(2)))
    assert second.operations[2] == SketchOperation(None, None)
    assert second.places == (1, 5) and second.registers == (Output(1), HOLE) and second.halt == HOLE
    assert third.halt is True and third.registers == (Register(0), Register(1)) and third.any_when
    assert last.next_state == HOLE and not last.anything and last.halt is False and not last.open_conditions


def test_names_and_comments_do_not_change_the_digest():
    one = sketch_from_text(_sketch("always:\n a = READ(?)\n r1 := a\n"))
    other = sketch_from_text(
        "nram sketch 1\nname: other\nregisters: r1 r2\n\nalways: # so\n b = READ(?)\n r1 := b # ?\n"
    )
    assert one.digest == other.digest and one.name == "sketch" and other.name == "other"
    assert one.digest != sketch_from_text(_sketch("always:\n a = INC(?)\n r1 := a\n")).digest
    assert one.in_short() == "always: o1 = READ(?); r1 := o1"


def test_a_sketch_is_open_if_nothing_but_conditions_is_written():
    assert sketch_from_text(_sketch("when r1 = 0:\n ?\nelse:\n ?\n")).is_open
    assert not sketch_from_text(_sketch("when r1 = 0:\n ?\nelse:\n halt\n")).is_open


WRONG = {
    "no hole": ("always:\n halt\n", "it has no '?', so nothing is left to search for: it is a program"),
    "an output": ("always:\n ? = READ(r1)\n", "line 5: a hole cannot stand there in '? = READ(r1)'"),
    "a name": ("always:\n ?(r1, r2)\n", "line 5: a module that is a hole has an output, so name it"),
    "a register set": ("always:\n ? := r1\n", "line 5: a hole cannot name a register"),
    "no arguments": ("always:\n a = ?()\n", "line 5: no module takes 0 arguments"),
    "three arguments": ("always:\n a = ?(r1, r1, ?)\n", "line 5: no module takes 3 arguments"),
    "a wrong number": ("always:\n a = READ(?, ?)\n", "line 5: READ takes 1 arguments, not 2"),
    "too few values": ("always:\n r1, r2 := ?\n", "line 5: 2 registers and 1 values"),
    "a place below": ("always:\n r1 := ?\n ?\n", "line 6: operations stand before the registers' new values"),
    "an operation below": ("always:\n r1 := 0\n a = ?\n", "line 6: operations stand before the registers' new values"),
    "two places": ("always:\n ?\n ?\n", "line 6: two lines '?' one after another mean the same as one"),
    "halt twice": ("always:\n halt\n halt ?\n", "line 6: this row halts already"),
    "next twice": ("always:\n next 0\n next ?\n", "line 6: this row has a 'next' already"),
    "no such state": ("always:\n next 1\n r1 := ?\n", "line 5: there is no state 1"),
    "a state": ("state ?:\nalways:\n halt\n", "line 4: 'state ?:' stands outside of a row"),
    "outside": ("?\n", "line 4: '?' stands outside of a row"),
    "a condition's register": ("when ? = 0:\n halt\nelse:\n ?\n", "line 4: '? = 0' is not a condition"),
    "a condition's number": ("when r1 ? 0:\n halt\nelse:\n ?\n", "write 'r1 = 0', 'r1 > 0', 'r1 ?' or '?'"),
    "two open conditions": ("when ?, ?:\n halt\nelse:\n ?\n", "line 4: one '?' stands for all further conditions"),
    "two on one": ("when r1 = 0, r1 ?:\n halt\nelse:\n ?\n", "line 4: there are two conditions on r1"),
    "an unknown name": ("always:\n a = ?(b, ?)\n", "line 5: 'b' is not a register, not an output before this line"),
    "not sure to apply": ("when r1 ?:\n ?\nelse when r1 > 0:\n ?\n", "no row is sure to apply when r1 = 0"),
    "not sure, any": ("when ?:\n ?\n", "end with 'else:', and '?' in it"),
    "in a value": ("always:\n a = READ(r1 ?)\n", "line 5: 'r1 ?' is not a register"),
}


@pytest.mark.parametrize("case", WRONG)
def test_problems_have_their_line(case):
    body, words = WRONG[case]
    with pytest.raises(ProgramError) as error:
        sketch_from_text(_sketch(body))
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nram sketch 2\nregisters: r1\n\nalways:\n ?\n", "it has version 2, and this nram reads version 1"),
        ("sketch", "the first line must be 'nram sketch 1'"),
        ("nram sketch 1\nname: x\n", "there is no line 'registers: r1 r2 ...'"),
        ("nram sketch 1\norigin: written\nregisters: r1\n\nalways:\n ?\n", "line 2: 'origin' is unknown"),
        ("nram sketch 1\nregisters: READ READ\n\nalways:\n ?\n", "'READ' is not a valid register name"),
        ("nram sketch 1\nregisters: ?\n\nalways:\n ?\n", "'?' is not a valid register name"),
    ],
)
def test_headers_that_are_wrong(text, words):
    with pytest.raises(ProgramError) as error:
        sketch_from_text(text)
    assert words in str(error.value)


def test_a_hole_in_a_program_is_refused_and_a_sketch_is_no_program(tmp_path: Path):
    text = EVERYTHING.replace("nram sketch 1", "nram program 1")
    with pytest.raises(ProgramError, match=r"line 6: '\?' is a hole, and a program has none.*'nram sketch 1'"):
        from_text(text)
    file = tmp_path / "a.nram"
    file.write_text("\n" + EVERYTHING)
    with pytest.raises(
        UsageError, match="is a sketch, a program with holes: 'nram search TASK --from FILE' fills them"
    ):
        read_program(file)


def test_a_sketch_is_given_by_object_text_or_file(tmp_path: Path):
    file = tmp_path / "a.nram"
    file.write_text(EVERYTHING)
    sketch = load_sketch(file)
    assert load_sketch(str(file)) == load_sketch(EVERYTHING) == load_sketch(sketch) == sketch
    assert is_sketch_file(str(file)) and not is_sketch_file("copy") and not is_sketch_file(str(tmp_path))
    with pytest.raises(UsageError, match="3 is no sketch"):
        load_sketch(3)  # pyright: ignore[reportArgumentType]
