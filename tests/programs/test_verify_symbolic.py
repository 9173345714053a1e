"""Proofs: what is right is proven, what is wrong is refuted, and nothing is claimed that was not shown."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import z3

from nram.extensions import get_task, task_names
from nram.limits import StepLimit
from nram.programs.files import read_program
from nram.programs.interpret import interpret
from nram.programs.ir import Program
from nram.programs.text import from_text, to_text
from nram.programs.verify import verify
from nram.programs.verify.machine import Facts
from nram.programs.verify.symbolic import Outcome, prove
from nram.programs.verify.verification import verification
from nram.tasks import Task
from nram.tasks.base import SymbolicCase, Term

HERE = Path(__file__).parent
EASY = ("access", "increment", "copy", "reverse", "swap")


def program_of(words: str) -> Program:
    return read_program(HERE / f"{words}.nram")


def proof(program: Program, n: int, size: int | None = None, task: Task | None = None, **how: Any) -> Outcome:
    task = task or get_task(program.task or "")
    return prove(verification(program, task), n, size, how.pop("seconds", 60.0), **how)


def fails(program: Program, memory: list[int], limit: int) -> bool:
    """By the interpreter and the oracle."""
    expected, cells = get_task(program.task or "").oracle(memory)
    ending = interpret(program, memory, limit)
    return any(ending.memory[cell] != expected[cell] for cell in cells)


# ---- right programs


@pytest.mark.parametrize("name", EASY)
@pytest.mark.parametrize("split", [False, True], ids=["merged", "split"])
def test_easy_tasks_are_proven_for_every_memory_size(name, split):
    for n in range(get_task(name).min_complexity, 7):
        assert proof(program_of(f"right/{name}"), n, split=split) == Outcome(("every",), halts=True)


@pytest.mark.parametrize("name", [name for name in task_names() if name not in EASY])
@pytest.mark.parametrize("split", [False, True], ids=["merged", "split"])
def test_the_other_tasks_are_proven_for_every_memory_size(name, split):
    for n in (1, 2, 3):
        assert proof(program_of(f"right/{name}"), n, split=split) == Outcome(("every",), halts=True)


@pytest.mark.parametrize("name", task_names())
def test_one_memory_size_is_proven_alone(name):
    task = get_task(name)
    n = max(2, task.min_complexity)
    for more in (0, 1, 5):
        assert proof(program_of(f"right/{name}"), n, task.least_memory(n) + more).proven == ("every",)


def test_cells_outside_the_output_may_be_overwritten():
    assert proof(program_of("right/untidy_copy"), 4).proven == ("every",)


@pytest.mark.parametrize("name", ["access", "increment", "copy"])
def test_idling_is_right_under_every_limit_and_is_not_halting(name):
    for n in (1, 2, 6):
        assert proof(program_of(f"idle/{name}"), n) == Outcome(("every",), halts=False)


def test_a_pointer_that_wanders_on_is_followed_until_it_comes_round():
    program = program_of("idle/wanderer")
    assert proof(program, 2, 6) == Outcome(("every",), halts=False)
    # On a memory too large to come round in time, the three limits are proven, and no more.
    assert proof(program, 2, 1000) == Outcome(("T", "2T", "20n+200"), halts=False)
    # For all sizes at once it takes as many ways as there are sizes; up to T(n) it does not.
    assert proof(program, 2, beyond=False) == Outcome(("T",), halts=False)


def test_the_programs_own_limit_counts():
    program = program_of("right/copy")
    for constant in (2, 1):  # the array is there after n + 1 steps, and it halts in the next
        assert proof(replace(program, limit=StepLimit(1, constant)), 3) == Outcome(("every",), halts=True)
    ((memory, limit),) = proof(replace(program, limit=StepLimit(1, 0)), 3).refuted
    assert (limit, fails(program, memory, limit)) == (3, True)


# ---- wrong programs


@pytest.mark.parametrize(
    ("name", "n", "size"),
    [
        ("last_element", 1, 3),
        ("one_value", 1, 4),
        ("large_memory", 1, 17),
        ("fifth_element", 5, 11),
        ("too_early", 4, 5),
        ("never_begins", 2, 5),
        ("slow", 1, 7),
        ("third_place", 3, 7),
        ("hops", 4, 11),
        ("scan", 1, 6),
        ("tie", 2, 9),
        ("left_only", 3, 14),
    ],
)
@pytest.mark.parametrize("split", [False, True], ids=["merged", "split"])
def test_wrong_programs_are_refuted_at_the_smallest_size(name, n, size, split):
    program = program_of(f"wrong/{name}")
    task = get_task(program.task or "")
    for smaller in range(task.min_complexity, n):
        assert proof(program, smaller, split=split, beyond=False).proven
    ((memory, limit),) = proof(program, n, split=split).refuted
    assert (len(memory), limit) == (size, task.step_limit(n))
    assert fails(program, memory, limit)
    if size > task.least_memory(n):
        assert proof(program, n, size - 1).proven == ("every",)


def test_a_counterexample_has_the_smallest_values_that_fail():
    ((memory, _),) = proof(program_of("wrong/one_value"), 3).refuted
    assert memory == [4, 1, 1, 3, 0, 0, 0]  # 3 is the first to be written, and there are no smaller others


def test_a_counterexample_among_trash_is_a_legal_input():
    program = program_of("wrong/scan")
    task = get_task("listsearch")
    ((memory, limit),) = proof(program, 2, 8).refuted
    assert task.legal_inputs is not None
    assert memory in list(task.legal_inputs(2, 8))
    assert fails(program, memory, limit)


# ---- limits


def test_what_must_be_stopped_is_proven_at_its_limit_alone():
    program = program_of("stopped/access")
    outcome = proof(program, 3)
    assert outcome.proven == ("T",)
    ((memory, limit),) = outcome.refuted
    assert limit == 7  # the very first limit that is too large
    assert fails(program, memory, 7) and not fails(program, memory, 6)


def test_harm_between_the_three_limits_is_seen():
    program = program_of("stopped/alternating")
    memory = get_task("access").sample(4, 1, 0)[0].input
    assert [fails(program, memory, limit) for limit in (6, 12, 280, 7)] == [False, False, False, True]
    outcome = proof(program, 4)
    assert (outcome.proven, [limit for _, limit in outcome.refuted]) == (("T",), [7])


def test_harm_after_the_limit_may_depend_on_the_values():
    program = program_of("stopped/increment")
    outcome = proof(program, 3)
    ((memory, limit),) = outcome.refuted
    assert outcome.proven == ("T",)
    assert fails(program, memory, limit) and not fails(program, memory, get_task("increment").step_limit(3))


def test_a_slow_program_is_not_proven_for_every_memory_size_because_it_is_for_one():
    program = program_of("wrong/slow")
    assert proof(program, 1, 6) == Outcome(("every",), halts=True)
    assert proof(program, 1, 7).refuted
    assert proof(program, 1).proven == ()


def test_without_steps_nothing_can_be_right():
    outcome = proof(replace(program_of("right/copy"), limit=StepLimit(0, 0)), 2)
    ((_, limit),) = outcome.refuted
    assert (outcome.proven, limit) == ((), 0)


# ---- soundness: what must not be taken for a proof


def altered(task: Task, change: Callable[[SymbolicCase], SymbolicCase | None]) -> Task:
    """The task with other cases."""

    def symbolic(n: int, size: Term) -> Iterator[SymbolicCase]:
        assert task.symbolic is not None
        yield from filter(None, map(change, task.symbolic(n, size)))

    return replace(task, symbolic=symbolic)


def test_assumptions_that_contradict_each_other_prove_nothing():
    x = z3.Int("x")
    task = altered(get_task("swap"), lambda case: replace(case, assumptions=(*case.assumptions, x > 3, x < 4)))
    for program in ("wrong/never_begins", "right/swap"):
        outcome = proof(program_of(program), 3, task=task)
        assert outcome.proven == () and "assumptions" in outcome.why


def test_a_contradiction_in_one_of_many_cases_is_enough():
    def change(case: SymbolicCase) -> SymbolicCase:
        more = (z3.BoolVal(False),) if case.shape.startswith("1 ") else ()
        return replace(case, assumptions=(*case.assumptions, *more))

    outcome = proof(program_of("right/merge"), 2, task=altered(get_task("merge"), change))
    assert outcome.proven == () and "1 values in A" in outcome.why


def test_no_cases_prove_nothing():
    assert proof(program_of("right/swap"), 3, task=altered(get_task("swap"), lambda case: None)).proven == ()


def test_cells_at_one_address_prove_nothing():
    def change(case: SymbolicCase) -> SymbolicCase:
        x = z3.Int("x")
        return replace(case, cells=(*case.cells, (x, 1)), assumptions=(*case.assumptions, x >= 0, x <= 4))

    outcome = proof(program_of("right/copy"), 2, task=altered(get_task("copy"), change))
    assert outcome.proven == () and "distinct" in outcome.why


@pytest.mark.parametrize("low", [-1, 1])
def test_values_outside_the_memorys_range_prove_nothing(low):
    def change(case: SymbolicCase) -> SymbolicCase:
        x, size = z3.Int("x"), z3.Int("M")
        return replace(case, cells=(*case.cells, (4, x)), assumptions=(*case.assumptions, x >= low, x <= size))

    outcome = proof(program_of("right/access"), 2, task=altered(get_task("access"), change))
    assert outcome.proven == () and "within the memory" in outcome.why


def three_cubes() -> Any:
    """Whether three cubes can add up to 42 was open for decades, and z3 cannot tell."""
    x: Any = z3.Int("x")
    y: Any = z3.Int("y")
    z: Any = z3.Int("z")
    return x * x * x + y * y * y + z * z * z == 42


def test_what_the_solver_cannot_tell_is_neither_true_nor_false(monkeypatch):
    monkeypatch.setattr("nram.programs.verify.machine.MOST_SECONDS_A_QUESTION", 0.1)
    flag: Any = z3.Int("flag")
    facts = Facts((flag == z3.If(three_cubes(), 1, 0),), deadline=time.monotonic() + 60)
    assert facts.find_witness() == z3.sat
    assert [facts.decide(flag == value) for value in (0, 1, 2)] == [None, None, False]
    assert facts.assume(flag == 1)  # it goes on as if it were possible
    facts.back_to(0)
    assert not facts.assume(flag == 2)


def with_flag(condition: Any) -> Task:
    """Access, with 1 in cell 4 if the condition can hold, and 0 otherwise."""

    def change(case: SymbolicCase) -> SymbolicCase:
        flag = z3.Int("flag")
        assumptions = (*case.assumptions, flag == z3.If(condition, 1, 0))
        return replace(case, cells=(*case.cells, (4, flag)), assumptions=assumptions)

    return altered(get_task("access"), change)


def test_a_way_that_the_solver_cannot_exclude_is_followed(monkeypatch):
    monkeypatch.setattr("nram.programs.verify.machine.MOST_SECONDS_A_QUESTION", 0.1)
    program = from_text(  # right unless cell 4 holds something
        "nram program 1\ntask: access\nregisters: flag started\n\nwhen started = 0:\n    four = ADD(2, 2)\n"
        "    found = READ(four)\n    flag, started := found, 1\nwhen flag > 0:\n    halt\notherwise:\n"
        "    k = READ(0)\n    place = INC(k)\n    value = READ(place)\n    WRITE(0, value)\n    halt\n"
    )
    x: Any = z3.Int("x")
    assert proof(program, 2, 5, task=with_flag(x * 2 == 3)).proven == ("every",)
    assert proof(program, 2, 5, task=with_flag(x * 2 == 4)).refuted
    outcome = proof(program, 2, 5, task=with_flag(three_cubes()))
    assert (outcome.proven, outcome.refuted) == ((), ())
    assert "could not tell" in outcome.why


def test_no_time_is_no_proof():
    outcome = proof(program_of("right/copy"), 3, seconds=0.0)
    assert (outcome.proven, outcome.why) == ((), "out of time")


def test_time_that_ends_between_cases_is_no_proof():
    outcome = proof(program_of("right/walkbst"), 7, seconds=0.3)
    assert (outcome.proven, outcome.why) == ((), "out of time")


def test_memory_beyond_the_layout_belongs_to_the_input():
    # It adds what the last cell holds: 0 at the end of access, whatever M is, but a value where there is trash.
    text = (
        "nram program 1\ntask: {}\nregisters: r\n\nalways:\n    last = DEC(0)\n    extra = READ(last)\n"
        "    k = READ(0)\n    place = INC(k)\n    value = READ(place)\n    sum = ADD(value, extra)\n"
        "    WRITE(0, sum)\n    halt\n"
    )
    program = from_text(text.format("access"))
    assert proof(program, 2).proven == ("every",)

    def change(case: SymbolicCase) -> SymbolicCase:
        return replace(case, trash=z3.Function("trash", z3.IntSort(), z3.IntSort()))

    ((memory, limit),) = proof(program, 2, task=altered(get_task("access"), change)).refuted
    assert memory[-1] > 0 and fails(program, memory, limit)


def test_an_answer_that_is_not_confirmed_is_not_reported():
    # The cases expect something else than the oracle does: the solver refutes what the interpreter finds right.
    def change(case: SymbolicCase) -> SymbolicCase:
        return replace(case, expected=tuple((address, value + 1) for address, value in case.expected))

    report = verify(
        program_of("right/copy"),
        altered(get_task("copy"), change),
        budget=5,
        exhaustive_up_to=0,
        symbolic_up_to=1,
        largest=0,
        every_length=False,
    )
    assert (report.verdict, report.counterexample) == ("nothing shown", None)
    assert any("did not confirm" in skip.why for skip in report.skipped)


def test_what_was_written_last_counts_though_pointers_may_be_equal():
    # k may be 0, so that the second WRITE may meet cell 0: the third hides both.
    program = from_text(
        "nram program 1\ntask: access\nregisters: r\n\nalways:\n    k = READ(0)\n    place = INC(k)\n"
        "    value = READ(place)\n    WRITE(0, 1)\n    WRITE(k, 2)\n    WRITE(0, value)\n    halt\n"
    )
    assert proof(program, 3).proven == ("every",)
    swapped = to_text(program).replace("WRITE(o1, 2)\n    WRITE(0, o3)", "WRITE(0, o3)\n    WRITE(o1, 2)")
    ((memory, _),) = proof(from_text(swapped), 3).refuted
    assert memory[0] == 0


def test_trash_is_never_0_and_never_too_large():
    text = to_text(program_of("right/listsearch"))
    check = (
        "when {}, started = 0:\n    last = DEC(0)\n    trash = READ(last)\n    odd = {}\n    bad, seen := odd, 1\n"
        "when bad > 0:\n    halt\n"
    )
    for odd, proven in (
        ("EQUALITY-TEST(trash, 0)", True),
        ("LESS-THAN(last, trash)", True),
        ("EQUALITY-TEST(trash, last)", False),
        ("EQUALITY-TEST(trash, 1)", False),
    ):
        careful = text.replace("registers: ", "registers: bad seen ").replace(
            "when started = 0:", check.format("seen = 0", odd) + "when started = 0:"
        )
        outcome = proof(from_text(careful), 2)
        assert (outcome.proven, len(outcome.refuted)) == ((("every",), 0) if proven else ((), 1))


def test_trash_that_nobody_reads_is_still_legal():
    task = get_task("listsearch")
    program = from_text("nram program 1\ntask: listsearch\nregisters: r\n\nalways:\n    halt\n")
    ((memory, _),) = proof(program, 1, 7).refuted
    assert task.legal_inputs is not None
    assert memory in list(task.legal_inputs(1, 7))


def test_a_memory_that_still_changes_is_no_repetition():
    # State and register stay the same, and the last cell counts the steps until it comes round.
    program = from_text(
        "nram program 1\ntask: access\nregisters: r\n\nstate 0:\nalways:\n    k = READ(0)\n    place = INC(k)\n"
        "    value = READ(place)\n    WRITE(0, value)\n    next 1\n\nstate 1:\nalways:\n    last = DEC(0)\n"
        "    count = READ(last)\n    more = INC(count)\n    WRITE(last, more)\n    over = EQUALITY-TEST(more, 0)\n"
        "    value = READ(0)\n    spoiled = ADD(value, over)\n    WRITE(0, spoiled)\n"
    )
    outcome = proof(program, 1, 30)
    assert (outcome.proven, [limit for _, limit in outcome.refuted]) == (("T",), [31])


# ---- against the interpreter


def table_task(size: int, steps: int, results: dict[tuple[int, ...], list[int]]) -> Task:
    """A task on all memories of one size, whose answers are given in a table."""

    def symbolic(n: int, given: Term) -> Iterator[SymbolicCase]:
        cells = [z3.Int(f"x{i}") for i in range(size)]
        bounds = [bound for cell in cells for bound in (cell >= 0, cell < size)]
        expected: list[Any] = [z3.IntVal(0)] * size
        for memory, result in results.items():
            here = z3.And(*(cell == value for cell, value in zip(cells, memory, strict=True)))
            expected = [z3.If(here, value, rest) for value, rest in zip(result, expected, strict=True)]
        yield SymbolicCase("", tuple(enumerate(cells)), (*bounds, given == size), tuple(enumerate(expected)))

    base = get_task("access")
    return replace(base, step_limit=StepLimit(0, steps), least_memory=lambda n: size, symbolic=symbolic)


@pytest.mark.parametrize("split", [False, True], ids=["merged", "split"])
@pytest.mark.parametrize("unknown_size", [False, True], ids=["M given", "M unknown"])
def test_random_programs_do_on_terms_what_the_interpreter_does(random_program, split, unknown_size):
    rng = Random(f"{split} {unknown_size}")
    size, steps = 3, 4
    every = list(itertools.product(range(size), repeat=size))
    for _ in range(25):
        program = random_program(rng)
        results = {memory: interpret(program, memory, steps).memory for memory in every}
        task = table_task(size, steps, results)
        asked = None if unknown_size else size
        if not unknown_size:  # the assumption would be a plain truth value
            task = altered(task, lambda case: replace(case, assumptions=case.assumptions[:-1]))
        how: dict[str, Any] = {"task": task, "beyond": False, "split": split}
        outcome = proof(program, 1, asked, **how)
        halts = all(interpret(program, memory, steps).halted for memory in every)
        assert outcome.halts == halts and outcome.proven, outcome
        # With one entry of the table changed, that one memory is the counterexample.
        odd = rng.choice(every)
        results[odd] = [*results[odd][:-1], (results[odd][-1] + 1) % size]
        ((memory, _),) = proof(program, 1, asked, **how).refuted
        assert tuple(memory) == odd
