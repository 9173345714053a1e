"""The code of the GPU's kernels: PTX, its launch, what it reads and writes, and when there is none."""

import ctypes
import re
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.xla_frame import GUARD, OTHER_QUESTIONS, PATTERN, Buffer, Frame, Table, answer_of, handler

from nram.extensions import select_modules
from nram.machine.kernels.cpu import kernel
from nram.machine.kernels.cpu.choice import NoKernel
from nram.machine.kernels.cpu.compiled import loaded, object_code_of, understood
from nram.machine.kernels.gpu.choice import make, warp_shape
from nram.machine.kernels.gpu.frame import WHOLE, buffer_shapes, given
from nram.machine.kernels.gpu.kernel import ENTRY, build_host_kernel, launches, ptx
from nram.machine.kernels.gpu.launch import HANDLER, build_handler
from nram.machine.kernels.gpu.shape import SHARED_BYTES, WarpShape
from nram.machine.wiring import Wiring
from nram.modules import MODULE_NAMES, Module

SETTINGS: dict[str, Any] = {
    "hidden": 4,
    "states": 2,
    "size": 5,
    "steps": 3,
    "batch": 7,
    "renormalising": True,
    "loss": "expected",
}
MEMBERS = 2


def shape_of(names=("READ", "MIN", "WRITE"), controller: Any = "mlp", registers: int = 2, **changes: Any) -> WarpShape:
    return warp_shape(controller, Wiring(registers, select_modules(names)), **(SETTINGS | changes))


GOAL: dict[str, Any] = {"registers": 4, "hidden": 32, "size": 32, "steps": 18, "batch": 32}


@pytest.mark.parametrize("gradient", [True, False])
def test_the_kernel_is_written_as_ptx_without_memory_of_a_threads_own(gradient):
    shape = shape_of(MODULE_NAMES, **GOAL).with_gradient(gradient)
    text = ptx(shape)
    assert re.search(rf"\.visible \.entry {ENTRY}\(", text)
    for launch in launches(shape):
        assert f".maxntid {32 * launch.warps}" in text
    assert text.count(".visible .entry") == len(launches(shape)) == (2 if gradient else 1)
    assert text.count(".param .u64") == len(buffer_shapes(shape)) * len(launches(shape))
    assert "shfl.sync" in text and "bar.warp.sync" in text
    assert ".local" not in text
    assert text.count("bar.sync") == 1


def test_a_block_gets_as_many_examples_as_fit_spread_evenly():
    goal = shape_of(MODULE_NAMES, **GOAL)
    assert (goal.warps, goal.blocks) == (16, 2)
    large = shape_of(MODULE_NAMES, **(GOAL | {"size": 64}))
    assert large.shared_bytes <= SHARED_BYTES < replace(large, warps=large.warps + 1).shared_bytes
    assert large.warps * large.blocks >= large.batch > large.warps * (large.blocks - 1)
    uneven = shape_of(batch=33)
    assert (uneven.warps, uneven.blocks) == (11, 3)


def test_where_memory_is_short_fewer_wires_are_gathered_rather_than_fewer_examples_run():
    shape = shape_of(MODULE_NAMES * 3, registers=4, hidden=16, size=17, batch=16)
    assert shape.gathered < 32
    assert shape.shared_bytes <= SHARED_BYTES < replace(shape, gathered=shape.gathered + 8).shared_bytes
    assert replace(shape, gathered=8, warps=2 * shape.warps).shared_bytes > SHARED_BYTES


@pytest.mark.parametrize("controller", ["mlp", "automaton"])
@pytest.mark.parametrize("names", [MODULE_NAMES, MODULE_NAMES * 2, ("WRITE",)])
def test_every_output_of_the_controller_has_a_place_of_its_own_in_its_wire(names, controller):
    shape = shape_of(names, controller, registers=4)
    arrangement, first = shape.arrangement, 0
    for wire, (start, length) in enumerate(zip(arrangement.starts, shape.wiring.lengths, strict=True)):
        assert start % 4 == 0
        assert sorted(shape.sources[start : start + length]) == list(range(first, first + length))
        assert [v + first for v in arrangement.choices(wire)] == list(shape.sources[start : start + length])
        first += length
    assert sorted(own for own in shape.sources if own >= 0) == list(range(shape.outputs))


