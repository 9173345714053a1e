"""The code of the GPU's kernels: PTX, its launch, how memory is used, and when there is no kernel."""

import ctypes
import re
from dataclasses import replace
from typing import Any

import pytest
from support.xla_frame import call_frame

from nram.extensions import select_modules
from nram.llvm import loaded, object_code
from nram.machine.kernels.common.specification import NoKernel, specify
from nram.machine.kernels.gpu import launch as gpu_launch
from nram.machine.kernels.gpu.kernel import ENTRY, launches, ptx
from nram.machine.kernels.gpu.launch import HANDLER, DeviceFunction, GpuFunctions, build_handler
from nram.machine.kernels.gpu.shape import RESERVED_BYTES, SHARED_BYTES, WarpShape, warp_shape
from nram.machine.wiring import Wiring
from nram.modules import MODULE_NAMES

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
    settings = SETTINGS | {"controller": controller} | changes
    return warp_shape(specify(Wiring(registers, select_modules(names)), **settings))


GOAL: dict[str, Any] = {"registers": 4, "hidden": 32, "size": 32, "steps": 18, "batch": 32}


@pytest.mark.parametrize("gradient", [True, False])
def test_the_kernel_is_written_as_ptx_without_memory_of_a_threads_own(gradient):
    shape = shape_of(MODULE_NAMES, **GOAL).with_gradient(gradient)
    text = ptx(shape)
    assert re.search(rf"\.visible \.entry {ENTRY}\(", text)
    for launch in launches(shape):
        assert f".maxntid {32 * launch.warps}" in text
    assert text.count(".visible .entry") == len(launches(shape)) == (2 if gradient else 1)
    assert text.count(".param .u64") == len(shape.buffers) * len(launches(shape))
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


def test_small_blocks_share_a_multiprocessor():
    goal, small = shape_of(MODULE_NAMES, **GOAL), GOAL | {"hidden": 16, "size": 13, "batch": 8}
    pair = shape_of(MODULE_NAMES, **small)
    assert (goal.together, pair.warps, pair.together) == (1, 8, 2)
    assert 2 * (pair.shared_bytes + RESERVED_BYTES) <= SHARED_BYTES + RESERVED_BYTES
    assert ".minnctapersm 2" in ptx(pair)
    # The wires that are gathered are fewer where this makes room for a second block.
    wide = shape_of([*MODULE_NAMES, "READ", "READ", "ADD", "ADD", "INC"], **(small | {"registers": 6}))
    assert wide.together == 2 and wide.gathered < 32
    assert replace(wide, gathered=32).together == 1


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


LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    *[ctypes.c_uint] * 7,
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.POINTER(ctypes.c_void_p)),
    ctypes.c_void_p,
)
CONTEXT_OF = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
STREAM, CONTEXT, OWN_ERROR = 0x5678, 0x9ABC, 0xDEF0
FIRST, SECOND, THIRD = (
    GpuFunctions(0x10 * gpu, [DeviceFunction(0x100 * gpu + launch, 0, 0) for launch in range(2)]) for gpu in (1, 2, 3)
)


