"""Numba's machine code in nram's cache.

Numba's own cache lies where other users may be able to write, its files are pickles, which run code when they are
read, and a damaged file stops the search until it is removed.
"""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from nram.cache import cache_folder, load, report, store
from nram.llvm import fingerprint


def cached_on_disk(dispatcher: Any, sources: tuple[str, ...]) -> Any:
    """The function that `njit` made, with its machine code cached. `sources` names all files that determine it."""
    dispatcher._cache = _DiskCache(dispatcher.py_func.__qualname__, sources)
    return dispatcher


class _DiskCache(NullCache):
    """Numba's interface of caches: the machine code of one function, for each signature a file."""

    def __init__(self, function: str, sources: tuple[str, ...]):
        self.function = function
        self.sources = sources

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        code = load(_folder(), self._name(sig))
        if code is not None:
            try:
                return CompileResult._rebuild(target_context, *pickle.loads(code))
            except Exception as error:  # whatever it is: Numba compiles the function again
                report(f"{self.function}: {error!r}")
        return None

    def save_overload(self, sig: Any, cres: Any) -> None:
        try:
            code = dumps(cres._reduce())
        except Exception as error:  # the function works, but its code cannot be kept
            report(f"{self.function}: {error!r}")
        else:
            store(_folder(), self._name(sig), code)

    def _name(self, signature: Any) -> str:
        described = self.function, signature, numba.__version__, sys.version_info[:3]
        return f"{self.function}-{fingerprint(described, self.sources)}"


def _folder() -> Path | None:
    # Not `numba.config.CACHE_DIR`: a file .numba_config.yaml in the current folder, which may be received, can set it.
    return cache_folder("numba", os.environ.get("NUMBA_CACHE_DIR"))
