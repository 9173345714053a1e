"""Kernels made when they are first needed, and registered with JAX: for a CPU here, for a GPU by launch.py."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
from llvmlite import binding

from nram.machine.kernels.cpu.compiled import loaded, object_code_of, register
from nram.machine.kernels.gpu.kernel import ENTRY, build_host_kernel
from nram.machine.kernels.gpu.shape import WarpShape


def registered(shape: WarpShape) -> str:
    """The name under which XLA finds the kernel for this shape."""
    if shape.platform == "cpu":
        return _registered_on_host(shape)
    from nram.machine.kernels.gpu.launch import registered_on_device

    return registered_on_device(shape)


@cache
def _registered_on_host(shape: WarpShape) -> str:
    return offer(shape, loaded(object_code_of(build_host_kernel(shape))), ENTRY, "cpu")


def offer(shape: WarpShape, engine: Any, entry: str, platform: str) -> str:
    """Tell XLA of a handler in machine code. XLA keeps compiled programs on disk, with the names of what they call: a
    name must mean the same kernel in every process."""
    described = repr((shape, llvmlite.__version__, binding.llvm_version_info, _sources()))
    name = f"nram_warps_{hashlib.sha256(described.encode()).hexdigest()[:24]}"
    register(name, engine, entry, platform)
    return name


@cache
def _sources() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
