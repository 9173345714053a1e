"""nram: a Neural Random-Access Machine, from examples to programs.

    import nram

    task = nram.get_task("copy")                     # by name, or a user-defined one by its file
    program = nram.find_program(task).program        # by search; or nram.learn, or nram.train and nram.extract
    print(nram.verify(program, task))                # what is proven of it, and what only tested
    nram.trace(program, task.sample(5, 1, seed=0)[0])  # a picture in a notebook, like the program itself
    program.run([4, 7, 5, 2, 0, 0, 0, 0]).memory     # machine code

The names below are the whole interface. They are imported when they are first used: `import nram` takes milliseconds.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from nram.deprecated import renamed
from nram.errors import NramError, UsageError
from nram.extras import missing_for

if TYPE_CHECKING:
    from nram.api import Run, compile_program, extract, find_program, learn, trace, train
    from nram.extensions import get_module, get_task, module_names, register_module, register_task, task_names
    from nram.limits import StepLimit
    from nram.modules import Module
    from nram.programs.ir import Program
    from nram.programs.library import load_program
    from nram.programs.verify import verify
    from nram.soft_machine import SoftMachine, load_machine, stack_instances
    from nram.tasks.base import Instance, SymbolicCase, Task

if sys.platform == "win32":
    raise ImportError("nram needs Linux or macOS: on Windows, install and run it in WSL")

__version__ = "0.2.0"

__all__ = [
    "Instance",
    "Module",
    "NramError",
    "Program",
    "Run",
    "SoftMachine",
    "StepLimit",
    "SymbolicCase",
    "Task",
    "UsageError",
    "__version__",
    "compile_program",
    "extract",
    "find_program",
    "get_module",
    "get_task",
    "learn",
    "load_machine",
    "load_program",
    "module_names",
    "register_module",
    "register_task",
    "stack_instances",
    "task_names",
    "trace",
    "train",
    "verify",
]

_HOMES = {
    "nram.api": ("Run", "compile_program", "extract", "find_program", "learn", "trace", "train"),
    "nram.modules": ("Module",),
    "nram.extensions": ("get_module", "get_task", "module_names", "register_module", "register_task", "task_names"),
    "nram.programs.ir": ("Program",),
    "nram.programs.library": ("load_program",),
    "nram.programs.verify": ("verify",),
    "nram.limits": ("StepLimit",),
    "nram.soft_machine": ("SoftMachine", "load_machine", "stack_instances"),
    "nram.tasks.base": ("Instance", "SymbolicCase", "Task"),
}
_home_of = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "register":
        return renamed("nram.register", "nram.register_task")
    if name not in _home_of:
        raise AttributeError(f"module 'nram' has no attribute {name!r}")
    try:
        home = import_module(_home_of[name])
    except ImportError as error:
        if (library := missing_for(error)) is None:
            raise
        raise NramError(f"nram.{name} needs {library}") from None
    value = globals()[name] = getattr(home, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
