"""The claim of a user's task, compared with its own sampler and oracle: a wrong assumption would prove everything."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from nram.errors import UsageError
from nram.programs.prove.runs import Inputs, Recorded
from nram.tasks import TASKS, Task
from nram.tasks.claim import NOTHING_OUTSIDE, VALUES_FIT, Assumption
from nram.terms import INVALID, evaluated, number, shown

EACH = 4  # inputs of each size


def check_claim(task: Task) -> None:
    """Refuse a claim that is wrong on an input of the task. Those of the paper's tasks are tested with nram itself."""
    if TASKS.get(task.name) is task or task.claim is None:
        return
    rng, claim = Random(0), task.claim()
    for n in range(task.min_complexity, task.min_complexity + 4):
        for extra in (0, 1, 3):
            for _ in range(EACH):
                start = task.sample_input(rng, n, task.least_memory(n) + extra)
                if (wrong := _wrong_at(task, claim, start, n)) is not None:
                    raise UsageError(
                        f"the claim of the task {task.name} is wrong on its input {' '.join(map(str, start))}: {wrong}"
                    )


def _wrong_at(task: Task, claim: Any, start: list[int], n: int) -> str | None:
    numbers, functions = at(task, start, n)
    for one in (VALUES_FIT, NOTHING_OUTSIDE, *claim.assumptions):
        if violated(one, numbers, functions):
            return f"the assumption {shown(one.condition)} does not hold"
    expected, cells = task.oracle(start)
    for address in range(len(start)):
        is_output = bool(evaluated(claim.is_output(number(address)), numbers, functions, {}))
        if is_output != (address in cells):
            return f"is_output says that cell {address} is {'' if is_output else 'not '}asked for; the task differs"
        if is_output:
            value = evaluated(claim.expected(number(address)), numbers, functions, {})
            if value != expected[address]:
                return f"expected says that cell {address} holds {value}; the task says {expected[address]}"
    return None


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
    """Whether an assumption fails for some values of its variables, in the memory or next to it."""
    span = np.arange(-2, numbers["M"] + 3)
    grids = np.meshgrid(*[span] * len(one.variables), indexing="ij") if one.variables else []
    values = numbers | {name.parts[0]: grid for name, grid in zip(one.variables, grids, strict=True)}
    return not np.all(evaluated(one.condition, values, functions, {}))
