"""One block of examples through a whole episode: forwards, then backwards.

    i64 block(ptr* context, i64 first, i64 slot)

runs the examples from place `first` on, one per lane, and fills slots from number `slot` on. It returns how many
steps there were: as many as the longest limit of its examples, which are therefore given in the order of their limits.
Lanes without an example repeat the last one, and count for nothing.
"""

from __future__ import annotations

from llvmlite import ir

from nram.machine.kernels.cpu.backward import BackwardPass
from nram.machine.kernels.cpu.block import Block
from nram.machine.kernels.cpu.forward import ForwardPass
from nram.machine.kernels.cpu.lanes import I64, POINTER, Lanes
from nram.machine.kernels.cpu.shape import KernelShape


def build_block(module: ir.Module, shape: KernelShape, width: int) -> ir.Function:
    """The function for blocks of `width` examples."""
    kind = ir.FunctionType(I64, [POINTER, I64, I64])
    function = ir.Function(module, kind, f"block{width}")
    function.linkage = "internal"
    function.attributes.add("noinline")
    block = Block(Lanes(function, shape.precision, width, shape.vectors.accumulators), shape)
    forward = ForwardPass(block)
    steps = forward.prepare()
    forward.run(steps)
    if shape.gradient:
        BackwardPass(block).run(steps)
    block.to.at.ret(steps)
    return function
