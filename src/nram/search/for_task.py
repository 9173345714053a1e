"""What is searched for: a task's instances as the pool and fresh, larger ones as judges; or examples, and no judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from nram.extensions import get_task, is_task_file, task_names
from nram.programs.execute import execute
from nram.programs.ir import Program
from nram.search.instances import Pool, exact, read_examples, task_pool
from nram.tasks.base import Instance, Task

# Complexity, instances: drawn anew for every program that fits.
CHECKS = ((2, 100), (3, 200), (4, 200), (5, 200), (6, 100), (8, 100), (12, 100), (20, 60), (50, 40), (400, 6))
MOST_COUNTEREXAMPLES = 6


def source_of(source: str | Path | Task | Sequence[Instance], seed: int) -> tuple[Task | None, Pool]:
    """The task, if it is one, and the pool to search by."""
    if isinstance(source, Task):
        return source, task_pool(source, seed)
    if not isinstance(source, str | Path):
        return None, Pool(tuple(source))
    name = str(source)
    if name not in task_names() and not is_task_file(name) and Path(name).is_file():
        return None, read_examples(Path(name))
    task = get_task(name)
    return task, task_pool(task, seed)


def judge_of(task: Task | None, seed: int) -> Callable[[Program], list[Instance]]:
    """What is asked of a program that fits: instances that speak against it. Nobody knows any of mere examples."""

    def judge(program: Program) -> list[Instance]:
        # Other instances for every program, and the same for the same one, whenever it is found.
        drawn = int(program.fingerprint[:8], 16)
        return [] if task is None else find_counterexamples(program, task, (seed + drawn) % 2**40)

    return judge


def find_counterexamples(program: Program, task: Task, seed: int) -> list[Instance]:
    """Instances on which a program is wrong or does not halt by T(n); none if it passes every check."""
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
