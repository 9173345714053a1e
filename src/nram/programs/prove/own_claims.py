"""The claim of a task, looked at before anything is proven: a wrong assumption would prove everything.

What a claim is made of is checked for every task. The claim of a user's task is compared with its own sampler and
oracle too; those of the paper's tasks are compared by nram's own tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

import numpy as np

from nram.errors import UsageError
from nram.programs.prove.obligations import ADDRESS
from nram.programs.prove.runs import Inputs
from nram.tasks import TASKS, Task
from nram.tasks.claim import NOTHING_OUTSIDE, SIZE, VALUES_FIT, Assumption, Claim
from nram.terms import INVALID, Term, calls, evaluated, is_condition, is_sound, shown, variables

EACH = 4  # inputs of each small size
LARGE = (9, 20, 50)  # added to the smallest n; one input each, in memories of several sizes
FAR = 60  # the sizes that the assumptions about n and M alone must allow
MOST_AT_ONCE = 1 << 22  # values at which an assumption is looked at
RESERVED = re.compile(
    r"n|M|k|x|memory|cell|register|(?:r|o)[0-9]+|(?:visits|written|any_).*|_|true|false|and|or|not|if|then|else|times"
    r"|mod|div|let|forall|exists|match|par|assert|abs|ite|distinct|xor|as|to_int|to_real|is_int|select|store|const"
    r"|lambda|Int|Bool|Real|String|Array"
)
"""Names that a claim cannot give to its numbers and functions: they mean something in invariants or in SMT-LIB."""


def check_claim(task: Task) -> None:
    """Refuse a claim that cannot be used, or that is wrong on an input of the task."""
    if task.claim is None:
        return
    where = f"the claim of the task {task.name}"
    try:
        claim = task.claim()
        problem = next(_form_problems(claim), None)
        if problem is None and TASKS.get(task.name) is not task:
            problem = next(wrong_sizes(task, claim), None) or next(wrong_inputs(task, claim), None)
    except Exception as error:  # it is a user's function
        raise UsageError(f"{where} fails: {type(error).__name__}: {error}") from error
    if problem is not None:
        raise UsageError(f"{where} {problem}")


# ---- what it is made of


def _form_problems(claim: Any) -> Iterator[str]:
    """What is wrong with the parts of a claim. Each continues the words `the claim of the task NAME`."""
    if not isinstance(claim, Claim):
        yield f"is a {type(claim).__name__}: let the function return a Claim(...)"
        return
    for what in ("numbers", "functions"):
        given = getattr(claim, what)
        if not isinstance(given, Mapping):
            yield f"has {what} that are no dict: write {{name: function of (memory, n)}}"
            return
        for name, function in given.items():
            if not isinstance(name, str) or not name.isidentifier() or not name.isascii() or RESERVED.fullmatch(name):
                yield f"cannot use the name {name!r}: it has a meaning of its own, so choose another"
            if not callable(function):
                yield f"gives {name} no function of (memory, n)"
    if shared := sorted(set(claim.numbers) & set(claim.functions)):
        yield f"has a number and a function with the name {shared[0]!r}: choose another for one of them"
    for one in claim.assumptions:
        if not isinstance(one, Assumption):
            yield f"has the assumption {shortened(one)}: write always(...) around it"
        else:
            yield from _term_problems(one.condition, "an assumption", True, claim, one.variables)
    for what in ("is_output", "expected"):
        condition = what == "is_output"
        if not callable(getattr(claim, what)):
            yield f"has {what} that is no function of an address"
        else:
            yield from _term_problems(getattr(claim, what)(ADDRESS), what, condition, claim, (ADDRESS,))


def _term_problems(term: Any, what: str, condition: bool, claim: Claim, known: tuple[Term, ...]) -> Iterator[str]:
    wanted = "a condition, as equal(a, b) or a <= b" if condition else "a number made of terms"
    if not isinstance(term, Term) or is_condition(term) != condition or not is_sound(term):
        yield f"gives {shortened(term)} as {what}: it must be {wanted}"
        return
    names = {"n", "M", *claim.numbers, *(one.parts[0] for one in known)}
    for name in variables([term]):
        if name not in names:
            yield f"speaks of {name!r} in {what} {shown(term)[:80]!r}: list it among its numbers"
    for one in calls([term]):
        if one.parts[0] not in ("memory", *claim.functions):
            yield f"calls {one.parts[0]!r} in {what} {shown(term)[:80]!r}: list it among its functions"


def shortened(value: Any) -> str:
    words = repr(value)
    return words if len(words) <= 80 else words[:77] + "..."


# ---- compared with the task


def wrong_sizes(task: Task, claim: Claim) -> Iterator[str]:
    """Assumptions about n and M alone must allow every n, and every M from the least up."""
    plain = [one.condition for one in claim.assumptions if not one.variables and not calls([one.condition])]
    plain = [one for one in plain if set(variables([one])) <= {"n", "M"}]
    for n in range(task.min_complexity, task.min_complexity + FAR):
        least = task.least_memory(n)
        sizes = np.array([*range(least, least + 2 * n + 10), least + 1000, 100 * least])
        for one in plain:
            holds = np.broadcast_to(evaluated(one, {"n": n, "M": sizes}, {}, {}), sizes.shape)
            if not holds.all():
                size = sizes[int(np.argmin(holds))]
                yield f"assumes {shown(one)}, which leaves out n = {n}, M = {size}: a proof must hold for every size"


def wrong_inputs(task: Task, claim: Claim) -> Iterator[str]:
    """Inputs at which an assumption does not hold, or the answer is another than the task's."""
    rng, least = Random(0), task.min_complexity
    tried = [(n, extra) for n in range(least, least + 4) for extra in (0, 1, 3) for _ in range(EACH)]
    tried += [(least + more, extra) for more in LARGE for extra in (0, least + more, 50)]
    for n, extra in tried:
        start = task.sample_input(rng, n, task.least_memory(n) + extra)
        if (wrong := _wrong_at(task, claim, start, n)) is not None:
            shown_input = " ".join(map(str, start)) if len(start) <= 40 else f"with n = {n}, M = {len(start)}"
            yield f"is wrong on its input {shown_input}: {wrong}"


