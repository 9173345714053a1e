"""The whole kernel: as a function that XLA calls on a CPU, for tests, and as PTX for a GPU.

There are two launches. In the first a block has two parts with a barrier between them: weights into shared memory,
then an example a warp. The second sums up the gradients of the weights: its warps need no shared memory and do not wait
for each other. On a GPU a launch is one function of all threads; on a CPU every part is a function that is called for
warp after warp.

Counted for `copy`, M 32, R 4, T 18, MLP 32-32, batch 32, blocks of 16 warps (one a multiprocessor: 128 registers a
thread, 220 KiB of shared memory). An example-step of the first launch has 1,400 loads, stores and exchanges of a warp.
These set the limit: a multiprocessor does one a cycle, but those of four numbers in two cycles if they are the same for
all lanes and in four if not, which makes 2,410, or 132 x 1.755 GHz / 2,410 = 96 million a second on an H200.

With four warps a scheduler little hides a wait for main memory, so what a step needs of the records is loaded at once,
before a sync: neither LLVM nor the driver's compiler moves a load across it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llvmlite import binding, ir

from nram.errors import NramError
from nram.machine.kernels.gpu.backward import BackwardPass
from nram.machine.kernels.gpu.call_frame import CallFrame
from nram.machine.kernels.gpu.device import GLOBAL, DeviceWarps, shared_memory
from nram.machine.kernels.gpu.episode import Episode
from nram.machine.kernels.gpu.forward import ForwardPass
from nram.machine.kernels.gpu.frame import Frame, Tables, buffer_shapes
from nram.machine.kernels.gpu.host import POINTER, HostWarps
from nram.machine.kernels.gpu.shape import LANES, WarpShape
from nram.machine.kernels.gpu.sums import SUMMING_WARPS, load_weights, store_gradients, summing_blocks
from nram.machine.kernels.gpu.warps import I32, I64, VOID, Value

ENTRY = "episodes"
SUMMING_TOGETHER = 4  # blocks of the second launch that a multiprocessor has registers for
TRIPLE = "nvptx64-nvidia-cuda"
PROCESSOR = "sm_90"


def run_example(frame: Frame) -> None:
    """The second part: this warp's example, if it has one."""
    to, shape = frame.to, frame.shape
    with to.at.if_then(to.at.icmp_signed("<", frame.example, to.index(shape.batch))):
        episode = Episode(frame)
        example = episode.read()
        mixed = ForwardPass(episode, example).run()
        if shape.gradient:
            BackwardPass(episode, example, mixed).run()


@dataclass(frozen=True)
class Launch:
    """A grid of members x blocks, each of some warps that run the parts one after the other."""

    entry: str
    parts: tuple[Callable[[Frame], None], ...]
    blocks: int  # of a member
    warps: int  # of a block
    shared_bytes: int = 0
    together: int = 1  # blocks that a multiprocessor must be able to run


def launches(shape: WarpShape) -> list[Launch]:
    """One after the other."""
    first = Launch(ENTRY, (load_weights, run_example), shape.blocks, shape.warps, shape.shared_bytes)
    if not shape.gradient:
        return [first]
    blocks = shape.parts * summing_blocks(shape)
    return [first, Launch("gradients", (store_gradients,), blocks, SUMMING_WARPS, together=SUMMING_TOGETHER)]


def _tables(module: ir.Module, shape: WarpShape, kind: ir.PointerType) -> Tables:
    def table(name: str, numbers: tuple[int, ...]) -> Value:
        array = ir.Constant(ir.ArrayType(I32, len(numbers)), list(numbers))
        constant: Any = ir.GlobalVariable(module, array.type, name, addrspace=kind.addrspace)
        constant.linkage, constant.global_constant, constant.initializer = "internal", True, array
        constant.align, constant.type = 16, kind
        return constant

    return Tables(table("wires", shape.table), table("sources", shape.sources))


# For a CPU


