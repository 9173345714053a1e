"""The text form: what a person writes is what is meant, and what is wrong is named with its line."""

import pytest

from nram.limits import StepLimit
from nram.programs.ir import Constant, Operation, Output, Program, ProgramError, Register, Row
from nram.programs.text import from_text

EXAMPLE = """\
nram program 1
name: double increment # 2
origin: written
limit: 2n+4, needed
made command: nram train copy --seed 1
registers: r1 counter

# two rows
when r1 = 0, counter > 0:
    o1 = READ(r1)
    o2 = INC(o1)   # the value
    WRITE(r1, o2)
    r1, counter := o2, r1
    halt
else:
    counter := 1
"""
HEAD = "nram program 1\nregisters: r1 r2\n"


def problems_of(text: str) -> tuple[str, ...]:
    with pytest.raises(ProgramError) as caught:
        from_text(text, "my file")
    assert str(caught.value).startswith("my file:\n  - ")
    return caught.value.problems


def test_the_example_means_what_it_says():
    program = from_text(EXAMPLE)
    write = Operation("WRITE", (Register(0), Output(1)))
    first = (Operation("READ", (Register(0),)), Operation("INC", (Output(0),)), write)
    assert program == Program(
        registers=("r1", "counter"),
        states=(
            (
                Row((True, False), first, (Output(1), Register(0)), halt=True),
                Row((None, None), (), (Register(0), Constant(1))),
            ),
        ),
        name="double increment # 2",
        limit=StepLimit(2, 4),
        needs_limit=True,
        made=(("command", "nram train copy --seed 1"),),
    )


def test_printing_gives_the_text_back_but_for_comments_and_spaces():
    bare = EXAMPLE.replace("# two rows\n", "").replace("   # the value", "")
    assert str(from_text(EXAMPLE)) == bare
    assert str(from_text(bare)) == bare


def test_commas_between_registers_are_spaces():
    spaced = next(line for line in EXAMPLE.splitlines() if line.startswith("registers:"))
    name, registers = spaced.split(": ")
    assert from_text(EXAMPLE.replace(spaced, f"{name}: {', '.join(registers.split())}")) == from_text(EXAMPLE)


def test_outputs_may_have_any_names_and_get_their_numbers_when_printed():
    text = HEAD + "always:\n  value=READ( r2 )\n  o1 = INC (value)\n  done = WRITE(r1, o1)\n  r1,r2:=done,value\n"
    program = from_text(text)
    assert str(program).split("always:\n")[1].split("\n") == [
        "    o1 = READ(r2)",
        "    o2 = INC(o1)",
        "    o3 = WRITE(r1, o2)",
        "    r1, r2 := o3, o1",
        "",
    ]
    assert from_text(str(program)) == program


def test_rows_after_the_first_begin_with_else_and_old_files_are_read_as_before():
    old = HEAD + "state 0:\nwhen r1 = 0:\n halt\nwhen r2 = 0:\n halt\notherwise:\n next 1\nstate 1:\nalways:\n halt\n"
    program = from_text(old)
    headings = [line for line in str(program).splitlines() if line.endswith(":") and not line.startswith("state")]
    assert headings == ["when r1 = 0:", "else when r2 = 0:", "else:", "always:"]
    assert from_text(str(program)) == program
    mixed = old.replace("otherwise:", "else:")
    assert from_text(mixed) == program


@pytest.mark.parametrize("line", ["else:", "else when r1 = 0:"])
def test_the_first_row_of_a_state_is_else_to_nothing(line):
    (problem,) = problems_of(HEAD + f"state 0:\nalways:\n halt\nstate 1:\n{line}\n halt\nelse:\n halt\n")
    assert problem.startswith("line 7: the first row of a state has nothing to be 'else' to")


def test_states_are_numbered_and_a_row_stays_in_its_own_unless_told():
    text = HEAD + "state 0:\nwhen r1 = 0:\n next 1\notherwise:\n halt\nstate 1:\nalways:\n r1 := 2\n"
    program = from_text(text)
    assert [[row.next_state for row in rows] for rows in program.states] == [[1, 0], [1]]
    assert from_text(str(program)) == program


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_ends_of_lines_and_empty_lines_do_not_matter(ending):
    assert from_text(ending * 3 + EXAMPLE.replace("\n", ending)) == from_text(EXAMPLE)