def test_eight_wires_that_are_read_at_once_begin_in_different_banks_of_the_memory():
    arrangement = shape_of(MODULE_NAMES, **GOAL).arrangement
    banks = [arrangement.starts[wire] % 32 for wire in arrangement.slots]
    eights = [banks[start : start + 8] for start in range(0, len(banks), 8)]
    assert sum(len(set(eight)) for eight in eights) == len(banks)


class StreamQuestion(ctypes.Structure):
    """XLA_FFI_Stream_Get_Args"""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
    ]


class ErrorQuestion(ctypes.Structure):
    """XLA_FFI_Error_Create_Args"""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("message", ctypes.c_char_p),
        ("code", ctypes.c_int),
    ]


def table_of(addresses: list[int], shapes: list[tuple[int, ...]]) -> tuple[Table, list]:
    """Buffers at these addresses; also all that must stay alive."""
    dims = [(ctypes.c_int64 * len(shape))(*shape) for shape in shapes]
    buffers = [
        Buffer(data=address, rank=len(own), dims=ctypes.addressof(own))
        for address, own in zip(addresses, dims, strict=True)
    ]
    pointers = (ctypes.c_void_p * len(buffers))(*(ctypes.addressof(buffer) for buffer in buffers))
    return Table(count=len(buffers), buffers=ctypes.addressof(pointers)), [dims, buffers, pointers]


def frame_of(shape: WarpShape, addresses: list[int], **more) -> tuple[Frame, list]:
    shapes = [(MEMBERS, *own) for own in buffer_shapes(shape).values()]
    split = given(shape)
    arguments, alive = table_of(addresses[:split], shapes[:split])
    results, alive_too = table_of(addresses[split:], shapes[split:])
    return Frame(stage=3, arguments=arguments, results=results, **more), [alive, alive_too]


def called(shape: WarpShape, filling: int) -> dict[str, np.ndarray]:
    """The bytes of all results but the workspace, after a call with everything to be written filled so."""
    rng = np.random.default_rng(0)
    rooms = {}
    for number, (name, own) in enumerate(buffer_shapes(shape).items()):
        size = (MEMBERS, *own)
        content = rng.normal(size=size).astype(np.float32)
        if name in WHOLE:
            content = rng.integers(0, shape.size, size).astype(np.int32)
        if name == "limits":
            content = rng.integers(1, shape.steps + 1, size).astype(np.int32)
        if name == "options":
            content = np.broadcast_to(np.array([1.0, 1e-6], np.float32), size).copy()
        room = np.full(content.nbytes + 2 * GUARD, PATTERN, np.uint8)
        room[GUARD:-GUARD] = content.reshape(-1).view(np.uint8) if number < given(shape) else filling
        rooms[name] = room
    before = {name: room.copy() for name, room in rooms.items()}
    frame, _alive = frame_of(shape, [room.ctypes.data + GUARD for room in rooms.values()])
    engine = loaded(object_code_of(build_host_kernel(shape)))
    assert handler(engine, ENTRY)(ctypes.addressof(frame)) is None
    for number, (name, room) in enumerate(rooms.items()):
        np.testing.assert_array_equal(room[:GUARD], before[name][:GUARD])
        np.testing.assert_array_equal(room[-GUARD:], before[name][-GUARD:])
        if number < given(shape):
            np.testing.assert_array_equal(room, before[name])
    return {name: rooms[name][GUARD:-GUARD] for name in list(rooms)[given(shape) : -1]}


@pytest.mark.parametrize("gradient", [True, False])
def test_it_writes_all_of_its_results_and_nothing_else_and_reads_nothing_unwritten(gradient):
    shape = replace(shape_of(controller="automaton", platform="cpu"), gradient=gradient, warps=3)
    zeros, ones = called(shape, 0), called(shape, 0xFF)  # 0xFF...: not a number
    for name, result in zeros.items():
        np.testing.assert_array_equal(result, ones[name])
    assert all(np.all(np.isfinite(zeros[name].view(np.float32))) for name in zeros if name != "predicted")
    assert np.all(zeros["predicted"].view(np.int32) < shape.size)


LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    *[ctypes.c_uint] * 7,
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.POINTER(ctypes.c_void_p)),
    ctypes.c_void_p,
)
FUNCTIONS, STREAM, CONTEXT, OWN_ERROR = [0x1234, 0x4321], 0x5678, 0x9ABC, 0xDEF0


