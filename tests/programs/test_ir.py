"""An invalid program is refused when it is made, and every problem is named."""

import itertools
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from nram.errors import UsageError
from nram.limits import StepLimit
from nram.programs.check import find_problems
from nram.programs.ir import Constant, Evidence, Operation, Output, Program, ProgramError, Register, Row

KEEP = (Register(0), Register(1))
ANY = (None, None)
GOOD_ROW = Row(ANY, (Operation("READ", (Register(0),)), Operation("WRITE", (Register(1), Output(0)))), KEEP)
GOOD = Program(("r1", "r2"), ((GOOD_ROW,),))
EVIDENCE = Evidence("random", "copy", (1, 50), (0, 3), 1000, ("T", "2T", "20n+200"), True, GOOD.fingerprint)


def problems_of(**changes: Any) -> tuple[str, ...]:
    with pytest.raises(ProgramError) as caught:
        replace(GOOD, **changes)
    assert isinstance(caught.value, UsageError)
    assert str(caught.value).count("\n") == len(caught.value.problems[:20])
    return caught.value.problems


def with_row(**changes: Any) -> dict[str, Any]:
    return {"states": ((GOOD_ROW,), (GOOD_ROW, replace(GOOD_ROW, **changes)))}


HUGE = 10**6000  # Python refuses to print it
ROWS = {
    "an unknown module": ({"operations": (Operation("JUMP"),)}, "operation 1 is 'JUMP'"),
    "too few arguments": ({"operations": (Operation("ADD", (Register(0),)),)}, "ADD takes 2 arguments, not 1"),
    "too many arguments": ({"operations": (Operation("ZERO", (Register(0),)),)}, "ZERO takes 0 arguments, not 1"),
    "a register from nowhere": ({"operations": (Operation("INC", (Register(2),)),)}, "operation 1: a wire from reg"),
    "a negative register": ({"registers": (Register(-1), Register(1))}, "new value of r1: a wire from register 0"),
    "its own output": ({"operations": (Operation("INC", (Output(0),)),)}, "operation 1: a wire from output 1"),
    "a later output": ({"operations": (Operation("INC", (Output(1),)), Operation("ONE"))}, "a wire from output 2"),
    "a negative output": ({"operations": (Operation("ONE"), Operation("INC", (Output(-1),)))}, "operation 2: a wire"),
    "an output that is not there": ({"registers": (Register(0), Output(2))}, "new value of r2: a wire from output 3"),
    "a constant that is too large": ({"registers": (Constant(3), Register(1))}, "new value of r1: the constant 3"),
    "a negative constant": ({"registers": (Constant(-1), Register(1))}, "the constant -1"),
    "a constant too large to print": ({"registers": (Constant(HUGE), Register(1))}, "the constant a huge int"),
    "a wire too large to print": ({"registers": (Output(HUGE), Register(1))}, "a wire from output a huge int"),
    "too few conditions": ({"when": (None,)}, "it has 1 conditions for 2 registers"),
    "too many conditions": ({"when": (None,) * 3}, "it has 3 conditions for 2 registers"),
    "too few new values": ({"registers": (Register(0),)}, "it gives 1 new values for 2 registers"),
    "a state that does not exist": ({"next_state": 2}, "it goes on in state 2, which does not exist"),
    "a negative state": ({"next_state": -1}, "it goes on in state -1"),
    "too many operations": ({"operations": (Operation("ZERO"),) * 1025}, "it has 1025 operations"),
}


@pytest.mark.parametrize("case", ROWS)
def test_a_wrong_row_is_named_with_its_state_and_row(case):
    change, words = ROWS[case]
    (problem,) = problems_of(**with_row(**change))
    assert problem.startswith("state 1, row 2: ") and words in problem


TYPES = {
    "conditions of another type": ({"when": (0, None)}, "when[0] is 0, not of type bool or None"),
    "conditions in a list": ({"when": [None, None]}, "when is [None, None], not of type tuple"),
    "a new value of another type": ({"registers": (0, Register(1))}, "registers[0] is 0"),
    "new values in a list": ({"registers": list(KEEP)}, "registers is [Register(index=0), Register(index=1)]"),
    "an operation of another type": ({"operations": ("ZERO",)}, "operations[0] is 'ZERO', not of type Operation"),
    "no operations at all": ({"operations": None}, "operations is None"),
    "a module of another type": ({"operations": (Operation(7),)}, "operations[0].module is 7"),  # pyright: ignore
    "arguments in a list": ({"operations": (Operation("INC", [Register(0)]),)}, "operations[0].arguments is [Register"),  # pyright: ignore
    "an argument of another type": ({"operations": (Operation("INC", ("r1",)),)}, "operations[0].arguments[0] is 'r1'"),  # pyright: ignore
    "a wire's index of another type": ({"registers": (Register("0"), Register(1))}, "registers[0].index is '0'"),  # pyright: ignore
    "a truth value for a number": ({"registers": (Constant(True), Register(1))}, "registers[0].value is True"),
    "halt of another type": ({"halt": 1}, "halt is 1, not of type bool"),
    "a next state of another type": ({"next_state": "1"}, "next_state is '1'"),
    "a truth value for a state": ({"next_state": True}, "next_state is True"),
}


