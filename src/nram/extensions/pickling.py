"""Pickles of tasks and modules, for worker processes: by name or by file, since most functions cannot be pickled.

A built-in task is found again by its name, and one from a file by its path. One that was registered must be registered
in the other process too.
"""

from __future__ import annotations

import copyreg
import pickle
from dataclasses import fields
from typing import Any

from nram.errors import UsageError
from nram.extensions import modules, tasks
from nram.modules import Module
from nram.tasks.base import Task

_REGISTRIES = {"task": tasks.REGISTRY, "module": modules.REGISTRY}


def prepare_pickling() -> None:
    """Tell Python how to pickle tasks and modules. It is said here because their own files do not know registries."""
    copyreg.pickle(Task, lambda task: _reduced("task", task))
    copyreg.pickle(Module, lambda module: _reduced("module", module))


def _reduced(what: str, item: Task | Module) -> tuple[Any, ...]:
    key = _REGISTRIES[what].key_of(item)
    if key is not None:
        return _restored, (what, key)
    content = {field.name: getattr(item, field.name) for field in fields(item)}
    for name, value in content.items():
        try:
            pickle.dumps(value)
        except Exception as error:
            raise pickle.PicklingError(
                f"the {what} {item.name!r} cannot be pickled because of its {name} ({error}): put the {what} into a "
                f"Python file and use nram.get_{what}(file), or define its functions where they can be imported"
            ) from None
    return _made, (type(item), content)


def _restored(what: str, key: str) -> Task | Module:
    try:
        return _REGISTRIES[what].get(key)
    except UsageError as error:
        raise UsageError(
            f"the {what} {key!r} of a pickle is not known in this process ({error}): call nram.register_{what} here "
            f"too, in a Python module that both processes import, or put the {what} into a file"
        ) from None


def _made(kind: type[Task | Module], content: dict[str, Any]) -> Task | Module:
    return kind(**content)