class Driver:
    """A stand-in for the GPU's driver and for XLA: it notes what it is asked."""

    def __init__(self, shape: WarpShape, status: int = 0):
        self.launches, self.errors = [], []
        names = list(buffer_shapes(shape))

        def launch(function, *rest):
            sizes, (stream, parameters, extra) = rest[:7], rest[7:]
            self.launches.append((function, sizes, stream, [parameters[i][0] for i in range(len(names))], extra))
            return status

        def stream(question):
            assert question[0].size == ctypes.sizeof(StreamQuestion) and question[0].context == CONTEXT
            question[0].stream = STREAM

        def error(question):
            self.errors.append(question[0].message.decode())
            return OWN_ERROR

        self.launch = LAUNCH(launch)
        kind = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(StreamQuestion))
        self.stream = kind(lambda question: stream(question))
        self.error = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(ErrorQuestion))(error)
        table = (ctypes.c_void_p * 12)()
        table[6], table[10] = (ctypes.cast(own, ctypes.c_void_p).value for own in (self.error, self.stream))
        address = ctypes.cast(self.launch, ctypes.c_void_p).value
        assert address is not None
        engine = loaded(object_code_of(build_handler(shape, FUNCTIONS[: len(launches(shape))], address)))
        entry = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(engine.get_function_address(HANDLER))
        self.addresses = [0x1000 * (number + 1) for number in range(len(names))]
        frame, _alive = frame_of(shape, self.addresses, api=ctypes.addressof(table), context=CONTEXT)
        self.answer = entry(ctypes.addressof(frame))


def test_all_members_are_in_the_same_launches_on_the_stream_of_xla():
    shape = shape_of(batch=20)
    driver = Driver(shape)
    expected = [
        (function, (MEMBERS * own.blocks, 1, 1, 32 * own.warps, 1, 1, own.shared_bytes), STREAM, driver.addresses, None)
        for function, own in zip(FUNCTIONS, launches(shape), strict=True)
    ]
    assert driver.launches == expected
    assert driver.answer is None and not driver.errors


def test_a_launch_that_fails_is_an_error_of_xla():
    driver = Driver(shape_of(), status=700)
    assert driver.answer == OWN_ERROR
    assert "does not take the kernel" in driver.errors[0]


def asked(**question):
    """What the handler answers to such a question, and whether it understood it."""
    shape = shape_of()
    engine = loaded(object_code_of(build_handler(shape, FUNCTIONS[: len(launches(shape))], launch=1)))
    return answer_of(handler(engine, HANDLER), **question), understood(engine)


def test_the_handler_speaks_the_minor_version_of_the_interface_that_is_asking():
    assert asked() == ((0, 7, 0), True)
    assert asked(frame_size=176, metadata_size=48, minor=9) == ((0, 9, 0), True)


@pytest.mark.parametrize("other", OTHER_QUESTIONS, ids=str)
def test_a_question_in_another_form_is_left_alone(other):
    assert asked(**other) == ((-1, -1, 5), False)


def test_there_is_no_kernel_where_xla_has_another_interface(monkeypatch):
    monkeypatch.setattr(kernel, "INTERFACE_MAJOR", 1)
    with pytest.raises(NoKernel, match=r"^the kernel cannot be made: .*$"):
        make(shape_of(("DEC",), size=6, platform="cpu"))


def test_there_is_no_kernel_without_llvm(monkeypatch):
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    monkeypatch.delitem(sys.modules, "nram.machine.kernels.gpu.compiled", raising=False)
    with pytest.raises(NoKernel, match="llvmlite does not work here"):
        make(shape_of())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"size": 65}, "64 cells"),
        ({"controller": "automaton", "states": 31}, "registers and states"),
        ({"hidden": 400}, "do not fit"),
    ],
)
def test_where_there_is_no_kernel_the_reason_is_said(changes, words):
    with pytest.raises(NoKernel, match=words):
        shape_of(**changes)


def test_there_is_no_kernel_for_other_peoples_modules():
    (inc,) = select_modules(("INC",))
    twice = Module("TWICE", inc.arguments, inc.integer, inc.fuzzy, inc.emit)
    with pytest.raises(NoKernel, match="module TWICE"):
        warp_shape("mlp", Wiring(2, (twice,)), **SETTINGS)
