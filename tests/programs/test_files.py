"""Programs in files: both forms bring the same program back, and no file, however hostile, does anything but that or
be refused."""

import copy
import json
import string
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nram.errors import NramError, UsageError
from nram.limits import StepLimit
from nram.programs.files import from_json, program_from, read_program, save_program, to_json, to_json_text
from nram.programs.ir import (
    Constant,
    Evidence,
    Operation,
    Output,
    Program,
    ProgramError,
    Register,
    Row,
    is_name,
    is_plain,
)
from nram.programs.text import from_text
from nram.tasks.layout import Layout

# ---- any program


names = st.text(string.ascii_letters + string.digits + "_", min_size=1, max_size=8).filter(is_name)
plain = st.text(min_size=1, max_size=20).map(str.strip).filter(is_plain)
sizes = st.integers(0, 10**9 - 1)
pairs = st.tuples(sizes, sizes).map(lambda pair: (min(pair), max(pair)))
headers = st.fixed_dictionaries(
    {
        "name": plain,
        "task": st.none() | plain,
        "origin": st.sampled_from(["trained", "repaired", "searched", "written"]),
        "made": st.dictionaries(plain.filter(lambda key: ":" not in key), plain, max_size=2).map(
            lambda made: tuple(made.items())
        ),
        "layout": st.none() | st.sampled_from(["x ->result values[] 0", "end:a a->b[] M=9"]).map(Layout.parse),
    }
)
limits = st.none() | st.builds(StepLimit, sizes, sizes)
proofs = st.builds(
    Evidence,
    method=st.sampled_from(["exhaustive", "symbolic", "random"]),
    task=plain.filter(lambda task: " " not in task),
    complexity=pairs,
    extra_memory=st.none() | pairs,
    instances=st.none() | st.integers(0, 10**12 - 1),
    limits=st.lists(st.sampled_from(["T", "2T", "20n+200", "every"]), min_size=1, max_size=3).map(tuple),
    halts=st.booleans(),
    fingerprint=st.just(""),
)


SLOW_OR_SHARED = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]


@settings(max_examples=150, deadline=None, derandomize=True, database=None, suppress_health_check=SLOW_OR_SHARED)
@given(
    seed=st.integers(0, 2**32),
    registers=st.lists(names, min_size=1, max_size=4, unique=True).map(tuple),
    header=headers,
    limit=limits,
    needed=st.booleans(),
    shown=st.lists(proofs, max_size=2),
)
def test_both_forms_parse_back_to_the_same_program(random_program, seed, registers, header, limit, needed, shown):
    program = replace(random_program(Random(seed), registers=len(registers)), registers=registers, **header)
    program = replace(
        program,
        limit=limit,
        needs_limit=needed and limit is not None,
        verified=tuple(replace(proof, fingerprint=program.fingerprint) for proof in shown),
    )
    for text in (str(program), to_json_text(program), json.dumps(to_json(program))):
        back = program_from(text)
        assert back == program and back.fingerprint == program.fingerprint
        assert (str(back), to_json_text(back)) == (str(program), to_json_text(program))
    assert json.loads(to_json_text(program)) == to_json(program)


# ---- files


KEEP = (Register(0), Register(1))
WORK = (Operation("READ", (Register(0),)), Operation("WRITE", (Register(1), Output(0))))
FIRST = Row((True, None), WORK, (Output(0), Constant(2)))
GOOD = Program(
    ("r1", "r2"),
    ((FIRST, Row((None, None), (), KEEP, halt=True, next_state=1)), (replace(FIRST, when=(None, None)),)),
    name="good",
    task="copy",
    origin="searched",
    limit=StepLimit(2, 4),
    made=(("command", "nram search copy"), ("seed", "1")),
)
PROOF = Evidence("random", "copy", (1, 50), (0, 3), 1000, ("T", "2T", "20n+200"), True, GOOD.fingerprint)
GOOD = replace(GOOD, verified=(PROOF, replace(PROOF, method="symbolic", extra_memory=None, instances=None)))


@pytest.mark.parametrize("name", ["program.json", "program.nram", "program.txt", "program"])
def test_what_was_saved_is_read_again(tmp_path, name):
    GOOD.save(tmp_path / name)
    assert read_program(tmp_path / name) == GOOD
    assert read_program(str(tmp_path / name)) == GOOD
    assert (tmp_path / name).read_text().startswith("nram program 1" if name[-4:] in ("nram", ".txt") else "{")


