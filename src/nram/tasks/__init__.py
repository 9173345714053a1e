"""The tasks by name. Importing this package does not import JAX."""

from __future__ import annotations

from difflib import get_close_matches

from nram.errors import UsageError
from nram.tasks import (
    access,
    copy,
    increment,
    listk,
    listsearch,
    merge,
    permutation,
    reverse,
    swap,
    walkbst,
)
from nram.tasks.base import Instance, StepLimit, Task, TracedInstance

__all__ = ["Instance", "StepLimit", "Task", "TracedInstance", "get_task", "register", "task_names"]

_tasks: dict[str, Task] = {}


def register(task: Task) -> Task:
    """Make the task known by its name, and return it. A name can be given only once."""
    if task.name in _tasks:
        raise UsageError(f"there is already a task {task.name!r}: give the new one another name")
    _tasks[task.name] = task
    return task


def get_task(name: str) -> Task:
    """The task of this name."""
    if name in _tasks:
        return _tasks[name]
    nearest = get_close_matches(name.lower(), _tasks)
    hint = f", did you mean {' or '.join(nearest)}?" if nearest else "."
    raise UsageError(f"there is no task {name!r}{hint} The tasks are: {', '.join(_tasks)}")


def task_names() -> tuple[str, ...]:
    """The names of all tasks: the paper's ten in its order, then those registered later."""
    return tuple(_tasks)


for _module in (
    access,
    increment,
    copy,
    reverse,
    swap,
    permutation,
    listk,
    listsearch,
    merge,
    walkbst,
):
    register(_module.TASK)
