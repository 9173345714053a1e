"""Kernels made when they are first needed, and registered with JAX: for a CPU here, for a GPU by launch.py."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
from llvmlite import binding

from nram.machine.fast.compiled import loaded, object_code_of
from nram.machine.gpu.kernel import ENTRY, build_host_kernel
from nram.machine.gpu.shape import WarpShape

_KEPT: list[Any] = []  # engines own their code: they live as long as the process


def registered(shape: WarpShape) -> str:
    """The name under which XLA finds the kernel for this shape."""
    if shape.platform == "cpu":
        return _registered_on_host(shape)
    from nram.machine.gpu.launch import registered_on_device

    return registered_on_device(shape)


@cache
def _registered_on_host(shape: WarpShape) -> str:
    return offer(shape, loaded(object_code_of(build_host_kernel(shape))), ENTRY, "cpu")


def offer(shape: WarpShape, engine: Any, entry: str, platform: str) -> str:
    """Tell XLA of a handler in machine code. XLA keeps compiled programs on disk, with the names of what they call: a
    name must mean the same kernel in every process."""
    import ctypes

    import jax

    function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(engine.get_function_address(entry))
    _KEPT.append((engine, function))
    described = repr((shape, llvmlite.__version__, binding.llvm_version_info, _sources()))
    name = f"nram_warps_{hashlib.sha256(described.encode()).hexdigest()[:24]}"
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(function), platform=platform, api_version=1)
    return name


@cache
def _sources() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