LIMITS = [("6", 0, 6), ("n", 1, 0), ("n+4", 1, 4), ("2n", 2, 0), ("2n+4", 2, 4), ("0", 0, 0), ("99999n", 99999, 0)]


@pytest.mark.parametrize(("text", "per_item", "constant"), LIMITS)
def test_limits_are_written_as_one_writes_them(text, per_item, constant):
    assert StepLimit.from_text(text) == StepLimit(per_item, constant)
    assert str(StepLimit(per_item, constant)) == text


@pytest.mark.parametrize("text", ["", "+4", "n4", "n+", "n-1", "2*n", "2n + 4", "4n+٣", "1234567890", "nn", "2n+4n"])
def test_other_words_are_no_limits(text):
    assert StepLimit.from_text(text) is None


WRONG_LINES = {
    "an unknown module": ("o1 = JUMP(r1)", "'JUMP' is not a module: they are READ"),
    "a module in small letters": ("o1 = read(r1)", "'read' is not a module"),
    "too few arguments": ("o1 = ADD(r1)", "ADD takes 2 arguments, not 1"),
    "too many arguments": ("o1 = INC(r1, r2)", "INC takes 1 arguments, not 2"),
    "an argument that is missing": ("o1 = ADD(r1,)", "'' is not a register"),
    "a wire from nowhere": ("o1 = INC(r3)", "'r3' is not a register, not an output before this line"),
    "its own output": ("o1 = INC(o1)", "'o1' is not a register, not an output before this line"),
    "a number that is no constant": ("r1 := 3", "'3' is not a register"),
    "a foreign digit": ("r1 := ٢", "'٢' is not a register"),
    "a constant by its module": ("r1 := ONE", "write the value 'ONE' as 1"),
    "an output called like a register": ("r1 = INC(r1)", "'r1' is a register: set it by 'r1 := ...'"),
    "an output called like a keyword": ("halt = INC(r1)", "'halt' already means something else"),
    "an output called like a number": ("1 = INC(r1)", "'1' already means something else"),
    "a register that does not exist": ("r3 := 1", "there is no register 'r3'"),
    "a register set twice": ("r1, r1 := 1, 2", "r1 is set twice"),
    "more registers than values": ("r1, r2 := 1", "2 registers and 1 values"),
    "a state that does not exist": ("next 1", "there is no state 1"),
    "a state called by a foreign digit": ("next ٠", "is not one of"),
    "a state of too many digits": ("next 1234567890", "is not one of"),
    "a line that is nothing": ("jump!", "'jump!' is not one of"),
    "a half line": ("o1 = ADD(r1", "is not one of"),
    "two operations in one line": ("o1 = INC(r1) o2 = INC(r1)", "is not one of"),
    "a condition that is none": ("when r1 = 1:", "'r1 = 1' is not a condition"),
    "a condition on nothing": ("when r3 = 0:", "there is no register 'r3'"),
    "two conditions on one register": ("when r1 = 0, r1 > 0:", "there are two conditions on r1"),
    "states out of order": ("state 2:", "state 2 stands where state 1 should"),
}


@pytest.mark.parametrize("case", WRONG_LINES)
def test_a_wrong_line_is_named_with_its_number(case):
    line, words = WRONG_LINES[case]
    found = problems_of(HEAD + f"always:\n\n    {line}\n")
    assert found[0].startswith("line 5: ") and words in found[0]


def test_what_stands_twice_or_in_the_wrong_place_is_named():
    text = HEAD + "r1 := 1\nalways:\n halt\n halt\n next 0\n next 0\n r1 := 1\n o1 = INC(r1)\n o1 = INC(r1)\n"
    beginnings = ["line 3: 'r1 := 1' stands outside", "line 6: this row halts already", "line 8: this row goes on in"]
    beginnings += ["line 10: operations stand before", "line 11: operations stand before", "line 11: 'o1' has a value"]
    assert [p[: len(b)] for p, b in zip(problems_of(text), beginnings, strict=True)] == beginnings


