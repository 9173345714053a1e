"""What is said of own modules that are wrong: the file, the line and the cure."""

from __future__ import annotations

from pathlib import Path

import pytest

from nram.errors import UsageError
from nram.extensions import get_module

EXAMPLES = Path(__file__).parents[2] / "src/nram/examples" / "modules"
HALVE = EXAMPLES / "halve.py"
MIDDLE = EXAMPLES / "middle.py"

# ---- what is refused


def refusal(path: Path) -> str:
    with pytest.raises(UsageError) as error:
        get_module(path)
    return str(error.value)


def written(**parts: str) -> str:
    """The text of a file with a module; its integer meaning begins in line 6."""
    whole = {"name": "'MINE'", "arguments": "('x', 'y')", "integer": "lambda M, x, y: x"} | parts
    fields = "\n".join(f"    {key}={value}," for key, value in whole.items())
    return f"import random\nfrom nram.modules import Module\nMODULE = Module(\n{fields}\n)\n"


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({"name": "'INC'"}, "there is already a module 'INC': give that of"),
        ({"name": "'mine'"}, "name is 'mine': use one word of capital letters"),
        ({"arguments": "('x', 'y', 'z')"}, "it has 3 arguments: a module has at most 2, so make two modules of it"),
        ({"arguments": "('x', 'x')"}, "give each a different letter"),
        ({"arguments": "'xy'"}, "arguments is 'xy': name them in a tuple"),
        ({"memory": "'reads'"}, "memory is 'reads': only READ and WRITE touch the memory, so leave it out"),
        ({"integer": "3"}, "integer is 3: make it a function"),
        ({"fuzzy": "3"}, "fuzzy is 3: make it a function, or leave it out"),
        (
            {"integer": "lambda M, x, y: x + y"},
            "mine.py, line 6: MINE(1, 2) with M = 3 gives 3, which leaves 0..M-1: take it modulo M, as (...) % M",
        ),
        ({"integer": "lambda M, x, y: x - y"}, "MINE(0, 1) with M = 3 gives -1, which leaves 0..M-1"),
        ({"integer": "lambda M, x, y: x / 2"}, "MINE(0, 0) with M = 3 gives 0.0: give a whole number, by // or int("),
        ({"integer": "lambda M, x, y: None"}, "gives None: give a whole number"),
        (
            {"integer": "lambda M, x, y: x // y"},
            "mine.py, line 6: MINE(0, 0) with M = 3 fails: ZeroDivisionError: integer division or modulo by zero: give "
            "a number for all arguments from 0 to M-1",
        ),
        (
            {"integer": "lambda M, x, y: 10**5000"},
            "gives a value of type int that cannot be printed, which leaves 0..M-1",
        ),
        (
            {"integer": "lambda M, x, y: type('Odd', (), {'__index__': lambda self: 1 // 0})()"},
            "MINE(0, 0) with M = 3 gives <",
        ),
        ({"integer": "lambda M, x, y: exit(3)"}, "MINE(0, 0) with M = 3 fails: SystemExit: 3"),
        ({"emit": "lambda b, x, y: exit(3)"}, "mine.py, line 7: emit fails: SystemExit: 3"),
        ({"integer": "lambda M, x: x"}, "MINE(0, 0) with M = 3 fails: TypeError"),
        ({"integer": "lambda M, x, y: x if M < 3000 else M"}, "with M = 3000 gives 3000, which leaves 0..M-1"),
        (
            {"fuzzy": "lambda xp, M, x, y: y"},
            "mine.py, line 7: fuzzy for M = 3 gives the value",
        ),
        ({"fuzzy": "lambda xp, M, x, y: x[:2]"}, "gives an array of shape (2,): give a vector of M numbers"),
        ({"fuzzy": "lambda xp, M, x, y: xp.no_such(x)"}, "mine.py, line 7: fuzzy fails: AttributeError"),
        (
            {"emit": "lambda b, x, y: y"},
            "mine.py, line 7: emit for MINE(0, 1) with M = 3 gives 1, and the integer meaning 0: mend one of them",
        ),
        ({"emit": "lambda b, x, y: x + y"}, "mine.py, line 7: emit fails: TypeError: unsupported operand"),
        ({"emit": "lambda b, x, y: b.sub(x, 0)"}, "builder.sub is given 0: write literals as builder.number(1)"),
        ({"emit": "lambda b, x, y: b.sub(b.add(b.add(x, x), x), b.add(x, x))"}, "outside of -M..2M-1: bring"),
        ({"emit": "lambda b, x, y: x if b.less(x, y) else x"}, "use builder.choose(condition, yes, no)"),
        ({"emit": "lambda b, x, y: b.choose(x, x, x)"}, "to choose by: compare by builder.less or builder.equal"),
        (
            {"emit": "lambda b, x, y: b.choose(b.less(b.sub(x, y), x), x, x)"},
            "builder.less is given -1: it takes only numbers from 0 up",
        ),
        ({"emit": "lambda b, x, y: b.read(x)"}, "it reads the memory, which only READ may do: leave builder.read out"),
        ({"emit": "lambda b, x, y: 0"}, "gives 0: give what a primitive of the builder gave"),
    ],
    ids=lambda part: next(iter(part)) if isinstance(part, dict) else "",
)
def test_a_module_that_does_not_do_its_part_is_told_with_the_cure(file, parts, told):
    assert told in refusal(file(written(**parts)))


def test_a_module_that_gives_now_this_now_that_is_refused(file):
    told = refusal(file(written(integer="lambda M, x, y: random.randrange(M)")))
    assert "and then" in told and "let it depend only on M and the arguments" in told


def test_files_without_a_module_are_refused(file, tmp_path):
    assert "defines no MODULE: end it with MODULE = Module(name=..., ...)" in refusal(file("X = 1\n"))
    assert "is a dict: make it a nram.modules.Module" in refusal(file("MODULE = {}\n", "other.py"))
    assert "there is no file" in refusal(tmp_path / "none.py")
    assert "line 2: SyntaxError" in refusal(file("\nMODULE = = 1\n", "broken.py"))


def test_two_modules_of_one_name_must_mean_the_same(file):
    first = get_module(HALVE)
    assert get_module(file(HALVE.read_text(), "copied.py")) is first
    other = HALVE.read_text().replace("x // 2", "x - x // 2").replace("emit=lambda b, x: b.divide(x, b.number(2)),", "")
    assert f"there is already a module HALVE, that of {HALVE}, which does something else" in refusal(file(other))


def test_a_module_that_was_never_tried_on_this_size_is_still_watched(file):
    module = get_module(file(written(integer="lambda M, x, y: x if M < 50 or M in (70, 3000) else M")))
    assert module.integer(20, 3, 4) == 3
    with pytest.raises(UsageError, match=r"mine.py, line 6: MINE\(1, 2\) with M = 60 gives 60, which leaves"):
        module.integer(60, 1, 2)