class Driver:
    """A stand-in for the GPU's driver and for XLA: it notes what it is asked."""

    def __init__(self, shape: WarpShape, gpus: tuple[GpuFunctions, ...] = (FIRST,), context: int = 0, status: int = 0):
        self.launches, self.errors, self.questions = [], [], 0
        names = list(shape.buffers)

        def launch(function, *rest):
            sizes, (stream, parameters, extra) = rest[:7], rest[7:]
            self.launches.append((function, sizes, stream, [parameters[i][0] for i in range(len(names))], extra))
            return status

        def context_of(stream, found):
            assert stream == STREAM
            self.questions += 1
            found[0] = context
            return 0 if context else 201

        def stream(question):
            assert question[0].size == ctypes.sizeof(StreamQuestion) and question[0].context == CONTEXT
            question[0].stream = STREAM

        def error(question):
            self.errors.append(question[0].message.decode())
            return OWN_ERROR

        self.launch, self.context_of = LAUNCH(launch), CONTEXT_OF(context_of)
        kind = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(StreamQuestion))
        self.stream = kind(lambda question: stream(question))
        self.error = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(ErrorQuestion))(error)
        table = (ctypes.c_void_p * 12)()
        own = self.error, self.stream, self.launch, self.context_of
        table[6], table[10], *addresses = (ctypes.cast(function, ctypes.c_void_p).value or 0 for function in own)
        engine = loaded(object_code(build_handler(shape, list(gpus), *addresses)))
        entry = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(engine.get_function_address(HANDLER))
        self.addresses = [0x1000 * (number + 1) for number in range(len(names))]
        frame, _alive = call_frame(shape, (MEMBERS,), self.addresses, api=ctypes.addressof(table), context=CONTEXT)
        self.answer = entry(ctypes.addressof(frame))


def test_all_members_are_in_the_same_launches_on_the_stream_of_xla():
    shape = shape_of(batch=20)
    driver = Driver(shape)
    expected = [
        (
            function.address,
            (MEMBERS * own.blocks, 1, 1, 32 * own.warps, 1, 1, own.shared_bytes),
            STREAM,
            driver.addresses,
            None,
        )
        for function, own in zip(FIRST.functions, launches(shape), strict=True)
    ]
    assert driver.launches == expected
    assert driver.answer is None and not driver.errors
    assert driver.questions == 0  # there is only one GPU


@pytest.mark.parametrize("gpu", [FIRST, SECOND, THIRD])
def test_of_several_gpus_each_launches_its_own_functions(gpu):
    driver = Driver(shape_of(), (FIRST, SECOND, THIRD), gpu.context)
    assert [function for function, *_ in driver.launches] == [function.address for function in gpu.functions]
    assert driver.answer is None and not driver.errors


@pytest.mark.parametrize("context", [0, 0x40])
def test_no_gpu_launches_the_functions_of_another(context):
    driver = Driver(shape_of(), (FIRST, SECOND), context, status=400)
    assert [function for function, *_ in driver.launches] == [None, None]
    assert driver.answer == OWN_ERROR


class Gpus:
    """A stand-in for the GPU's driver, as `ctypes` calls it: contexts and functions have the number of their GPU."""

    def __init__(self):
        self.contexts: list[int] = []

    def cuInit(self, flags):
        return 0

    def cuDeviceGet(self, device, ordinal):
        device._obj.value = ordinal
        return 0

    def cuDevicePrimaryCtxRetain(self, context, device):
        context._obj.value = 0x10 * device.value
        return 0

    def cuCtxPushCurrent_v2(self, context):
        self.contexts.append(context.value)
        return 0

    def cuCtxPopCurrent_v2(self, former):
        former._obj.value = self.contexts.pop()
        return 0

    def cuModuleLoadDataEx(self, module, text, count, options, values):
        assert b".visible .entry" in text.value
        module._obj.value = self.contexts[-1]
        return 0

    def cuModuleGetFunction(self, function, module, name):
        function._obj.value = 0x10 * module.value + (name != ENTRY.encode())
        return 0

    def cuFuncSetAttribute(self, function, attribute, value):
        return 0 if self.contexts else 201

    def cuFuncGetAttribute(self, number, attribute, function):
        return 0


def test_the_kernel_is_compiled_for_every_gpu_in_its_own_context(monkeypatch):
    cuda = Gpus()
    monkeypatch.setattr(gpu_launch, "driver", lambda: cuda)
    for ordinal, gpu in ((1, FIRST), (3, THIRD)):
        assert gpu_launch.compiled_on_gpu(shape_of(), ordinal) == gpu
    assert not cuda.contexts


def test_a_launch_that_fails_is_an_error_of_xla():
    driver = Driver(shape_of(), status=700)
    assert driver.answer == OWN_ERROR
    assert "does not take the kernel" in driver.errors[0]


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
