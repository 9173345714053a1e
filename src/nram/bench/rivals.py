"""What programs are measured against: C written by hand, compiled in two ways, and NumPy."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nram.errors import NramError

HAND_WRITTEN = Path(__file__).parents[3] / "benchmarks" / "native"  # in a checkout, not in a wheel
SOURCES = ("tasks.c", "suite.c")
SCALAR = ("-O2", "-fno-tree-vectorize", "-fno-tree-slp-vectorize", "-fno-tree-loop-distribute-patterns")
FASTEST = ("-O3", "-march=native")

Solve = Callable[[np.ndarray], None]
"""Solves a task on every memory of a batch, in place."""


class Compiler(NamedTuple):
    path: str
    version: str


def find_compiler() -> Compiler | None:
    """The C compiler, or None if there is none or this is no checkout."""
    path = shutil.which("gcc") or shutil.which("cc")
    if path is None or not HAND_WRITTEN.is_dir():
        return None
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    return Compiler(path, said.splitlines()[0] if said else path)


@contextmanager
def hand_written(compiler: Compiler | None) -> Iterator[Callable[[str], dict[str, Solve]]]:
    """A function from the name of a task to its solutions in C; without a compiler there are none."""
    if compiler is None:
        yield lambda task: {}
        return
    with tempfile.TemporaryDirectory(prefix="nram-") as folder:
        libraries = {}
        for name, options in (("c_scalar", SCALAR), ("c_fastest", FASTEST)):
            path = Path(folder, f"{name}.so")
            sources = [str(HAND_WRITTEN / source) for source in SOURCES]
            command = [compiler.path, *options, "-shared", "-fPIC", "-o", str(path), *sources]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise NramError(f"{compiler.path} could not compile {HAND_WRITTEN}: {done.stderr.strip()[-1000:]}")
            libraries[name] = ctypes.CDLL(str(path))
        yield lambda task: {name: _solver(library, task) for name, library in libraries.items()}


def _solver(library: ctypes.CDLL, task: str) -> Solve:
    function = getattr(library, f"{task}_batch")
    function.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]
    function.restype = None
    return lambda batch: function(batch.ctypes.data, *batch.shape)


# ---- NumPy


def _access(batch: np.ndarray) -> None:
    rows = np.arange(len(batch))
    batch[:, 0] = batch[rows, batch[:, 0] + 1]


def _increment(batch: np.ndarray) -> None:
    for memory in batch:
        memory[: np.flatnonzero(memory == 0)[0]] += 1


def _copy(batch: np.ndarray) -> None:
    for memory in batch:
        p = int(memory[0])
        memory[p : 2 * p - 1] = memory[1:p]


def _reverse(batch: np.ndarray) -> None:
    for memory in batch:
        p = int(memory[0])
        memory[p : 2 * p - 1] = memory[p - 1 : 0 : -1]


def _swap(batch: np.ndarray) -> None:
    rows = np.arange(len(batch))
    p, q = batch[:, 0].copy(), batch[:, 1].copy()
    batch[rows, p], batch[rows, q] = batch[rows, q], batch[rows, p]


NUMPY: dict[str, Solve] = {
    "access": _access,
    "increment": _increment,
    "copy": _copy,
    "reverse": _reverse,
    "swap": _swap,
}
"""The tasks for which NumPy has a natural form."""
