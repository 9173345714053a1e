"""The built-in tasks. Importing this package does not import JAX."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from nram.deprecated import renamed
from nram.limits import StepLimit
from nram.tasks.base import Instance, SymbolicCase, Task, TracedInstance

__all__ = ["TASKS", "Instance", "StepLimit", "SymbolicCase", "Task", "TracedInstance"]

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

TASKS: dict[str, Task] = {name: import_module(f"nram.tasks.{name}").TASK for name in BUILT_IN}
"""The tasks that this process knows by name: the built-in ones, and those that are registered later."""


def __getattr__(name: str) -> Any:
    new = {"get_task": "get_task", "register": "register_task", "task_names": "task_names"}
    if name in new:
        return renamed(f"nram.tasks.{name}", f"nram.{new[name]}")
    raise AttributeError(f"module 'nram.tasks' has no attribute {name!r}")
