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
from nram.errors import MissingName
from nram.errors import NramError as NramError
from nram.errors import UsageError as UsageError
from nram.extras import missing, missing_for

if TYPE_CHECKING:  # for type checkers and editors, to which `as` means that a name is public; see _HOMES
    from nram.api import Run as Run
    from nram.api import compile_program as compile_program
    from nram.api import evaluate as evaluate
    from nram.api import extract as extract
    from nram.api import find_program as find_program
    from nram.api import learn as learn
    from nram.api import load_run as load_run
    from nram.api import test as test
    from nram.api import trace as trace
    from nram.api import train as train
    from nram.extensions import get_module as get_module
    from nram.extensions import get_task as get_task
    from nram.extensions import module_names as module_names
    from nram.extensions import register_module as register_module
    from nram.extensions import register_task as register_task
    from nram.extensions import task_names as task_names
    from nram.learning.job import Learned as Learned
    from nram.limits import StepLimit as StepLimit
    from nram.modules import Module as Module
    from nram.pictures.trace_records import Trace as Trace
    from nram.programs.execute import Result as Result
    from nram.programs.ir import Program as Program
    from nram.programs.library import load_program as load_program
    from nram.programs.library import load_sketch as load_sketch
    from nram.programs.prove import Certificate as Certificate
    from nram.programs.prove import Check as Check
    from nram.programs.prove import Proof as Proof
    from nram.programs.prove import check_certificate as check_certificate
    from nram.programs.prove import prove as prove
    from nram.programs.sketch import Sketch as Sketch
    from nram.programs.testing import Tested as Tested
    from nram.programs.verify import Report as Report
    from nram.programs.verify import verify as verify
    from nram.search.state import Outcome as Outcome
    from nram.soft_machine import SoftMachine as SoftMachine
    from nram.soft_machine import load_machine as load_machine
    from nram.soft_machine import stack_instances as stack_instances
    from nram.tasks.base import Instance as Instance
    from nram.tasks.base import SymbolicCase as SymbolicCase
    from nram.tasks.base import Task as Task
    from nram.training.evaluated import Evaluation as Evaluation

if sys.platform == "win32":
    raise ImportError("nram needs Linux or macOS: on Windows, install and run it in WSL")

__version__ = "0.2.0"

_HOMES = {
    "nram.api": "Run compile_program evaluate extract find_program learn load_run test trace train",
    "nram.modules": "Module",
    "nram.extensions": "get_module get_task module_names register_module register_task task_names",
    "nram.learning.job": "Learned",
    "nram.pictures.trace_records": "Trace",
    "nram.programs.execute": "Result",
    "nram.programs.ir": "Program",
    "nram.programs.library": "load_program load_sketch",
    "nram.programs.prove": "Certificate Check Proof check_certificate prove",
    "nram.programs.sketch": "Sketch",
    "nram.programs.testing": "Tested",
    "nram.programs.verify": "Report verify",
    "nram.search.state": "Outcome",
    "nram.limits": "StepLimit",
    "nram.soft_machine": "SoftMachine load_machine stack_instances",
    "nram.tasks.base": "Instance SymbolicCase Task",
    "nram.training.evaluated": "Evaluation",
}
_home_of = {name: home for home, names in _HOMES.items() for name in names.split()}

# Without JAX, `from nram import *` leaves out the names that need it.
_importable = [name for name, home in _home_of.items() if home != "nram.soft_machine" or missing("train") is None]
__all__ = sorted(["NramError", "UsageError", "__version__", *_importable])  # pyright: ignore[reportUnsupportedDunderAll]


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
        # `from nram import NAME` would hide the message of an AttributeError.
        imported = sys._getframe(1).f_code.co_filename.startswith("<frozen importlib")
        raise (NramError if imported else MissingName)(f"nram.{name} needs {library}") from None
    value = globals()[name] = getattr(home, name)
    return value


def __dir__() -> list[str]:
    return __all__
