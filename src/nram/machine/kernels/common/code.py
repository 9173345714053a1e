"""Writing LLVM code for numbers: what the lanes of a CPU and the warps of a GPU have in common.

`Code` appends instructions to one LLVM function. A *number* is a floating-point value of the kernel's precision, as a
vector of `width` lanes or, without a width, as a scalar. Offsets count scalars, not bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from nram.llvm import I32, I64, Value
from nram.machine.kernels.common.specification import BYTES, Precision

SCALARS = {"float32": ir.FloatType(), "float64": ir.DoubleType()}
WORD = 4  # bytes of a 32-bit integer


class Code:
    """Appends instructions to one function."""

    index_type: ir.IntType = I64  # of loop counters and offsets

    def __init__(self, function: ir.Function, precision: Precision, width: int | None = None):
        self.function = function
        self.precision: Precision = precision
        self.scalar = SCALARS[precision]
        self.bytes = BYTES[precision]
        self.vector: Any = self.scalar if width is None else ir.VectorType(self.scalar, width)
        self.integers: Any = I32 if width is None else ir.VectorType(I32, width)
        self.at = ir.IRBuilder(function.append_basic_block("entry"))

    # Constants

    def number(self, value: float) -> Value:
        """A constant in every lane."""
        return _constant(self.vector, value)

    def whole(self, value: int) -> Value:
        """A constant 32-bit integer in every lane."""
        return _constant(self.integers, value)

    def index(self, value: Value | int) -> Value:
        return ir.Constant(self.index_type, value) if isinstance(value, int) else value

    def spread(self, scalar: Value) -> Value:
        """A scalar in every lane."""
        if self.vector is self.scalar:
            return scalar
        undefined = ir.Constant(ir.VectorType(scalar.type, self.vector.count), ir.Undefined)
        first = self.at.insert_element(undefined, scalar, ir.Constant(I32, 0))
        return self.at.shuffle_vector(first, undefined, self.whole(0))

    # Arithmetic

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """a b + c"""
        return self.intrinsic("fma", a, b, c)

    def add(self, a: Value, b: Value) -> Value:
        return self.at.fadd(a, b)

    def sub(self, a: Value, b: Value) -> Value:
        return self.at.fsub(a, b)

    def mul(self, a: Value, b: Value) -> Value:
        return self.at.fmul(a, b)

    def divide(self, a: Value, b: Value) -> Value:
        return self.at.fdiv(a, b)

    def above(self, a: Value, b: Value) -> Value:
        """Whether a > b; false if either is a NaN."""
        return self.at.fcmp_ordered(">", a, b)

    def choose(self, condition: Value, yes: Value, no: Value) -> Value:
        return self.at.select(condition, yes, no)

    def at_least(self, a: Value, bound: Value) -> Value:
        """The larger of the two; a NaN in `a` stays a NaN."""
        return self.choose(self.at.fcmp_ordered("<", a, bound), bound, a)

    def at_most(self, a: Value, bound: Value) -> Value:
        return self.choose(self.above(a, bound), bound, a)

    def intrinsic(self, name: str, *arguments: Value) -> Value:
        """An LLVM intrinsic on numbers."""
        suffix = "f32" if self.precision == "float32" else "f64"
        if self.vector is not self.scalar:
            suffix = f"v{self.vector.count}{suffix}"
        kinds = [argument.type for argument in arguments]
        return self.at.call(self.declared(f"llvm.{name}.{suffix}", self.vector, kinds), arguments)

    def declared(self, name: str, result: ir.Type, arguments: Sequence[ir.Type]) -> ir.Function:
        """A function defined elsewhere."""
        module = self.function.module
        if name in module.globals:
            return module.globals[name]
        return ir.Function(module, ir.FunctionType(result, arguments), name)

    # Memory

    def place(self, pointer: Value, offset: Value | int, kind: ir.Type | None = None) -> Value:
        """The address `offset` scalars, or values of this kind, further on."""
        if isinstance(offset, int) and offset == 0:
            return pointer
        return self.at.gep(pointer, [self.index(offset)], inbounds=True, source_etype=kind or self.scalar)

    def load_scalar(self, pointer: Value, offset: Value | int = 0, kind: ir.Type | None = None) -> Value:
        """A scalar, or a 32-bit integer where the kind says so."""
        kind = kind or self.scalar
        align = self.bytes if kind is self.scalar else WORD
        return self.at.load(self.place(pointer, offset, kind), align=align, typ=kind)

    def store_scalar(self, value: Value, pointer: Value, offset: Value | int = 0) -> None:
        self.at.store(value, self.place(pointer, offset), align=self.bytes)

    # Control

    def repeat(
        self,
        count: Value | int,
        body: Callable[[Value, list[Value]], Sequence[Value]],
        carried: Sequence[Value] = (),
        first: Value | int = 0,
        step: int = 1,
    ) -> list[Value]:
        """`body(index, carried) -> carried` for index = first, first + step, ... below `count`, at least once."""
        if isinstance(count, int) and isinstance(first, int) and count - first <= step:
            return list(body(self.index(first), list(carried)))
        before, loop = self.at.block, self.function.append_basic_block("loop")
        self.at.branch(loop)
        self.at.position_at_end(loop)
        index = self.at.phi(self.index_type)
        index.add_incoming(self.index(first), before)
        phis = []
        for value in carried:
            phis.append(self.at.phi(value.type))
            phis[-1].add_incoming(value, before)
        results = list(body(index, list(phis)))
        # The test is at the end, which saves one jump per loop: every loop of the kernels runs at least once.
        following = self.at.add(index, self.index(step))
        going = self.at.icmp_signed("<", following, self.index(count))
        last, after = self.at.block, self.function.append_basic_block("after")
        self.at.cbranch(going, loop, after)
        index.add_incoming(following, last)
        for phi, result in zip(phis, results, strict=True):
            phi.add_incoming(result, last)
        self.at.position_at_end(after)
        return results


def _constant(kind: Any, value: float) -> Value:
    return ir.Constant(kind, [value] * kind.count if isinstance(kind, ir.VectorType) else value)


def internal_function(module: ir.Module, name: str, result: ir.Type, arguments: Sequence[ir.Type]) -> ir.Function:
    """A function that only this module calls, and that LLVM must not inline: its code would be repeated."""
    function = ir.Function(module, ir.FunctionType(result, arguments), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    return function
