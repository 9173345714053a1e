"""Warps as threads of an NVIDIA GPU: a lane is a thread, and lanes exchange values by `shfl.sync`."""

from __future__ import annotations

from contextlib import nullcontext
from math import log, log2
from typing import Any

import numpy as np
from llvmlite import ir

from nram.errors import NramError
from nram.llvm import I1, I32, VOID, Value
from nram.machine.kernels.common.code import WORD
from nram.machine.kernels.common.specification import Precision
from nram.machine.kernels.gpu.shape import LANES
from nram.machine.kernels.gpu.warps import Columns, Warps

ALL = -1  # a mask: all lanes take part
GLOBAL, SHARED = ir.PointerType(addrspace=1), ir.PointerType(addrspace=3)
LOG2_E = float(np.float32(log2(np.e)))
LOG2_E_REST = log2(np.e) - LOG2_E


class DeviceWarps(Warps):
    def __init__(self, function: ir.Function, precision: Precision):
        if precision != "float32":
            raise NramError("the kernels for GPUs compute in float32")
        super().__init__(function, precision)
        self.quad_alignment = 4 * self.bytes
        self.thread = self.special("tid.x")
        self._lane = self.at.and_(self.thread, self.index(LANES - 1))

    def special(self, name: str) -> Value:
        """One of the registers that tell which thread this is."""
        return self.at.call(self.declared(f"llvm.nvvm.read.ptx.sreg.{name}", I32, []), [])

    @property
    def lane(self) -> Value:
        return self._lane

    def uniform(self, warp: Value) -> Value:
        return warp

    def exponential(self, x: Value) -> Value:
        """2^(x log2 e), corrected for the rounding of the product."""
        product = self.mul(x, self.number(LOG2_E))
        lost = self.fma(x, self.number(LOG2_E), self.at.fneg(product))
        lost = self.fma(x, self.number(LOG2_E_REST), lost)
        power = self._nvvm("ex2.approx.ftz.f", product)
        return self.fma(power, self.mul(lost, self.number(log(2))), power)

    def rough_log(self, x: Value) -> Value:
        return self.mul(self._nvvm("lg2.approx.ftz.f", x), self.number(log(2)))

    def divide(self, a: Value, b: Value) -> Value:
        return self._nvvm("div.full", a, b)

    def _nvvm(self, name: str, *arguments: Value) -> Value:
        kinds = [self.scalar] * len(arguments)
        return self.at.call(self.declared(f"llvm.nvvm.{name}", self.scalar, kinds), arguments)

    def sync(self) -> None:
        self.at.call(self.declared("llvm.nvvm.bar.warp.sync", VOID, [I32]), [self.index(ALL)])

    def barrier(self) -> None:
        """Wait for all warps of the block."""
        self.at.call(self.declared("llvm.nvvm.barrier0", VOID, []), [])

    def permuted(self, columns: Columns, index: Value) -> Value:
        found = [self._from_lane(column, index) for column in columns]
        result = found[0]
        for number, column in enumerate(found[1:], 1):
            here = self.at.icmp_signed(">=", index, self.whole(number * LANES))
            result = self.choose(here, column, result)
        return result

    def _from_lane(self, value: Value, index: Value) -> Value:
        return self._exchanged("idx", value, index, LANES - 1)

    def swapped(self, value: Value, distance: int) -> Value:
        return self._exchanged("bfly", value, self.index(distance), LANES - 1)

    def with_lower(self, value: Value, distance: int) -> Value:
        found = self._exchanged("up", value, self.index(distance), 0, with_there=True)
        lower, there = self.at.extract_value(found, 0), self.at.extract_value(found, 1)
        return self.choose(there, self.add(value, lower), value)

    def _exchanged(self, how: str, value: Value, lane: Value, bound: int, with_there: bool = False) -> Value:
        """The value of another lane; with `with_there` also whether there is such a lane."""
        name = "f32" if value.type == self.scalar else "i32"
        result = ir.LiteralStructType([value.type, I1]) if with_there else value.type
        kinds = [I32, value.type, I32, I32]
        function = self.declared(f"llvm.nvvm.shfl.sync.{how}.{name}{'p' * with_there}", result, kinds)
        return self.at.call(function, [self.index(ALL), value, lane, self.index(bound)])

    def largest_chance(self, columns: Columns) -> Value:
        """Numbers that are not negative have the same order as the integers with the same bits."""
        top = columns[0]
        for column in columns[1:]:
            top = self.at_least(top, column)
        function = self.declared("llvm.nvvm.redux.sync.umax", I32, [I32, I32])
        return self.at.bitcast(self.at.call(function, [self.at.bitcast(top, I32), self.index(ALL)]), self.scalar)

    def first_lane(self, conditions: list[Value], otherwise: int) -> Value:
        ballot = self.declared("llvm.nvvm.vote.ballot.sync", I32, [I32, I1])
        count = self.declared("llvm.cttz.i32", I32, [I32, I1])
        result = self.index(otherwise)
        for number, condition in reversed(list(enumerate(conditions))):
            lanes = self.at.call(ballot, [self.index(ALL), condition])
            place = self.at.add(self.at.call(count, [lanes, I1(1)]), self.index(number * LANES))
            result = self.choose(self.at.icmp_signed("!=", lanes, self.index(0)), place, result)
        return result

    def at_least(self, a: Value, bound: Value) -> Value:
        return self.intrinsic("maximum", a, bound)

    def at_most(self, a: Value, bound: Value) -> Value:
        return self.intrinsic("minimum", a, bound)

    def load(self, pointer: Value, offset: Value | int = 0) -> Value:
        return self.at.load(self.place(self.place(pointer, offset), self._lane), align=self.bytes, typ=self.scalar)

    def store(self, value: Value, pointer: Value, offset: Value | int = 0) -> None:
        self.at.store(value, self.place(self.place(pointer, offset), self._lane), align=self.bytes)

    def load_whole(self, pointer: Value, offset: Value | int = 0) -> Value:
        begin = self.place(pointer, offset, I32)
        return self.at.load(self.place(begin, self._lane, I32), align=WORD, typ=I32)

    def load_each(self, pointer: Value, index: Value, where: Value | None = None, whole: bool = False) -> Value:
        kind = I32 if whole else self.scalar
        if where is None:
            return self.at.load(self.place(pointer, index, kind), align=WORD, typ=kind)
        before = self.at.block
        with self.at.if_then(where):
            loaded = self.at.load(self.place(pointer, index, kind), align=WORD, typ=kind)
            inside = self.at.block
        merged = self.at.phi(kind)
        merged.add_incoming(ir.Constant(kind, 0), before)
        merged.add_incoming(loaded, inside)
        return merged

    def store_each(
        self, value: Value, pointer: Value, index: Value, where: Value | None = None, whole: bool = False
    ) -> None:
        kind = I32 if whole else self.scalar
        if where is None:
            self.at.store(value, self.place(pointer, index, kind), align=WORD)
            return
        with self.at.if_then(where):
            self.at.store(value, self.place(pointer, index, kind), align=WORD)

    def load_some(self, count: int, pointer: Value, index: Value) -> list[Value]:
        if count == 1:
            return [self.load_each(pointer, index)]
        kind = ir.VectorType(self.scalar, count)
        some = self.at.load(self.place(pointer, index), align=count * self.bytes, typ=kind)
        return [self.at.extract_element(some, self.index(number)) for number in range(count)]

    def store_some(self, values: list[Value], pointer: Value, index: Value, where: Value | None = None) -> None:
        if len(values) == 1:
            self.store_each(values[0], pointer, index, where)
            return
        some = ir.Constant(ir.VectorType(self.scalar, len(values)), ir.Undefined)
        for number, value in enumerate(values):
            some = self.at.insert_element(some, value, self.index(number))
        with nullcontext() if where is None else self.at.if_then(where):
            self.at.store(some, self.place(pointer, index), align=len(values) * self.bytes)


def shared_memory(module: ir.Module) -> Value:
    """The shared memory of the block. The launch sets its size."""
    kind = ir.ArrayType(I32, 0)
    memory: Any = ir.GlobalVariable(module, kind, "shared_memory", addrspace=SHARED.addrspace)
    memory.linkage, memory.align, memory.type = "external", 16, SHARED
    return memory