@pytest.mark.parametrize("case", TYPES)
def test_a_part_of_another_type_is_named_with_its_path(case):
    change, words = TYPES[case]
    (problem,) = problems_of(**with_row(**change))
    assert problem.startswith(f"states[1][1].{words}")


WHOLE = {
    "no registers": ({"registers": ()}, "it has 0 registers"),
    "too many registers": ({"registers": tuple(f"r{i}" for i in range(17))}, "it has 17 registers"),
    "registers in a list": ({"registers": ["r1", "r2"]}, "registers is ['r1', 'r2'], not of type tuple"),
    "a register without a name": ({"registers": ("r1", "")}, "'' is not a valid register name"),
    "a register's name of another type": ({"registers": ("r1", 2)}, "registers[1] is 2"),
    "two registers of one name": ({"registers": ("r1", "r1")}, "two registers have the name 'r1'"),
    "a register called like a module": ({"registers": ("r1", "add")}, "'add' is not a valid register name"),
    "a register called like a keyword": ({"registers": ("r1", "when")}, "'when' is not a valid register name"),
    "a register called like an output": ({"registers": ("r1", "o12")}, "'o12' is not a valid register name"),
    "a register called by a foreign digit": ({"registers": ("r1", "r٣")}, "is not a valid register name"),
    "no states": ({"states": ()}, "it has 0 states"),
    "too many states": ({"states": ((GOOD_ROW,),) * 1025}, "it has 1025 states"),
    "states in a list": ({"states": [(GOOD_ROW,)]}, "states is"),
    "rows in a list": ({"states": ([GOOD_ROW],)}, "states[0] is"),
    "a row of another type": ({"states": ((None,),)}, "states[0][0] is None, not of type Row"),
    "a state without rows": ({"states": ((),)}, "state 0: no row applies when r1 = 0, r2 = 0"),
    "a name of two lines": ({"name": "a\nb"}, r"'a\nb' is not a valid program name"),
    "a name with spaces around": ({"name": " a"}, "' a' is not a valid program name"),
    "no name": ({"name": ""}, "'' is not a valid program name"),
    "a name of another type": ({"name": None}, "name is None"),
    "a task of two lines": ({"task": "a\u2028b"}, "is not a valid task name"),
    "a task of another type": ({"task": 1}, "task is 1, not of type str or None"),
    "an unknown origin": ({"origin": "found"}, "origin 'found' is unknown"),
    "an origin of another type": ({"origin": None}, "origin is None"),
    "a negative limit": ({"limit": StepLimit(-1, 0)}, "the limit T(n) has a part"),
    "a limit of ten digits": ({"limit": StepLimit(0, 10**9)}, "the limit T(n) has a part"),
    "a limit of another type": ({"limit": 6}, "limit is 6"),
    "a limit with a fraction": ({"limit": StepLimit(2, 1.5)}, "limit.constant is 1.5"),  # pyright: ignore
    "a limit that is needed and not there": ({"needs_limit": True}, "it needs its limit T(n), but has none"),
    "needs_limit of another type": ({"needs_limit": 0}, "needs_limit is 0"),
    "made as an object": ({"made": {"a": "b"}}, "made is {'a': 'b'}, not of type tuple"),
    "made without pairs": ({"made": (("a",),)}, "made[0] is ('a',), not of type tuple[str, str]"),
    "made of other types": ({"made": (("a", 1),)}, "made[0][1] is 1"),
    "made with a colon": ({"made": (("a:b", "c"),)}, "'made' has the pair 'a:b', 'c'"),
    "made with an empty value": ({"made": (("a", ""),)}, "'made' has the pair 'a', ''"),
    "made twice": ({"made": (("a", "b"), ("a", "c"))}, "'made' has 'a' twice"),
    "evidence of another type": ({"verified": ("yes",)}, "verified[0] is 'yes'"),
    "evidence of another program": (
        {"verified": (replace(EVIDENCE, fingerprint="00"),)},
        "its evidence belongs to another program",
    ),
}


@pytest.mark.parametrize("case", WHOLE)
def test_a_wrong_whole_is_named(case):
    change, words = WHOLE[case]
    (problem,) = problems_of(**change)
    assert words in problem


PROOFS = {
    "method": ("guess", "the method 'guess'"),
    "task": ("my task", "'my task' is not a valid task name"),
    "complexity": ((5, 1), "complexity is (5, 1)"),
    "extra_memory": ((0, 1, 2), "extra_memory is (0, 1, 2)"),
    "instances": (-1, "instances is -1"),
    "limits": (("T", "2 T"), "limits is ('T', '2 T')"),
    "halts": (None, "halts is None"),
    "fingerprint": ([], "fingerprint is []"),
}


