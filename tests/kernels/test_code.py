"""The machine code of the kernels: functions of a number, bounds, the interface with XLA, and when there is none."""

import ctypes
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from llvmlite import ir
from support.emulated_gpu import build_emulated_kernel, emulated_shape
from support.xla_frame import OTHER_QUESTIONS, answer_of, guarded_call, handler

from nram.extensions import select_modules
from nram.llvm import PACKAGE, POINTER, VOID, loaded, object_code
from nram.machine.kernels.common import call_frame
from nram.machine.kernels.common.choice import Kernel, choose_kernel, compiled_kernel
from nram.machine.kernels.common.specification import NoKernel, Specification, specify
from nram.machine.kernels.common.vector_math import exponential, hyperbolic_tangent, logarithm, logistic
from nram.machine.kernels.cpu import kernel as cpu_kernel
from nram.machine.kernels.cpu.lanes import Lanes
from nram.machine.kernels.cpu.shape import lane_shape
from nram.machine.kernels.gpu.kernel import ENTRY
from nram.machine.kernels.gpu.launch import HANDLER, DeviceFunction, GpuFunctions, build_handler
from nram.machine.kernels.gpu.shape import warp_shape
from nram.machine.wiring import Wiring
from nram.modules import Module

SETTINGS: dict[str, Any] = {
    "controller": "mlp",
    "hidden": 4,
    "states": 2,
    "size": 5,
    "steps": 3,
    "batch": 7,
    "renormalising": True,
    "loss": "expected",
}
CPU: Any = SimpleNamespace(platform="cpu")
GPU: Any = SimpleNamespace(platform="gpu")


def specification(names=("READ", "MIN", "WRITE"), **changes) -> Specification:
    return specify(Wiring(2, select_modules(names)), **(SETTINGS | changes))


def applied(function, xs: np.ndarray) -> np.ndarray:
    """One of the kernels' functions, compiled alone, on every number."""
    width = 4
    module = ir.Module("one")
    entry = ir.Function(module, ir.FunctionType(VOID, [POINTER, POINTER]), "apply")
    code = Lanes(entry, "float32" if xs.dtype == np.float32 else "float64", width, 8)
    source, target = entry.args
    code.each(len(xs) // width, lambda i: code.store(function(code, code.load(source, i)), target, i))
    code.at.ret_void()
    engine = loaded(object_code(module))
    result = np.zeros_like(xs)
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(engine.get_function_address("apply"))
    run(_aligned(xs, given := np.zeros(xs.nbytes + 64, np.uint8)), _aligned(xs, made := np.zeros_like(given)))
    start = -made.ctypes.data % 64
    result[:] = made[start : start + xs.nbytes].view(xs.dtype)
    return result


def _aligned(xs: np.ndarray, room: np.ndarray) -> int:
    start = -room.ctypes.data % 64
    room[start : start + xs.nbytes] = xs.view(np.uint8)
    return room.ctypes.data + start


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("function", "expected", "low", "high"),
    [
        (exponential, np.exp, -87, 88),
        (logarithm, np.log, 1e-30, 1e3),
        (logistic, lambda x: 1 / (1 + np.exp(-x)), -80, 80),
        (hyperbolic_tangent, np.tanh, -12, 12),
        (hyperbolic_tangent, np.tanh, -1, 1),
    ],
)
def test_functions_are_right_to_the_last_bits(function, expected, low, high, dtype):
    xs = np.linspace(low, high, 4000).astype(dtype)
    exact = expected(xs.astype(np.float64))
    error = np.abs(applied(function, xs) - exact) / np.maximum(np.abs(exact), np.finfo(dtype).tiny)
    assert np.max(error) < (4e-7 if dtype == np.float32 else 1e-14)


def test_functions_keep_what_is_not_a_number_and_reach_their_limits():
    xs = np.array([np.nan, -np.inf, -1e9, 0], np.float32)
    np.testing.assert_array_equal(applied(exponential, xs), [np.nan, 0, 0, 1])
    np.testing.assert_array_equal(
        applied(logarithm, np.array([np.nan, np.inf, 1, 1], np.float32)), [np.nan, np.inf, 0, 0]
    )
    assert np.isnan(applied(hyperbolic_tangent, xs)[0])
    assert np.isnan(applied(logistic, xs)[0])


