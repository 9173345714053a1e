"""LLVM instructions for modules and rows, and the signature of the function that every program becomes.

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
from nram.programs.memory import LARGEST_SIZE

ENDING = ir.LiteralStructType([I64, I32])

START, HALTED = 0, -1  # `next_row` before the first step and after the last


class Instructions:
    """The primitives of the modules as LLVM instructions on unsigned 32-bit integers: sums stay below 2 M < 2**32.

    A subclass can use vectors of integers instead, by other types and another `number`.
    """

    narrow: ir.Type = I32
    wide: ir.Type = I64

    def __init__(self, at: ir.IRBuilder, memory: Any, size: Any):
        self.at = at
        self.memory = memory
        self.size = size

    def number(self, literal: int) -> Any:
        return ir.Constant(self.narrow, literal)

    def add(self, a: Any, b: Any) -> Any:
        return self.at.add(a, b)

    def sub(self, a: Any, b: Any) -> Any:
        return self.at.sub(a, b)

    def multiply(self, a: Any, b: Any) -> Any:
        product = self.at.mul(self.at.zext(a, self.wide), self.at.zext(b, self.wide))
        return self.at.trunc(self.at.urem(product, self.at.zext(self.modulus(), self.wide)), self.narrow)

    def modulus(self) -> Any:
        """M as a divisor."""
        return self.size

    def divide(self, a: Any, b: Any) -> Any:
        by_zero = self.equal(b, self.number(0))
        quotient = self.at.udiv(a, self.choose(by_zero, self.number(1), b))
        return self.choose(by_zero, self.number(0), quotient)

    def less(self, a: Any, b: Any) -> Any:
        return self.at.icmp_unsigned("<", a, b)

    def equal(self, a: Any, b: Any) -> Any:
        return self.at.icmp_unsigned("==", a, b)

    def choose(self, condition: Any, yes: Any, no: Any) -> Any:
        return self.at.select(condition, yes, no)

    def within(self, value: Any) -> Any:
        return self.choose(self.less(value, self.size), value, self.number(0))

    def read(self, pointer: Any) -> Any:
        return self.read_at(self.at.zext(pointer, I64))

    def write(self, pointer: Any, value: Any) -> None:
        self.write_at(self.at.zext(pointer, I64), value)

    def read_at(self, index: Any) -> Any:
        """The cell at a 64-bit index."""
        value = self.at.load(self._cell(index), typ=I32)
        limits = [i32(0), i32(LARGEST_SIZE)]
        value.set_metadata("range", self.at.module.add_metadata(limits))
        return value

    def write_at(self, index: Any, value: Any) -> None:
        self.at.store(value, self._cell(index))

    def _cell(self, index: Any) -> Any:
        return element(self.at, self.memory, index)


def emit_row(row: Row, registers: list[Any], b: Builder) -> list[Any]:
    """Emit the operations of a row; the new values of the registers."""
    return carry_out(row, registers.__getitem__, partial(emitted, b), b.number).registers


def i32(value: int) -> ir.Constant:
    return ir.Constant(I32, value)


def i64(value: int) -> ir.Constant:
    return ir.Constant(I64, value)


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


def element(at: ir.IRBuilder, pointer: Any, index: Any, kind: ir.Type = I32) -> Any:
    """The address of an element of an array."""
    return at.gep(pointer, [index], inbounds=True, source_etype=kind)


def ending_of(at: ir.IRBuilder, steps: Any, next_row: Any) -> Any:
    """The result of `advance`."""
    ending = at.insert_value(ir.Constant(ENDING, ir.Undefined), steps, 0)
    return at.insert_value(ending, next_row, 1)
