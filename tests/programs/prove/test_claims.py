"""Claims say what the tasks ask for: on small inputs the assumptions hold, and the answer is the oracle's."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random

import pytest

import nram
from nram.errors import UsageError
from nram.extensions import get_task, task_names
from nram.programs.library import load_program
from nram.programs.prove import prove
from nram.programs.prove.own_claims import at, check_claim, violated, wrong_inputs, wrong_sizes
from nram.tasks import Task
from nram.tasks.claim import NOTHING_OUTSIDE, SIZE, VALUES_FIT, Assumption, N, always, memory
from nram.terms import FALSE, TRUE, Term, between, call, calls, equal, evaluated, number, variable

EXAMPLES = Path(nram.__file__).parent / "examples"
MOST = 60  # inputs of each size

TASKS = [*task_names(), str(EXAMPLES / "tasks" / "maximum.py")]


def inputs(task: Task) -> list[tuple[list[int], int]]:
    """The first inputs of every small size, and some at random."""
    rng, found = Random(0), []
    for n in range(task.min_complexity, task.min_complexity + 4):
        for extra in (0, 1, 3):
            size = task.least_memory(n) + extra
            assert task.legal_inputs is not None
            found += [(start, n) for start in islice(task.legal_inputs(n, size), MOST // 2)]
            found += [(task.sample_input(rng, n, size), n) for _ in range(MOST // 2)]
    return found


@pytest.mark.parametrize("name", TASKS)
def test_the_assumptions_hold_and_the_answers_are_the_oracles(name):
    task = get_task(name)
    assert task.claim is not None
    claim = task.claim()
    for start, n in inputs(task):
        numbers, functions = at(task, start, n)
        for one in (VALUES_FIT, NOTHING_OUTSIDE, *claim.assumptions):
            assert not violated(one, numbers, functions), (one.condition, start)
        expected, cells = task.oracle(start)
        for address in range(len(start)):
            x: Term = number(address)
            assert bool(evaluated(claim.is_output(x), numbers, functions, {})) == (address in cells)
            if address in cells:
                assert evaluated(claim.expected(x), numbers, functions, {}) == expected[address]


@pytest.mark.parametrize("name", TASKS)
def test_the_claim_is_right_at_large_sizes_too(name):
    task = get_task(name)
    assert task.claim is not None
    assert [*wrong_sizes(task, task.claim()), *wrong_inputs(task, task.claim())] == []


@pytest.mark.parametrize("name", TASKS)
def test_the_least_memory_of_the_claim_is_that_of_the_task(name):
    task = get_task(name)
    assert task.claim is not None
    # Of the assumptions without variables, those about n and M alone.
    plain = [one.condition for one in task.claim().assumptions if not one.variables]
    sizes = [condition for condition in plain if not calls([condition])]
    for n in range(task.min_complexity, 60):
        allowed = [m for m in range(3, 5 * n + 10) if all(_holds(one, n, m) for one in sizes)]
        assert allowed[0] == task.least_memory(n)


def _holds(condition: Term, n: int, size: int) -> bool:
    names = {"n": n, "M": size, "length": 0, "first": 0}
    return bool(evaluated(condition, names, {}, {}))


def test_an_assumption_that_is_wrong_is_noticed():
    numbers, functions = at(get_task("copy"), [3, 1, 2, 0, 0, 0], 2)
    i, j = variable("any_i"), variable("any_j")
    assert violated(Assumption((i,), memory(i) <= 2), numbers, functions)
    assert not violated(Assumption((i,), memory(i) <= 3), numbers, functions)
    assert violated(Assumption((i, j), memory(i) + memory(j) <= 5), numbers, functions)
    assert not violated(Assumption((i, j), memory(i) + memory(j) <= 6), numbers, functions)


def test_a_task_with_a_wrong_claim_is_refused():
    task = get_task(str(EXAMPLES / "tasks" / "maximum.py"))
    assert task.claim is not None
    right = task.claim()
    check_claim(task)
    too_much = (*right.assumptions, always(equal(memory(1), 0)))
    wrong = {
        r"the assumption .* does not hold": replace(right, assumptions=too_much),
        "is_output says that cell 1 is asked for": replace(right, is_output=lambda x: x <= 1),
        "expected says that cell 0 holds 0": replace(right, expected=lambda x: memory(0)),
    }
    for words, claim in wrong.items():
        own = replace(task, claim=lambda claim=claim: claim)
        with pytest.raises(UsageError, match=f"the claim of the task maximum is wrong on its input [0-9 ]+: {words}"):
            prove(load_program("access@searched"), own)


def with_assumption(claim, *more):
    return replace(claim, assumptions=(*claim.assumptions, *more))


REFUSED = {
    # What would otherwise be proven is another claim than the one that is compared with the task.
    "is wrong on its input": lambda claim: replace(claim, is_output=lambda x: TRUE if x == number(0) else FALSE),
    "assumes n <= 4, which leaves out n = 5": lambda claim: with_assumption(claim, always(N <= 4)),
    "assumes M <= 12, which leaves out n = 1, M = 13": lambda claim: with_assumption(claim, always(SIZE <= 12)),
    "assumes M <= n [+] 5, which leaves out": lambda claim: with_assumption(claim, always(SIZE <= N + 5)),
    # A name that the obligations assume something about.
    "cannot use the name 'written_twice'": lambda claim: replace(claim, functions={"written_twice": lambda m, n: [0]}),
    "cannot use the name 'to_int'": lambda claim: replace(claim, functions={"to_int": lambda m, n: [0]}),
    "cannot use the name 'r1'": lambda claim: replace(claim, numbers={"r1": lambda m, n: 0}),
    "has a number and a function with the name 'largest'": lambda claim: replace(
        claim, numbers={"largest": lambda m, n: 0}
    ),
    "speaks of 'length' in expected": lambda claim: replace(claim, expected=lambda x: variable("length")),
    "calls 'node' in an assumption": lambda claim: with_assumption(claim, always(equal(call("node", 0), 0))),
    "gives False as is_output": lambda claim: replace(claim, is_output=lambda x: x == 0),
    "gives 0 <= x as expected": lambda claim: replace(claim, expected=lambda x: x >= 0),
    "write always": lambda claim: with_assumption(claim, N <= SIZE),
    "fails: TypeError: .* has no truth value": lambda claim: replace(claim, is_output=lambda x: 0 <= x <= N),
    "fails: ZeroDivisionError": lambda claim: replace(claim, functions={"largest": lambda m, n: [1 // 0]}),
    "is a dict: let the function return a Claim": lambda claim: {},
}


@pytest.mark.parametrize("words", REFUSED)
def test_a_claim_that_cannot_be_used_is_refused(words):
    task = get_task(str(EXAMPLES / "tasks" / "maximum.py"))
    assert task.claim is not None
    claim = REFUSED[words](task.claim())
    with pytest.raises(UsageError, match=f"^the claim of the task maximum .*{words}"):
        check_claim(replace(task, claim=lambda: claim))


def test_conditions_cannot_be_joined_by_python():
    for joined in (lambda x: 0 <= x <= N, lambda x: (x >= 0) and (x <= N), lambda x: 1 if x <= N else 0):
        with pytest.raises(TypeError, match="has no truth value"):
            joined(variable("x"))
    assert between(0, variable("x"), N) == ((variable("x") >= 0) & (variable("x") <= N))
