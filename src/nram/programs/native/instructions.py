"""LLVM instructions for rows, and the signature of the function that every program becomes.

    { i64 steps, i32 next_row } advance(ptr memory, i32 size, ptr registers, i32 next_row, i64 limit)

It starts or resumes a run. `next_row` is START, 1 + the index of the row that comes next, or HALTED.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from llvmlite import ir

from nram.llvm import I32, I64, POINTER
from nram.modules import Builder
from nram.programs.ir import Row, carry_out, emitted

ENDING = ir.LiteralStructType([I64, I32])

START, HALTED = 0, -1  # `next_row` before the first step and after the last


def emit_row(row: Row, registers: list[Any], b: Builder) -> list[Any]:
    """Emit the operations of a row; the new values of the registers."""
    return carry_out(row, registers.__getitem__, partial(emitted, b), b.number).registers


def declare_advance(module: ir.Module) -> ir.Function:
    """The function without its body. No C function can have its name."""
    name = module.get_unique_name("nram.advance")
    function = ir.Function(module, ir.FunctionType(ENDING, [POINTER, I32, POINTER, I32, I64]), name)
    function.linkage = "internal"
    for argument, name in zip(function.args, ("memory", "size", "registers", "next_row", "limit"), strict=True):
        argument.name = name
    for argument in (function.args[0], function.args[2]):
        argument.add_attribute("noalias")
    return function


def ending_of(at: ir.IRBuilder, steps: Any, next_row: Any) -> Any:
    """The result of `advance`."""
    ending = at.insert_value(ir.Constant(ENDING, ir.Undefined), steps, 0)
    return at.insert_value(ending, next_row, 1)
