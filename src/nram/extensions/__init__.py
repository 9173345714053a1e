"""Tasks and modules by name, with user-defined ones: loaded from Python files or from installed packages, and checked.

Importing this package imports neither NumPy nor JAX.
"""

from nram.extensions.loading import is_file_name, lasting_name
from nram.extensions.module_checks import digest_of
from nram.extensions.modules import find_module, get_module, module_names, register_module, select_modules
from nram.extensions.pickling import prepare_pickling
from nram.extensions.tasks import get_task, is_task_file, known_task, register_task, task_names
from nram.extensions.trust import require_trusted

prepare_pickling()

__all__ = [
    "digest_of",
    "find_module",
    "get_module",
    "get_task",
    "is_file_name",
    "is_task_file",
    "known_task",
    "lasting_name",
    "module_names",
    "register_module",
    "register_task",
    "require_trusted",
    "select_modules",
    "task_names",
]
