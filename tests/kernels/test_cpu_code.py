"""The machine code of the kernels: its functions of a number, its bounds, its cache, and when there is none."""

import ctypes
from dataclasses import replace

import numpy as np
import pytest
from llvmlite import ir
from support.xla_frame import GUARD, OTHER_QUESTIONS, PATTERN, Buffer, Frame, Table, answer_of, handler

from nram.extensions import select_modules
from nram.machine.kernels.common.vector_math import exponential, hyperbolic_tangent, logarithm, logistic
from nram.machine.kernels.cpu import compiled, kernel
from nram.machine.kernels.cpu.choice import NoKernel, kernel_shape, make
from nram.machine.kernels.cpu.lanes import POINTER, VOID, Lanes
from nram.machine.kernels.cpu.shape import KernelShape
from nram.machine.wiring import Wiring
from nram.modules import Module

SETTINGS = {"hidden": 4, "states": 2, "size": 5, "steps": 3, "batch": 7, "renormalising": True, "loss": "expected"}


def shape_of(names=("READ", "MIN", "WRITE"), **changes) -> KernelShape:
    return kernel_shape("mlp", Wiring(2, select_modules(names)), **(SETTINGS | changes))


def applied(function, xs: np.ndarray) -> np.ndarray:
    """One of the kernels' functions, compiled alone, on every number."""
    width = 4
    module = ir.Module("one")
    entry = ir.Function(module, ir.FunctionType(VOID, [POINTER, POINTER]), "apply")
    to = Lanes(entry, "float32" if xs.dtype == np.float32 else "float64", width, 8)
    source, target = entry.args
    to.each(len(xs) // width, lambda i: to.store(function(to, to.load(source, i)), target, i))
    to.at.ret_void()
    engine = compiled.loaded(compiled.object_code_of(module))
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


def table_of(contents: list[np.ndarray]) -> tuple[Table, list]:
    """Buffers with guards around them; also all that must stay alive."""
    rooms, buffers = [], []
    for content in contents:
        room = np.full(content.nbytes + 2 * GUARD, PATTERN, np.uint8)
        room[GUARD : GUARD + content.nbytes] = content.reshape(-1).view(np.uint8)
        rooms.append(room)
        buffers.append(Buffer(data=room.ctypes.data + GUARD))
    pointers = (ctypes.c_void_p * len(buffers))(*(ctypes.addressof(buffer) for buffer in buffers))
    return Table(count=len(buffers), buffers=ctypes.addressof(pointers)), [rooms, buffers, pointers]


def called(shape: KernelShape, filling: int) -> list[np.ndarray]:
    """The bytes of all results but the workspace, after a call with everything to be written filled so."""
    rng = np.random.default_rng(0)
    layers = [(layer.inputs, layer.outputs) for layer in shape.layers]
    weights = [rng.normal(size=size).astype(np.float32) for pair in layers for size in (pair, pair[1:])]
    cells = (shape.batch, shape.size)
    limits = np.arange(shape.batch, dtype=np.int32) % shape.steps + 1
    given = [
        *weights,
        np.argsort(limits).astype(np.int32),
        rng.integers(0, shape.size, cells).astype(np.int32),
        rng.integers(0, shape.size, cells).astype(np.int32),
        np.full(cells, 1 / shape.size, np.float32),
        limits,
        rng.normal(size=(3, shape.batch)).astype(np.float32),
        np.array([1.0, 1e-6, np.log(1e-6)], np.float32),
    ]
    made = [np.zeros((3, shape.batch), np.float32), np.zeros(cells, np.int32)]
    made += [np.zeros_like(weight) for weight in weights] if shape.gradient else []
    made += [np.zeros(shape.workspace_scalars, np.float32)]
    for room in made:
        room.reshape(-1).view(np.uint8)[:] = filling
    arguments, alive = table_of(given)
    results, alive_too = table_of(made)
    frame = Frame(stage=3, arguments=arguments, results=results)
    engine = compiled.loaded(compiled.object_code(shape))
    assert handler(engine, compiled.ENTRY)(ctypes.addressof(frame)) is None
    for room, content in zip(alive[0], given, strict=True):
        np.testing.assert_array_equal(room[GUARD:-GUARD], content.reshape(-1).view(np.uint8))
    for room in alive[0] + alive_too[0]:
        assert np.all(room[:GUARD] == PATTERN) and np.all(room[-GUARD:] == PATTERN)
    return [room[GUARD:-GUARD].copy() for room in alive_too[0][:-1]]


@pytest.mark.parametrize("gradient", [True, False])
@pytest.mark.parametrize("batch", [3, 16, 21])
def test_it_writes_all_of_its_results_and_nothing_else_and_reads_nothing_unwritten(batch, gradient):
    shape = replace(shape_of(batch=batch), gradient=gradient)
    zeros, ones = called(shape, 0), called(shape, 0xFF)  # 0xFF...: not a number
    for one, other in zip(zeros, ones, strict=True):
        np.testing.assert_array_equal(one, other)
    assert all(np.all(np.isfinite(result.view(np.float32))) for result in zeros[2:])


def asked(**question):
    """What a kernel answers to such a question, and whether it understood it."""
    engine = compiled.loaded(compiled.object_code(shape_of(("INC",))))
    return answer_of(handler(engine, compiled.ENTRY), **question), compiled.understood(engine)


def test_it_speaks_the_minor_version_of_the_interface_that_is_asking():
    assert asked() == ((0, 7, 0), True)
    assert asked(frame_size=176, metadata_size=48, minor=9) == ((0, 9, 0), True)


@pytest.mark.parametrize("other", OTHER_QUESTIONS, ids=str)
def test_a_question_in_another_form_is_left_alone(other):
    assert asked(**other) == ((-1, -1, 5), False)


def test_there_is_no_kernel_where_xla_has_another_interface(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(kernel, "INTERFACE_MAJOR", 1)
    with pytest.raises(NoKernel, match="cannot be used here"):
        make(shape_of(("DEC",), size=6))


def test_machine_code_is_kept_and_made_again_when_it_is_damaged(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    shape = shape_of(("INC",))
    code = compiled.object_code(shape)
    (kept,) = (tmp_path / "nram" / "kernels").iterdir()
    assert kept.read_bytes().endswith(code)
    before = kept.stat().st_mtime_ns
    assert compiled.object_code(shape) == code
    assert kept.stat().st_mtime_ns == before
    kept.write_bytes(kept.read_bytes()[:-1])
    assert compiled.object_code(shape) == code
    assert kept.read_bytes().endswith(code)


def test_a_cache_that_cannot_be_written_is_no_failure(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    assert compiled.object_code(shape_of(("INC",)))


def test_there_is_no_kernel_for_other_peoples_modules():
    (inc,) = select_modules(("INC",))
    twice = Module("TWICE", inc.arguments, inc.integer, inc.fuzzy, inc.emit)
    for module in (twice, replace(inc, fuzzy=lambda xp, size, a: a)):
        with pytest.raises(NoKernel, match=f"module {module.name}"):
            kernel_shape("mlp", Wiring(2, (module,)), **SETTINGS)
