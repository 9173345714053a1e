"""Counterexamples: fresh and larger instances of a task on which a program that fits the pool is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from nram.programs.execute import execute
from nram.programs.ir import Program
from nram.search.instances import exact
from nram.tasks.base import Instance, Task

CHECKS = ((2, 100), (3, 200), (4, 200), (5, 200), (6, 100), (8, 100), (12, 100), (20, 60), (50, 40), (400, 6))
"""Complexity, instances: fresh ones for every program that fits."""
OTHER_SIZES = range(2, 17), 5
"""Cells beyond the least memory, instances: what a program computes modulo M may be wrong at a single M."""
MOST_COUNTEREXAMPLES = 6

Counterexamples = Callable[[Program], Sequence[Instance] | None]
"""Instances that a program gets wrong: none if it passes. None refuses it without a reason."""


def counterexamples_of(task: Task | None, seed: int) -> Counterexamples:
    """The check of a program that fits. A plain example file has no counterexamples."""

    def check(program: Program) -> list[Instance]:
        # Other instances for every program, but always the same for the same program.
        drawn = int(program.fingerprint[:8], 16)
        return [] if task is None else find_counterexamples(program, task, (seed + drawn) % 2**40)

    return check


def find_counterexamples(program: Program, task: Task, seed: int) -> list[Instance]:
    """Instances on which a program is wrong or does not halt by T(n); none if it passes every check."""
    checks = [(n, count) for n, count in CHECKS if n >= task.min_complexity]
    sizes = [(n, extra, count // 2) for n, count in checks for extra in (0, 1, n // 2 + 2, 2 * n + 5)]
    others, few = OTHER_SIZES
    found = _wrong(program, task, seed, sizes)
    return found or _wrong(program, task, seed, [(n, extra, few) for n, _ in checks[:-1] for extra in others])


def _wrong(program: Program, task: Task, seed: int, sizes: Iterable[tuple[int, int, int]]) -> list[Instance]:
    """A few instances on which a program fails. Given are complexities, cells beyond the least memory, and how many."""
    found: list[Instance] = []
    for n, extra, count in sizes:
        instances = task.sample(n, count, 77_000 + seed + n + extra, task.least_memory(n) + extra)
        result = execute(program, [instance.input for instance in instances], instances[0].steps)
        right = exact(instances, result.memory)
        wrong = [
            instance
            for instance, fine, halted in zip(instances, right, result.halted, strict=True)
            if not (fine and halted)
        ]
        found += wrong[:2]
        if len(found) >= MOST_COUNTEREXAMPLES:
            break
    return found[:MOST_COUNTEREXAMPLES]