def _wrong_at(task: Task, claim: Claim, start: list[int], n: int) -> str | None:
    numbers, functions = at(task, start, n)
    for one in (VALUES_FIT, NOTHING_OUTSIDE, *claim.assumptions):
        if violated(one, numbers, functions):
            return f"the assumption {shown(one.condition)} does not hold"
    expected, cells = task.oracle(start)
    # The same terms as in a proof: a function of the address might give others for other addresses.
    values = numbers | {ADDRESS.parts[0]: np.arange(len(start))}
    is_output = np.broadcast_to(evaluated(claim.is_output(ADDRESS), values, functions, {}), len(start))
    holds = np.broadcast_to(evaluated(claim.expected(ADDRESS), values, functions, {}), len(start))
    for address in range(len(start)):
        if is_output[address] != (address in cells):
            known = "" if is_output[address] else "not "
            return f"is_output says that cell {address} is {known}asked for; the task differs"
        if is_output[address] and holds[address] != expected[address]:
            return f"expected says that cell {address} holds {holds[address]}; the task says {expected[address]}"
    return None


def at(task: Task, start: list[int], n: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Numbers and functions of the claim at one input. Outside the memory there are zeros."""
    found = Inputs([(start, n)], task)
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
    """Whether an assumption fails for some values of its variables, in the memory or next to it.

    Where these are too many, some of them are left out, evenly.
    """
    size, count = numbers[SIZE.parts[0]], len(one.variables)
    most = int(MOST_AT_ONCE ** (1 / count)) if count else 1
    span = np.arange(-2, size + 3)
    if len(span) > most:
        span = np.unique(np.linspace(-2, size + 2, most).astype(int))
    grids = np.meshgrid(*[span] * count, indexing="ij") if count else []
    values = numbers | {name.parts[0]: grid for name, grid in zip(one.variables, grids, strict=True)}
    return not np.all(evaluated(one.condition, values, functions, {}))
