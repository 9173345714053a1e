"""The tasks by name: the paper's ten, those of installed packages, and files by their path.

Importing this package does not import JAX.
"""

from __future__ import annotations

import os
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

from nram.deprecated import renamed
from nram.errors import UsageError
from nram.extensions import tasks as own
from nram.limits import StepLimit
from nram.tasks.base import Instance, SymbolicCase, Task, TracedInstance

__all__ = [
    "Instance",
    "StepLimit",
    "SymbolicCase",
    "Task",
    "TracedInstance",
    "find_tasks",
    "get_task",
    "is_task_file",
    "lasting_name",
    "register_task",
    "task_names",
]

# The files of this folder that define a task: the paper's ten in its order, then others.
BUILT_IN = (
    "access",
    "increment",
    "copy",
    "reverse",
    "swap",
    "permutation",
    "listk",
    "listsearch",
    "merge",
    "walkbst",
)

_tasks: dict[str, Task] = {name: import_module(f"nram.tasks.{name}").TASK for name in BUILT_IN}


def register_task(task: Task) -> Task:
    """Make the task known by its name in this process, and return it. A name can be given only once."""
    own.checked(task, f"the task {task.name!r}")
    _refuse_taken(task.name, "the new one")
    _tasks[task.name] = task
    return task


def get_task(name: str | os.PathLike[str]) -> Task:
    """The task of this name, or the one that this Python file defines."""
    name = os.fspath(name)
    if name in _tasks:
        return _tasks[name]
    if own.is_file_name(name):
        task = own.load_file(Path(name))
        _refuse_taken(task.name, f"that of {name}")
        return task
    if name in own.entry_points():
        return own.load_entry_point(name)
    nearest = [f"{name}.py"] if Path(f"{name}.py").is_file() else get_close_matches(name.lower(), task_names())
    hint = f", did you mean {' or '.join(nearest)}?" if nearest else "."
    raise UsageError(
        f"there is no task {name!r}{hint} The tasks are: {', '.join(task_names())}; "
        "a task of one's own is named by its file, like path/to/task.py"
    )


def task_names() -> tuple[str, ...]:
    """The names of all tasks: the paper's ten in its order, those registered later, those of installed packages."""
    return (*_tasks, *(name for name in own.entry_points() if name not in _tasks))


def find_tasks() -> tuple[list[Task], list[str]]:
    """All tasks that have a name, and what is wrong with those of installed packages that cannot be used."""
    found, problems = list(_tasks.values()), []
    for name in own.entry_points():
        try:
            if name in _tasks:
                _refuse_taken(name, f"that of {own.providers(name)}")
            found.append(own.load_entry_point(name))
        except UsageError as error:
            problems.append(str(error))
    return found, problems


def is_task_file(name: str) -> bool:
    """Whether it is the path of a file with a task, rather than a task's name or a file of examples."""
    return name.endswith(".py")


def lasting_name(name: str) -> str:
    """What names the same task from any folder: its name, or the whole path of its file."""
    return os.path.abspath(name) if name not in _tasks and own.is_file_name(name) else name


def _refuse_taken(name: str, whose: str) -> None:
    if name in _tasks:
        raise UsageError(f"there is already a task {name!r}: give {whose} another name")


def __getattr__(name: str) -> Any:
    if name == "register":
        return renamed("nram.tasks.register", "nram.tasks.register_task")
    raise AttributeError(f"module 'nram.tasks' has no attribute {name!r}")