WRONG_HEADS = {
    "nothing": ("", ["the first line must be 'nram program 1'"]),
    "something else": ("copy\n", ["the first line must be"]),
    "another version": ("nram program 2\nregisters: ?", ["it has version 2, and this nram reads version 1"]),
    "no registers": ("nram program 1\nname: x\n", ["there is no line 'registers: r1 r2 ...'"]),
    "an empty list of registers": ("nram program 1\nregisters:\n", ["it has 0 registers"]),
    "too many registers": ("nram program 1\nregisters: " + "r " * 17, ["it has 17 registers"]),
    "no rows": (HEAD, ["there are no rows"]),
    "an unknown key": (
        "nram program 1\ncolour: red\n" + HEAD[15:],
        ["line 2: 'colour' is unknown", "there are no"],
    ),
    "no key": (
        "nram program 1\nalways:\nhalt",
        ["line 2: 'always' is unknown", "line 3: 'halt' should be", "there is no"],
    ),
    "a key given twice": ("nram program 1\nname: a\nname: b", ["line 3: 'name' is given twice", "there is no line"]),
    "a limit that is none": ("nram program 1\nlimit: soon", ["there is no line", "limit: 'soon' should be like"]),
    "a limit with another word": ("nram program 1\nlimit: 6, really", ["there is no line", "limit: '6, really'"]),
    "a proof that is none": ("nram program 1\nverified: yes", ["line 2: this is not in the form", "there is no line"]),
}


@pytest.mark.parametrize("case", WRONG_HEADS)
def test_a_wrong_header_is_named(case):
    text, beginnings = WRONG_HEADS[case]
    assert [p[: len(b)] for p, b in zip(problems_of(text), beginnings, strict=True)] == beginnings


def test_what_only_shows_in_the_whole_is_named_with_the_rest():
    text = "nram program 1\norigin: found\nregisters: r1 r1 add\nwhen r1 = 0:\n o1 = JUMP(r1)\n next 3\n"
    problems = problems_of(text)
    beginnings = ["line 5: 'JUMP'", "line 6: there is no state 3", "origin 'found'", "'add' is not a valid"]
    beginnings += ["two registers have the name 'r1'", "state 0: no row applies when r1 > 0, r1 = 0, add = 0"]
    assert [p[: len(b)] for p, b in zip(problems, beginnings, strict=True)] == beginnings


def test_evidence_of_another_program_is_refused():
    proof = "verified: exhaustive task=copy n=1..3 M=+0..+2 instances=12 limits=T,2T halts=yes program="
    program = from_text(EXAMPLE)
    text = EXAMPLE.replace("registers:", f"{proof}{program.fingerprint}\nregisters:")
    (evidence,) = from_text(text).verified
    assert (evidence.complexity, evidence.extra_memory, evidence.instances) == ((1, 3), (0, 2), 12)
    (problem,) = problems_of(text.replace("counter := 1", "counter := 2"))
    assert "its evidence belongs to another program" in problem and "nram verify" in problem


@pytest.mark.parametrize("line", ["x", "when ,,,:", "always:", "o1 = ZERO()", "r1 := 9", "state 0:", "# x"])
def test_a_million_lines_of_anything_are_answered(line):
    lines = [line] * (200_000 if line != "# x" else 1_000_000)
    assert problems_of(HEAD + "always:\n" + "\n".join([*lines, "!"]))


@pytest.mark.parametrize("part", ["a", " ", "#", "(", ",", "=", "r1,", "when ", "ADD(r1,", "\t:", "-"])
@pytest.mark.parametrize("before", ["", "when ", "o1 = ADD(", "r1 := "])
def test_a_line_of_megabytes_is_answered(before, part):
    text = HEAD + "always:\n" + before + part * (2_000_000 // len(part)) + "!"
    if before + part == "#":
        assert from_text(text) == from_text(HEAD + "always:\n")
    else:
        assert problems_of(text)
