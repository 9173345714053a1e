"""One block of examples through a whole episode: forwards, then backwards.

    i64 block(ptr* context, i64 first, i64 slot)

runs the examples from index `first` on, one per lane, and fills slots from index `slot` on. It returns the number of
steps, which is the longest limit of its examples: that is why examples come sorted by their limits. Lanes without an
example repeat the last one, and do not count.
"""

from __future__ import annotations

from llvmlite import ir

from nram.llvm import I64, POINTER
from nram.machine.kernels.common.code import internal_function
from nram.machine.kernels.cpu.backward import BackwardPass
from nram.machine.kernels.cpu.block import Block
from nram.machine.kernels.cpu.forward import ForwardPass
from nram.machine.kernels.cpu.lanes import Lanes
from nram.machine.kernels.cpu.shape import KernelShape


def build_block(module: ir.Module, shape: KernelShape, width: int) -> ir.Function:
    """The function for blocks of `width` examples."""
    function = internal_function(module, f"block{width}", I64, [POINTER, I64, I64])
    block = Block(Lanes(function, shape.precision, width, shape.vectors.accumulators), shape)
    forward = ForwardPass(block)
    steps = forward.prepare()
    forward.run(steps)
    if shape.gradient:
        BackwardPass(block).run(steps)
    block.code.at.ret(steps)
    return function