@pytest.mark.parametrize("gradient", [True, False])
@pytest.mark.parametrize("batch", [3, 16, 21])
def test_the_cpu_kernel_writes_all_of_its_results_and_nothing_else_and_reads_nothing_unwritten(batch, gradient):
    shape = lane_shape(specification(batch=batch, gradient=gradient))
    check_writes(loaded(cpu_kernel.compiled(shape)), cpu_kernel.ENTRY, shape, ())


@pytest.mark.parametrize("gradient", [True, False])
def test_the_gpu_kernel_writes_all_of_its_results_and_nothing_else_and_reads_nothing_unwritten(gradient):
    shape = replace(emulated_shape(specification(controller="automaton", gradient=gradient)), warps=3)
    check_writes(loaded(object_code(build_emulated_kernel(shape))), ENTRY, shape, (2,))


def check_writes(engine, entry, shape, members) -> None:
    zeros = guarded_call(handler(engine, entry), shape, members, 0)
    others = guarded_call(handler(engine, entry), shape, members, 0xFF)  # 0xFF...: not a number
    for name, result in zeros.items():
        np.testing.assert_array_equal(result, others[name])
    assert all(np.all(np.isfinite(zeros[name].view(np.float32))) for name in zeros if name != "predicted")
    assert np.all(zeros["predicted"].view(np.int32) < shape.size)


def asked(kernel: str, **question):
    """What a kernel answers to such a question, and whether it understood it."""
    if kernel == "cpu":
        engine, entry = loaded(cpu_kernel.compiled(lane_shape(specification(("INC",))))), cpu_kernel.ENTRY
    else:
        shape, gpu = warp_shape(specification(("INC",))), GpuFunctions(5, [DeviceFunction(2, 0, 0)] * 2)
        engine, entry = loaded(object_code(build_handler(shape, [gpu], launch=1, context_of=4))), HANDLER
    return answer_of(handler(engine, entry), **question), call_frame.understood(engine)


@pytest.mark.parametrize("kernel", ["cpu", "gpu"])
def test_it_speaks_the_minor_version_of_the_interface_that_is_asking(kernel):
    assert asked(kernel) == ((0, 7, 0), True)
    assert asked(kernel, frame_size=176, metadata_size=48, minor=9) == ((0, 9, 0), True)


@pytest.mark.parametrize("other", OTHER_QUESTIONS, ids=str)
@pytest.mark.parametrize("kernel", ["cpu", "gpu"])
def test_a_question_in_another_form_is_left_alone(kernel, other):
    assert asked(kernel, **other) == ((-1, -1, 5), False)


@pytest.mark.parametrize("shape_of", [lane_shape, emulated_shape])
def test_there_is_no_kernel_where_xla_has_another_interface(shape_of, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(call_frame, "INTERFACE_MAJOR", 1)
    kernel = compiled_kernel(Kernel(shape_of(specification(("DEC",), size=6))))
    assert kernel.shape is None
    assert kernel.reason.startswith("the kernel cannot be made: ")


@pytest.mark.parametrize("device", [CPU, GPU])
def test_there_is_no_kernel_without_llvm(device, monkeypatch):
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    for name in ("nram.llvm", "nram.machine.kernels.cpu.kernel", "nram.machine.kernels.gpu.launch"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    kernel = compiled_kernel(choose_kernel([device], Wiring(2, select_modules(("INC",))), **SETTINGS))
    assert kernel.shape is None
    assert kernel.reason.startswith("llvmlite does not work here")


def test_there_is_no_kernel_for_user_defined_modules():
    (inc,) = select_modules(("INC",))
    twice = Module("TWICE", inc.arguments, inc.integer, inc.fuzzy, inc.emit)
    for module in (twice, replace(inc, fuzzy=lambda xp, size, a: a)):
        with pytest.raises(NoKernel, match=f"module {module.name}"):
            specify(Wiring(2, (module,)), **SETTINGS)


@pytest.mark.parametrize(("package", "others"), [("cpu", ("gpu",)), ("gpu", ("cpu",)), ("common", ("cpu", "gpu"))])
def test_the_kernels_do_not_know_each_other(package, others):
    for path in (PACKAGE / "machine" / "kernels" / package).glob("*.py"):
        if path.name != "choice.py":
            assert not [other for other in others if f"nram.machine.kernels.{other}" in path.read_text()], path
