"""nram: a Neural Random-Access Machine, from examples to programs."""

from nram.errors import NramError, UsageError
from nram.tasks import get_task, register, task_names

__version__ = "0.1.0"

__all__ = ["NramError", "UsageError", "__version__", "get_task", "register", "task_names"]
