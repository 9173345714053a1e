"""User-defined tasks, and all tasks by name."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from random import Random
from typing import Any

from nram.extensions import task_checks as checks
from nram.extensions.loading import calling, refuse, short
from nram.extensions.registry import Registry
from nram.tasks import TASKS
from nram.tasks.base import Task, Term


class TaskRegistry(Registry[Task]):
    def check(self, item: Task, shown: str, file: str | None) -> Task:
        refuse(checks.field_problems(item), shown)
        checked = check_calls(item, shown, file)
        checks.check_behaviour(checked, shown)
        return checked


REGISTRY = TaskRegistry("task", Task, TASKS, reserved=TASKS)


def get_task(name: str | os.PathLike[str]) -> Task:
    """The task of this name, or the one that this Python file defines. Executes the file: the user must name it."""
    return REGISTRY.get(name)


def known_task(name: str) -> Task:
    """The task of this name, or of this file if this process has loaded it: no file is executed."""
    return REGISTRY.look_up(name)


def task_names() -> tuple[str, ...]:
    """The names of all tasks: the paper's ten in its order, those registered later, those of installed packages."""
    return REGISTRY.names


def register_task(task: Task) -> Task:
    """Make the task known by its name in this process, and return it. A name can be given only once."""
    REGISTRY.check(task, f"the task {task.name!r}", None)
    REGISTRY.refuse_taken(task.name, "the new one")
    TASKS[task.name] = task
    return task


def is_task_file(name: str) -> bool:
    """Whether it is the path of a file with a task, rather than a task's name or a file of examples."""
    return name.endswith(".py")


def check_calls(task: Task, shown: str, file: str | None) -> Task:
    """The same task, whose functions check their results at every call."""

    calls = partial(calling, shown=shown, file=file)

    def least_memory(n: int) -> int:
        with calls(f"least_memory({n})"):
            size = task.least_memory(n)
        refuse(checks.least_memory_problems(size, n), shown)
        return size

    def sample_input(rng: Random, n: int, memory_size: int) -> list[int]:
        what = f"sample_input(rng, {n}, {memory_size})"
        with calls(what):
            memory = task.sample_input(rng, n, memory_size)
        refuse(checks.memory_problems(memory, memory_size, what), shown)
        return memory

    def oracle(memory: Sequence[int]) -> tuple[list[int], list[int]]:
        what = f"oracle({short(list(memory))})"
        with calls(what):
            answer = task.oracle(memory)
        refuse(checks.answer_problems(answer, memory, what), shown)
        return answer

    def scored_cells(memory: Sequence[int], cells: list[int]) -> list[int]:
        what = f"scored_cells({short(list(memory))}, {short(cells)})"
        with calls(what):
            scored = task.scored_cells(memory, cells)
        refuse(checks.scored_problems(scored, cells, what), shown)
        return scored

    def legal_inputs(n: int, memory_size: int) -> Iterator[list[int]]:
        assert task.legal_inputs is not None
        what = f"legal_inputs({n}, {memory_size})"
        with calls(what):
            for memory in task.legal_inputs(n, memory_size):
                refuse(checks.memory_problems(memory, memory_size, what), shown)
                yield memory

    def symbolic(n: int, memory_size: Term) -> Iterator[Any]:
        assert task.symbolic is not None
        # Checked only when the cases are asked for, since that imports z3. A wrong description proves nothing.
        with calls("symbolic"):
            problems = [*islice(checks.symbolic_problems(task, task.symbolic), 1)]
        refuse(problems, shown)
        with calls(f"symbolic({n}, {memory_size})"):
            yield from task.symbolic(n, memory_size)

    return replace(
        task,
        least_memory=least_memory,
        sample_input=sample_input,
        oracle=oracle,
        scored_cells=scored_cells,
        legal_inputs=legal_inputs if task.legal_inputs is not None else None,
        symbolic=symbolic if task.symbolic is not None else None,
    )
