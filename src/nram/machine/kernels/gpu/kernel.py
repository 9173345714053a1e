"""The whole kernel, as PTX for a GPU.

There are two launches. In the first a block has two parts with a barrier between them: weights into shared memory,
then one example per warp. The second sums the gradients of the weights: its warps need no shared memory and do not wait
for each other. A launch is one function of all threads.

What limits the speed, counted for `copy`, M 32, R 4, T 18, MLP 32-32, batch 32, blocks of 16 warps (one block per
multiprocessor: 128 registers per thread, 220 KiB of shared memory). An example-step of the first launch has 1,400
loads, stores and exchanges of a warp. A multiprocessor does one per cycle; those of four numbers take two cycles if
they are the same for all lanes, otherwise four. This makes 2,410 cycles, or 132 x 1.755 GHz / 2,410 = 96 million
example-steps per second on an H200.

A scheduler has only four warps, too few to hide a wait for main memory. Everything that a step needs of the records is
therefore loaded at once, before a sync: neither LLVM nor the driver's compiler moves a load across it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llvmlite import binding, ir

from nram.errors import NramError
from nram.llvm import I32, VOID, Value
from nram.machine.kernels.gpu.backward import BackwardPass
from nram.machine.kernels.gpu.device import GLOBAL, DeviceWarps, shared_memory
from nram.machine.kernels.gpu.episode import Episode
from nram.machine.kernels.gpu.forward import ForwardPass
from nram.machine.kernels.gpu.frame import Frame, Position, Tables
from nram.machine.kernels.gpu.shape import LANES, WarpShape
from nram.machine.kernels.gpu.sums import SUMMING_WARPS, load_weights, store_gradients, summing_blocks

ENTRY = "episodes"
SUMMING_TOGETHER = 4  # blocks of the second launch that a multiprocessor has registers for
TRIPLE = "nvptx64-nvidia-cuda"
PROCESSOR = "sm_90"


def run_example(frame: Frame) -> None:
    """The second part of the first launch: this warp's example, if it has one."""
    code, shape = frame.code, frame.shape
    with code.at.if_then(code.at.icmp_signed("<", frame.example, code.index(shape.batch))):
        episode = Episode(frame)
        example = episode.read()
        mixed = ForwardPass(episode, example).run()
        if shape.gradient:
            BackwardPass(episode, example, mixed).run()


@dataclass(frozen=True)
class Launch:
    """A grid of members x blocks. The warps of a block run the parts one after the other."""

    entry: str
    parts: tuple[Callable[[Frame], None], ...]
    blocks: int  # of a member
    warps: int  # of a block
    shared_bytes: int = 0
    together: int = 1  # blocks that a multiprocessor must be able to run


def launches(shape: WarpShape) -> list[Launch]:
    """The launches of a kernel, in order."""
    parts = load_weights, run_example
    first = Launch(ENTRY, parts, shape.blocks, shape.warps, shape.shared_bytes, shape.together)
    if not shape.gradient:
        return [first]
    blocks = shape.parts * summing_blocks(shape)
    return [first, Launch("gradients", (store_gradients,), blocks, SUMMING_WARPS, together=SUMMING_TOGETHER)]


def constant_tables(module: ir.Module, shape: WarpShape, kind: ir.PointerType) -> Tables:
    def table(name: str, numbers: tuple[int, ...]) -> Value:
        array = ir.Constant(ir.ArrayType(I32, len(numbers)), list(numbers))
        constant: Any = ir.GlobalVariable(module, array.type, name, addrspace=kind.addrspace)
        constant.linkage, constant.global_constant, constant.initializer = "internal", True, array
        constant.align, constant.type = 16, kind
        return constant

    return Tables(table("wires", shape.table), table("sources", shape.sources))


def build_device_kernel(shape: WarpShape) -> ir.Module:
    """A function for every launch; its parameters are the buffers in order."""
    module = ir.Module("episodes")
    tables, shared = constant_tables(module, shape, GLOBAL), shared_memory(module)
    for launch in launches(shape):
        function = ir.Function(module, ir.FunctionType(VOID, [GLOBAL] * len(shape.buffers)), launch.entry)
        function.calling_convention = "ptx_kernel"
        code = DeviceWarps(function, shape.precision)
        index, blocks = code.special("ctaid.x"), code.index(launch.blocks)
        member, block = code.at.udiv(index, blocks), code.at.urem(index, blocks)
        warp = code.at.lshr(code.thread, code.index(LANES.bit_length() - 1))
        buffers = dict(zip(shape.buffers, function.args, strict=True))
        for number, part in enumerate(launch.parts):
            if number > 0:
                code.barrier()
            part(Frame(code, shape, buffers, tables, shared, Position(member, block, warp)))
        code.at.ret_void()
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