def test_a_mark_at_the_beginning_as_some_editors_write_it_is_no_problem(tmp_path):
    for text in (str(GOOD), to_json_text(GOOD)):
        (tmp_path / "program").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
        assert read_program(tmp_path / "program") == GOOD


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(NramError, match="cannot be read: No such file"):
        read_program(tmp_path / "nothing.json")
    with pytest.raises(UsageError, match="is a folder"):
        read_program(tmp_path)
    with pytest.raises(UsageError, match="is not a valid file name"):
        read_program("a\0b")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="it is not text"):
        read_program(tmp_path / "bytes")
    (tmp_path / "words").write_text("hello")
    with pytest.raises(ProgramError, match="words is not a program:\n.*neither JSON .* nor a text"):
        read_program(tmp_path / "words")
    with pytest.raises(UsageError, match="is too large for a program"):
        read_program("/dev/zero")
    with pytest.raises(NramError, match="cannot write"):
        save_program(GOOD, tmp_path / "nowhere" / "program.json")


# ---- strict reading of JSON


def change(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    value = copy.deepcopy(value)
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return value


def problems_of(value: Any) -> tuple[str, ...]:
    with pytest.raises(ProgramError) as caught:
        from_json(value, "my file")
    assert str(caught.value).startswith("my file:\n  - ")
    return caught.value.problems


R = ("states", 0, 1)  # the second row of the first state
V = ("verified", 1)
HERE, THERE = "state 0, row 2: ", "verified, entry 2: "
WRONG: dict[str, tuple[tuple[str | int, ...], Any, str]] = {
    "another version": (("nram_program",), 2, "it has version 2, and this nram reads version 1"),
    "a version with a fraction": (("nram_program",), 1.0, "it has version 1.0"),
    "a true version": (("nram_program",), True, "it has version True"),
    "an unknown key": (("zzz",), "red", "'zzz' is unknown: remove it, or correct its spelling"),
    "an unknown key in a row": ((*R, "jump"), 1, HERE + "'jump' is unknown"),
    "an unknown key in a proof": ((*V, "by"), 1, THERE + "'by' is unknown"),
    "a name that is none": (("name",), 7, "'name' is 7, not a text"),
    "a task that is none": (("task",), 7, "'task' is 7, not a text or null"),
    "an origin that is none": (("origin",), None, "'origin' is None, not a text"),
    "an unknown origin": (("origin",), "found", "origin 'found' is unknown"),
    "a limit that is a number": (("limit",), 6, "'limit' is 6, not a text or null"),
    "a limit that is none": (("limit",), "n^2", "'limit' is 'n^2': it should be like '6', 'n+4' or '2n+4'"),
    "needs_limit as a number": (("needs_limit",), 1, "'needs_limit' is 1, not true or false"),
    "made as a list": (("made",), [], "'made' is [], not an object"),
    "made of numbers": (("made", "seed"), 1, "'made'.seed is 1, not a text"),
    "made of two lines": (("made", "seed"), "1\n2", r"'made' has the pair 'seed', '1\n2'"),
    "verified as an object": (("verified",), {}, "'verified' is {}, not a list"),
    "a proof that is none": (V, "yes", THERE + "'yes' is not an object"),
    "an unknown method": ((*V, "method"), "guess", THERE + "'method' is 'guess', not one of inductive, exhaustive"),
    "a proof without complexity": ((*V, "complexity"), None, THERE + "'complexity' is None, not a list"),
    "a proof of one complexity": ((*V, "complexity"), [1], THERE + "'complexity' is [1], not a list of 2"),
    "a proof the wrong way round": ((*V, "complexity"), [3, 1], THERE + "complexity is (3, 1): give the smallest"),
    "a proof without an end": ((*V, "complexity"), [1, None], THERE + "complexity is (1, None): give the smallest"),
    "an inductive proof with an end": ((*V, "method"), "inductive", THERE + "an inductive proof is one for every n"),
    "a proof of a half": ((*V, "extra_memory"), [0, 0.5], THERE + "'extra_memory'.1 is 0.5, not a whole number"),
    "a proof of true instances": ((*V, "instances"), True, THERE + "'instances' is True, not a whole number or null"),
    "a proof without limits": ((*V, "limits"), [], THERE + "limits is ()"),
    "a proof of other limits": ((*V, "limits"), [6], THERE + "'limits'.0 is 6, not a text"),
    "a proof that perhaps halts": ((*V, "halts"), "yes", THERE + "'halts' is 'yes', not true or false"),
    "a proof of another program": ((*V, "fingerprint"), "00", "its evidence belongs to another program ('00', this is"),
    "registers as a text": (("registers",), "r1 r2", "'registers' is 'r1 r2', not a list"),
    "registers that are no texts": (("registers", 0), 1, "'registers'.0 is 1, not a text"),
    "no registers": (("registers",), [], "it has 0 registers"),
    "too many registers": (("registers",), ["r"] * 17, "it has 17 registers"),
    "states as an object": (("states",), {}, "'states' is {}, not a list"),
    "no states": (("states",), [], "it has 0 states"),
    "too many states": (("states",), [[]] * 1025, "it has 1025 states with 0 rows"),
    "too many rows": (("states", 1), [{}] * 65536, "it has 2 states with 65538 rows"),
    "a state that is none": (("states", 1), None, "state 1 is None, not a list of rows"),
    "a state without rows": (("states", 1), [], "state 1: no row applies when r1 = 0, r2 = 0"),
    "a row that is none": (R, [], HERE + "[] is not an object"),
    "conditions as a list": ((*R, "when"), [], HERE + "'when' is [], not an object"),
    "a condition that is none": (
        (*R, "when"),
        {"r1": "=1"},
        HERE + "the condition on 'r1' is '=1': use '=0'",
    ),
    "a condition on nothing": ((*R, "when"), {"r3": "=0"}, HERE + "a condition on 'r3', which is not a register"),
    "flags that are missed": ((*R, "when"), {"r2": "=0"}, "state 0: no row applies when r1 > 0, r2 > 0"),
    "operations as a text": ((*R, "operations"), "INC(r1)", HERE + "'operations' is 'INC(r1)', not a list"),
    "an operation as a text": ((*R, "operations"), ["ZERO"], HERE + "operation 1 is 'ZERO', not like"),
    "an empty operation": ((*R, "operations"), [[]], HERE + "operation 1 is [], not like"),
    "an operation on numbers": ((*R, "operations"), [["INC", 1]], HERE + "operation 1 is ['INC', 1], not like"),
    "an unknown module": ((*R, "operations"), [["JUMP"]], HERE + "operation 1 is 'JUMP', which is not a module"),
    "too few arguments": ((*R, "operations"), [["ADD", "r1"]], HERE + "operation 1: ADD takes 2 arguments, not 1"),
    "a wire from nowhere": ((*R, "operations"), [["INC", "r9"]], HERE + "operation 1: a wire from 'r9', which is not"),
    "its own output": ((*R, "operations"), [["INC", "o1"]], HERE + "operation 1: a wire from output 1"),
    "output 0": ((*R, "operations"), [["INC", "o0"]], HERE + "operation 1: a wire from 'o0'"),
    "a foreign digit": ((*R, "operations"), [["INC", "o١"]], HERE + "operation 1: a wire from 'o١'"),
    "too large a constant": ((*R, "operations"), [["INC", "3"]], HERE + "operation 1: a wire from '3'"),
    "new values as a text": ((*R, "registers"), "r1", HERE + "'registers' is 'r1', not a list"),
    "too few new values": ((*R, "registers"), ["r1"], HERE + "it gives 1 new values for 2 registers"),
    "a new value from nowhere": ((*R, "registers"), ["r1", "o1"], HERE + "new value of r2: a wire from output 1"),
    "a new value that is none": ((*R, "registers"), ["r1", None], HERE + "new value 2: a wire from None"),
    "halt as a number": ((*R, "halt"), 1, HERE + "'halt' is 1, not true or false"),
    "a next state as a text": ((*R, "next"), "1", HERE + "'next' is '1', not a whole number"),
    "a true next state": ((*R, "next"), True, HERE + "'next' is True, not a whole number"),
    "a state that does not exist": ((*R, "next"), 2, HERE + "it goes on in state 2, which does not exist"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_named_with_its_place(case):
    path, new, beginning = WRONG[case]
    (problem,) = problems_of(change(to_json(GOOD), path, new))
    assert problem.startswith(beginning)


REQUIRED = [("registers",), ("states",), (*R, "operations"), (*R, "registers")]
REQUIRED += [(*V, name) for name in to_json(GOOD)["verified"][0] if name != "extra_memory"]


@pytest.mark.parametrize("path", REQUIRED, ids=str)
def test_what_is_missing_is_named_with_its_place(path):
    value = to_json(GOOD)
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    place = THERE if path[0] == "verified" else HERE if len(path) > 1 else ""
    assert problems_of(value)[0].startswith(f"{place}'{path[-1]}' is")


def test_all_that_is_wrong_is_named_at_once():
    value = to_json(GOOD)
    for path, new in ((("name",), 7), (("zzz",), "red"), (("limit",), "n^2"), (("origin",), "found")):
        value = change(value, path, new)
    value = change(value, (*V, "halts"), 1)
    value = change(value, (*R, "operations"), [["JUMP"], ["ADD", "r1"], ["INC", "r9"], ["INC", "o9"], "ZERO"])
    value = change(value, (*R, "next"), 9)
    value = change(value, (*R, "halt"), 9)
    value = change(value, ("states", 1), [])
    expected = ["'zzz'", "'name'", "'limit'", THERE + "'halts'", "origin 'found'", "state 1: no row applies"]
    expected += [HERE + f"operation {number}" for number in range(1, 6)]
    expected += [HERE + "'halt'", HERE + "it goes on in state 9"]
    problems = problems_of(value)
    assert len(problems) == len(expected)
    assert all(any(problem.startswith(words) for problem in problems) for words in expected)


def test_of_two_members_of_one_name_neither_is_chosen():
    text = to_json_text(GOOD).replace('"halt": true', '"halt": true, "halt": false')
    with pytest.raises(ProgramError, match="an object has 'halt' twice"):
        program_from(text)


# ---- hostile files


def read_or_refuse(text: str) -> Program | None:
    try:
        return program_from(text)
    except UsageError as error:
        assert str(error)
        return None


HOSTILE = ["", " ", "\0", "\x1b[2J", "\ud800", "\u2028", "\ufeff", "٣", "²", "o", "o-1", "r1 r2", "NaN", "1e999", "-0"]
HOSTILE += ["9" * 5000, "0x1", "=", ":=", ":", ",", "(", ")", "#", '"', "[", "{", "null", "true", "state 0:", "next 0"]


@pytest.mark.parametrize("form", [str, to_json_text], ids=["text", "json"])
def test_damaged_files_are_read_or_refused(form, random_program):
    rng = Random(f"damage {form.__name__}")
    whole = 0
    for _ in range(1500):
        text = form(GOOD if rng.random() < 0.5 else random_program(rng, registers=2, operations=2))
        for _ in range(rng.choice((1, 1, 2, 5))):
            start = rng.randrange(len(text) + 1)
            end = min(len(text), start + rng.choice((0, 1, 1, 2, 10, 100)))
            piece = rng.choice([text[start:end] * 2, "", rng.choice(HOSTILE), chr(rng.randrange(0x300)), text[:50]])
            text = text[:start] + piece + text[end:]
        program = read_or_refuse(text)
        if program is not None:
            whole += 1
            assert from_text(str(program)) == from_json(to_json(program)) == program
    assert 10 < whole < 1400


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Of every value inside a JSON value."""
    if path:
        yield path
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*path, key))


STRANGE = [None, True, 0, -1, 2**70, 10**4000, 0.5, float("nan"), float("inf"), "", "r1", "o1", "\ud800", "x" * 10**5]
STRANGE += [[], {}, [[]], [{}], {"": None}, {"r1": "=0"}, [None] * 1000, ["r1"] * 20, [["ZERO"]] * 2000]


def test_any_value_in_any_place_is_read_or_refused():
    value = to_json(GOOD)
    for path in places(value):
        for strange in STRANGE:
            try:
                program = from_json(change(value, path, strange))
            except ProgramError as error:
                assert error.problems
            else:
                assert from_text(str(program)) == program


DEEP = "[" * 900 + "]" * 900


@pytest.mark.parametrize("text", ["[" * 10**6, '{"a":' * 10**5, DEEP, f'{{"nram_program": 1, "states": {DEEP}}}'])
def test_deep_nesting_is_refused(text):
    with pytest.raises(ProgramError):
        program_from(text)


@pytest.mark.parametrize("size", [1, 100, 100_000])
def test_random_bytes_are_refused(tmp_path, size):
    rng = Random(size)
    for _ in range(30):
        (tmp_path / "program").write_bytes(rng.randbytes(size))
        with pytest.raises(UsageError):
            read_program(tmp_path / "program")


def test_huge_lists_are_refused_without_looking_at_everything():
    value = to_json(GOOD)
    for path in (("registers",), R, (*R, "operations"), (*R, "registers"), ("verified",), (*V, "limits"), ("states",)):
        for entry in (0, "r1", [], {}):
            assert problems_of(change(value, path, [entry] * 200_000))
