"""nram: a Neural Random-Access Machine, from examples to programs."""

from nram.errors import NramError, UsageError
from nram.programs.ir import Program
from nram.programs.library import load_program
from nram.tasks import get_task, register, task_names

__version__ = "0.1.0"

__all__ = ["NramError", "Program", "UsageError", "__version__", "get_task", "load_program", "register", "task_names"]
