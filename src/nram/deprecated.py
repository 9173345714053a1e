"""Old public names. Each works for one more release and warns (docs/compatibility.md)."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any


def renamed(old: str, new: str) -> Any:
    """Warn the user of the old name, and return what the new one means. Both are written as 'package.name'."""
    # The user is two calls up: above this function and the module's __getattr__.
    warnings.warn(f"{old} is now {new}: the old name goes in nram 0.3", DeprecationWarning, stacklevel=3)
    home, _, name = new.rpartition(".")
    return getattr(import_module(home), name)
