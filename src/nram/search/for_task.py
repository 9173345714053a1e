"""Searching for a task: its instances as the pool, fresh and larger ones as the judges."""

from __future__ import annotations

from nram.programs.execute import execute
from nram.programs.ir import Program
from nram.search.instances import exact
from nram.tasks.base import Instance, Task

# Complexity, instances: drawn anew for every program that fits.
CHECKS = ((2, 100), (3, 200), (4, 200), (5, 200), (6, 100), (8, 100), (12, 100), (20, 60), (50, 40), (400, 6))
MOST_COUNTEREXAMPLES = 6


def find_counterexamples(program: Program, task: Task, seed: int) -> list[Instance]:
    """Small instances on which a program is wrong or does not halt by T(n); none if it passes every check."""
    found: list[Instance] = []
    for n, count in CHECKS:
        if n < task.min_complexity:
            continue
        for extra in (0, 1, n // 2 + 2, 2 * n + 5):
            instances = task.sample(n, count // 2, 77_000 + seed + n + extra, task.least_memory(n) + extra)
            result = execute(program, [instance.input for instance in instances], instances[0].steps)
            right = exact(instances, result.memory)
            wrong = [
                instance
                for instance, fine, halted in zip(instances, right, result.halted, strict=True)
                if not (fine and halted)
            ]
            found += wrong[:2]
            if len(found) >= MOST_COUNTEREXAMPLES:
                return found[:MOST_COUNTEREXAMPLES]
    return found
