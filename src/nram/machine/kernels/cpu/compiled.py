"""Kernels made by LLVM when they are first needed, kept on disk, and registered with JAX."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import platform
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
from llvmlite import binding, ir

from nram.errors import NramError
from nram.files import write_atomically
from nram.machine.kernels.cpu.kernel import ENTRY, INTERFACE_MAJOR, UNDERSTOOD, build_kernel
from nram.machine.kernels.cpu.shape import KernelShape, Vectors
from nram.programs.native.jit import parsed, target_machine
from nram.runtime import cache_folder

DIGEST = 32  # bytes before the code in a kept file, by which damage is noticed


@cache
def host_vectors() -> Vectors | None:
    """The float32 vectors of this processor; None where it has no fused multiply-add on vectors."""
    features = binding.get_host_cpu_features()
    if all(features.get(name) for name in ("avx512f", "avx512vl", "avx512dq")):
        return Vectors(16, 24)
    if features.get("avx2") and features.get("fma"):
        return Vectors(8, 12)
    if platform.machine() in ("aarch64", "arm64"):
        return Vectors(4, 24)
    return None


@cache
def registered(shape: KernelShape) -> str:
    """The name under which XLA finds the kernel for this shape."""
    name = f"nram_{_fingerprint(shape)[:24]}"
    register(name, loaded(object_code(shape)), ENTRY, "cpu")
    return name


def register(name: str, engine: Any, entry: str, platform: str) -> None:
    """Tell XLA of a function in machine code.

    Raises `RuntimeError` where XLA's interface is not the one that kernels are written for.
    """
    import jax

    function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(engine.get_function_address(entry))
    _KEPT.append((engine, function))
    jax.devices()  # a JAX that has not begun would ask later, and not begin at all if it does not like the answer
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(function), platform=platform, api_version=1)
    # A GPU's plugin may ask later: what it does not like, it refuses then.
    if platform == "cpu" and not understood(engine):
        raise RuntimeError(
            f"JAX {jax.__version__} has another version of XLA's foreign-function interface than the one that kernels "
            f"are written for, {INTERFACE_MAJOR}"
        )


def understood(engine: Any) -> bool:
    """Whether XLA has asked a kernel for the version of its interface, in a way that it knows."""
    return ctypes.c_int32.from_address(engine.get_global_value_address(UNDERSTOOD)).value == 1


_KEPT: list[Any] = []  # engines own their code: they live as long as the process


def loaded(code: bytes) -> Any:
    """The machine code, ready to be called."""
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), target_machine(host=True))
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


def object_code(shape: KernelShape) -> bytes:
    """The kernel's machine code, from the cache if it is there."""
    kept = cache_folder() / "kernels" / f"{_fingerprint(shape)}.o"
    try:
        whole = kept.read_bytes()
        digest, code = whole[:DIGEST], whole[DIGEST:]
        if hashlib.sha256(code).digest() == digest:
            return code
    except OSError:
        pass
    code = object_code_of(build_kernel(shape, x86=platform.machine() in ("x86_64", "AMD64")))
    with contextlib.suppress(OSError, NramError):  # without a cache it is only slower
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(kept, hashlib.sha256(code).digest() + code)
    return code


def object_code_of(module: ir.Module) -> bytes:
    """Compiled for this processor.

    By LLVM's code generator alone: what its passes before that do is done already in how the code is written, and they
    would take three times as long without making it faster.
    """
    machine = target_machine(host=True)
    return machine.emit_object(parsed(module, machine))


@cache
def _fingerprint(shape: KernelShape) -> str:
    """Of all that the machine code depends on."""
    cpu = binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()
    described = repr((shape, cpu, llvmlite.__version__, binding.llvm_version_info, _sources()))
    return hashlib.sha256(described.encode()).hexdigest()


@cache
def _sources() -> str:
    digest = hashlib.sha256()
    package = Path(__file__).parents[3]
    others = [package / name for name in ("algebra.py", "modules.py", "machine/wiring.py", "programs/native/jit.py")]
    for path in (*sorted(Path(__file__).parents[1].rglob("*.py")), *others):
        digest.update(path.read_bytes())
    return digest.hexdigest()
