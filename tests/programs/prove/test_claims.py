"""Claims say what the tasks ask for: on small inputs the assumptions hold, and the answer is the oracle's."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import nram
from nram.extensions import get_task, task_names
from nram.programs.prove.runs import Inputs, Recorded
from nram.tasks import Task
from nram.tasks.claim import NOTHING_OUTSIDE, VALUES_FIT, Assumption, memory
from nram.terms import INVALID, Term, calls, evaluated, number, variable

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


def at(task: Task, start: list[int], n: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Numbers and functions of the claim at one input. Outside the memory there are zeros."""
    recorded = Recorded(None, [(start, n)])  # type: ignore[arg-type]
    found = Inputs(recorded, task)
    numbers = {name.parts[0]: int(values[0]) for name, values in found.numbers.items() if name.op == "var"}

    def function(name: str) -> Any:
        table, outside = found.tables[name][0], 0 if name == "memory" else INVALID

        def look(argument: Any) -> Any:
            argument = np.asarray(argument)
            inside = (argument >= 0) & (argument < len(table) - 1)
            value = table[np.where(inside, argument, 0)]
            return np.where(inside & (value != INVALID), value, outside)

        return look

    return numbers, {name: function(name) for name in found.tables}


def violated(one: Assumption, numbers: dict[str, Any], functions: dict[str, Any]) -> bool:
    span = np.arange(-2, numbers["M"] + 3)
    grids = np.meshgrid(*[span] * len(one.variables), indexing="ij") if one.variables else []
    values = numbers | {name.parts[0]: grid for name, grid in zip(one.variables, grids, strict=True)}
    return not np.all(evaluated(one.condition, values, functions, {}))


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