@pytest.mark.parametrize("part", PROOFS)
def test_wrong_evidence_is_named_with_its_number(part):
    value, words = PROOFS[part]
    (problem,) = problems_of(verified=(EVIDENCE, replace(EVIDENCE, **{part: value})))
    assert problem.startswith(("verified, entry 2: ", f"verified[1].{part} is")) and words in problem
    (problem,) = problems_of(verified=(replace(EVIDENCE, **{part: 7.5}),))
    assert problem.startswith(f"verified[0].{part} is 7.5")


def test_all_problems_are_named_at_once():
    row = Row((True, None), (Operation("X"), Operation("INC")), (Register(0), Output(5)), next_state=9)
    problems = problems_of(registers=("r1", "when"), name="", origin="found", states=((row,), (GOOD_ROW, row), ()))
    expected = ["''", "origin 'found'", "'when'"]
    expected += [f"state 0, row 1: {what}" for what in ("it goes on in state 9", "operation 1", "operation 2", "new")]
    expected += ["state 0: no row applies when r1 > 0, when = 0"]
    expected += [f"state 1, row 2: {what}" for what in ("it goes on in state 9", "operation 1", "operation 2", "new")]
    expected += ["state 2: no row applies"]
    assert [problem[: len(words)] for problem, words in zip(problems, expected, strict=True)] == expected


def test_a_long_list_of_problems_is_cut_in_the_message_only():
    operations = (Operation("X"),) * 100
    with pytest.raises(ProgramError) as caught:
        replace(GOOD, states=((replace(GOOD_ROW, operations=operations),),))
    assert len(caught.value.problems) == 100
    assert str(caught.value).endswith("and 80 more") and str(caught.value).count("\n") == 21


def test_messages_hold_nothing_that_a_terminal_obeys():
    with pytest.raises(ProgramError) as caught:
        Program(("r1",), GOOD.states, name="\x1b[2J")
    error = ProgramError(["a \x1b[31m \ud800 \u202e"], "file\r")
    assert "\\x1b" in str(caught.value) and str(error).replace("\n", "").isprintable()


def test_missing_flags_are_found_wherever_they_are():
    rng = Random(5)
    found = 0
    for _ in range(400):
        count = rng.randint(1, 5)
        patterns = [tuple(rng.choice((True, False, None)) for _ in range(count)) for _ in range(rng.randint(1, 9))]
        new = tuple(map(Register, range(count)))
        rows = tuple(Row(pattern, (), new) for pattern in patterns)
        every = itertools.product((True, False), repeat=count)
        missing = [flags for flags in every if not any(row.applies(flags) for row in rows)]
        names = tuple(f"r{i}" for i in range(count))
        try:
            program = Program(names, (rows,))
        except ProgramError as error:
            found += 1
            conditions = error.problems[0].removeprefix("state 0: no row applies when ").split(", ")
            assert tuple(condition.endswith("= 0") for condition in conditions) in missing
        else:
            assert not missing
            for flags in itertools.product((True, False), repeat=count):
                chosen = program.row_for(0, flags)
                assert [row.applies(flags) for row in rows][: chosen + 1] == [False] * chosen + [True]
    assert 50 < found < 350


@pytest.mark.parametrize("shape", ["all but one", "late conditions", "random"])
def test_no_arrangement_of_rows_makes_the_check_slow(shape):
    """Up to 65,536 cases; naive searches split on registers that do not matter."""
    rng = Random(1)
    count = 13 if shape == "all but one" else 16
    names, keep = tuple(f"r{i}" for i in range(count)), tuple(map(Register, range(count)))
    if shape == "all but one":
        patterns = list(itertools.product((True, False), repeat=count))[1:]
    elif shape == "late conditions":
        patterns = [(None,) * 8 + tail for tail in itertools.product((True, False, None), repeat=8) if any(tail)]
    else:
        patterns = [tuple(rng.choices((True, False, None), (1, 1, 8), k=16)) for _ in range(5000)]
        patterns = [pattern for pattern in patterns if False in pattern]
    with pytest.raises(ProgramError, match=r"state 0: no row applies when r0 [=>] 0, r1 .*, r1[25] [=>] 0$"):
        Program(names, (tuple(Row(pattern, (), keep) for pattern in patterns),))


def test_a_program_is_a_value():
    same = Program(("r1", "r2"), ((GOOD_ROW,),))
    assert same == GOOD and hash(same) == hash(GOOD) and find_problems(GOOD) == []
    with pytest.raises(AttributeError):
        GOOD.name = "other"  # pyright: ignore[reportAttributeAccessIssue]


def test_the_fingerprint_is_of_what_it_does_and_not_of_what_is_said():
    said = replace(GOOD, name="x", task="copy", origin="trained", limit=StepLimit(1, 2), made=(("a", "b"),))
    assert said.fingerprint == GOOD.fingerprint
    halting = replace(GOOD, states=((replace(GOOD_ROW, halt=True),),))
    renamed = replace(GOOD, registers=("a", "b"))
    assert len({GOOD.fingerprint, halting.fingerprint, renamed.fingerprint}) == 3
    assert replace(said, verified=(EVIDENCE,)).verified == (EVIDENCE,)