def build_host_kernel(shape: WarpShape) -> ir.Module:
    """The entry that XLA calls: all members, blocks, parts and warps one after the other."""
    module = ir.Module("episodes")
    tables = _tables(module, shape, POINTER)
    entry = CallFrame(module, ENTRY)
    names = list(buffer_shapes(shape))
    context = entry.to.at.alloca(POINTER, len(names))
    for number, address in enumerate(entry.buffers(shape)):
        entry.to.at.store(address, entry.to.at.gep(context, [I64(number)], source_etype=POINTER))
    to = entry.to

    def each(count: Value | int, body: Callable[[Value], Any]) -> None:
        to.repeat(count, lambda number, _: [body(number)][:0])

    def run(launch: Launch, member: Value) -> None:
        functions = [_host_part(module, shape, tables, part) for part in launch.parts]

        def block(number: Value) -> None:
            for function in functions:
                each(launch.warps, lambda warp, own=function: to.at.call(own, [context, member, number, warp]))

        each(launch.blocks, block)

    members = entry.members(shape)
    with to.at.if_then(to.at.icmp_signed(">", members, I64(0))):
        for launch in launches(shape):
            each(members, lambda member, launch=launch: run(launch, member))
    to.at.ret(ir.Constant(POINTER, None))
    return module


def _host_part(module: ir.Module, shape: WarpShape, tables: Tables, part: Callable[[Frame], None]) -> ir.Function:
    """void part(ptr* buffers, i64 member, i64 block, i64 warp)"""
    function = ir.Function(module, ir.FunctionType(VOID, [POINTER, I64, I64, I64]), part.__name__)
    function.linkage = "internal"
    function.attributes.add("noinline")
    to = HostWarps(function, shape.precision)
    context, *numbers = function.args
    member, block, warp = (to.at.trunc(number, I32) for number in numbers)
    buffers = {
        name: to.at.load(to.at.gep(context, [to.index(number)], source_etype=POINTER), typ=POINTER, align=8)
        for number, name in enumerate(buffer_shapes(shape))
    }
    part(Frame(to, shape, buffers, tables, member, block, warp, None))
    to.at.ret_void()
    return function


# For a GPU


def build_device_kernel(shape: WarpShape) -> ir.Module:
    """A function for every launch; the parameters are the buffers in order."""
    module = ir.Module("episodes")
    names = list(buffer_shapes(shape))
    tables = _tables(module, shape, GLOBAL)
    shared = shared_memory(module)
    for launch in launches(shape):
        function = ir.Function(module, ir.FunctionType(VOID, [GLOBAL] * len(names)), launch.entry)
        function.calling_convention = "ptx_kernel"
        to = DeviceWarps(function, shape.precision)
        number, blocks = to.special("ctaid.x"), to.index(launch.blocks)
        member, block = to.at.udiv(number, blocks), to.at.urem(number, blocks)
        warp = to.at.lshr(to.thread, to.index(LANES.bit_length() - 1))
        buffers = dict(zip(names, function.args, strict=True))
        for number, part in enumerate(launch.parts):
            if number > 0:
                to.barrier()
            part(Frame(to, shape, buffers, tables, member, block, warp, shared))
        to.at.ret_void()
    return module


def ptx(shape: WarpShape) -> str:
    """The kernel in the language that NVIDIA's driver compiles."""
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    try:
        machine = binding.Target.from_triple(TRIPLE).create_target_machine(cpu=PROCESSOR, opt=3)
    except RuntimeError as error:
        raise NramError(f"this LLVM cannot write PTX: {error}") from error
    module = build_device_kernel(shape)
    module.triple, module.data_layout = TRIPLE, str(machine.target_data)
    text = str(module)
    heads = [line for line in text.splitlines() if line.startswith("define ptx_kernel")]
    for head, launch in zip(heads, launches(shape), strict=True):
        # At most as many threads as are launched, so that the driver may give each its share of the registers.
        bounds = f'"nvvm.maxntid"="{launch.warps * LANES}" "nvvm.minctasm"="{launch.together}"'
        text = text.replace(head, f"{head} {bounds}", 1)
    reference = binding.parse_assembly(text)
    reference.verify()
    return machine.emit_assembly(reference)
