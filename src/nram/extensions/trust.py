"""Which Python files are executed: those that the user names, and those of stored data only if the user trusts it.

Stored data is whatever somebody else may have written: a run folder, weights, a file of settings. Code that looks up a
name out of it calls `known_task` and `select_modules`, which execute nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from nram.errors import UntrustedFile
from nram.extensions.loading import is_file_name
from nram.extensions.modules import REGISTRY as MODULES
from nram.extensions.tasks import REGISTRY as TASKS


def require_trusted(task: str, modules: Iterable[str], trust: bool) -> None:
    """Check the files that stored data names: UntrustedFile with all that the user has not named.

    With `trust` they are executed instead, those that are not loaded yet.
    """
    refused: list[tuple[str, str]] = []
    for registry, name in ((TASKS, task), *((MODULES, module) for module in modules)):
        if not is_file_name(name):
            continue
        try:
            registry.look_up(name)
        except UntrustedFile as error:
            if trust:
                registry.get(name)
            refused += error.files
    if refused and not trust:
        raise UntrustedFile(refused)
