"""Warps as vectors of 32 lanes on a CPU: the same mathematics as on the GPU, where there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir

from nram.machine.kernels.common import vector_math
from nram.machine.kernels.cpu.shape import Precision
from nram.machine.kernels.gpu.shape import LANES
from nram.machine.kernels.gpu.warps import I1, I32, VOID, WORD, Columns, Value, Warps

POINTER = ir.PointerType()
CONDITIONS = ir.VectorType(I1, LANES)


class HostWarps(Warps):
    def __init__(self, function: ir.Function, precision: Precision):
        super().__init__(function, precision)
        self.vector = ir.VectorType(self.scalar, LANES)
        self.integers = ir.VectorType(I32, LANES)
        self.quad_alignment = self.bytes
        self._rooms: dict[tuple[str, str], Value] = {}

    @property
    def lane(self) -> Value:
        return ir.Constant(self.integers, list(range(LANES)))

    def number(self, value: float) -> Value:
        return ir.Constant(self.vector, [value] * LANES)

    def whole(self, value: int) -> Value:
        return ir.Constant(self.integers, [value] * LANES)

    def spread(self, uniform: Value) -> Value:
        kind = ir.VectorType(uniform.type, LANES)
        none = ir.Constant(kind, ir.Undefined)
        one = self.at.insert_element(none, uniform, self.index(0))
        return self.at.shuffle_vector(one, none, self.whole(0))

    def uniform(self, warp: Value) -> Value:
        return self.at.extract_element(warp, self.index(0))

    def intrinsic(self, name: str, *arguments: Value) -> Value:
        suffix = "f32" if self.precision == "float32" else "f64"
        kinds = [argument.type for argument in arguments]
        return self.at.call(self.declared(f"llvm.{name}.v{LANES}{suffix}", self.vector, kinds), arguments)

    def exponential(self, x: Value) -> Value:
        return vector_math.exponential(cast(Any, self), x)

    def rough_log(self, x: Value) -> Value:
        return self.logarithm(x)

    def divide(self, a: Value, b: Value) -> Value:
        return self.at.fdiv(a, b)

    def sync(self) -> None:
        """Lanes of a vector are always in step."""

    def permuted(self, columns: Columns, index: Value) -> Value:
        kind = columns[0].type
        index = self.at.and_(index, self.whole(LANES * len(columns) - 1))
        room = self._room(f"permuted{len(columns)}", kind, len(columns))
        for number, column in enumerate(columns):
            self.at.store(column, self.place(room, number, kind), align=WORD)
        return self.load_each(room, index, whole=kind.element is I32)

    def _room(self, name: str, kind: ir.Type, count: int) -> Value:
        """Memory of the function's own, the same for every use."""
        key = (name, str(kind))
        if key not in self._rooms:
            with self.at.goto_entry_block():
                self._rooms[key] = self.at.alloca(kind, count)
        return self._rooms[key]

    def load(self, pointer: Value, offset: Value | int = 0) -> Value:
        return self.at.load(self.place(pointer, offset), align=self.bytes, typ=self.vector)

    def store(self, value: Value, pointer: Value, offset: Value | int = 0) -> None:
        self.at.store(value, self.place(pointer, offset), align=self.bytes)

    def load_whole(self, pointer: Value, offset: Value | int = 0) -> Value:
        return self.at.load(self.place(pointer, offset, I32), align=WORD, typ=self.integers)

    def load_each(self, pointer: Value, index: Value, where: Value | None = None, whole: bool = False) -> Value:
        function = self._helper("load_each", whole)
        return self.at.call(function, [pointer, index, self._taken(where)])

    def store_each(
        self, value: Value, pointer: Value, index: Value, where: Value | None = None, whole: bool = False
    ) -> None:
        self.at.call(self._helper("store_each", whole), [pointer, index, self._taken(where), value])

    def load_some(self, count: int, pointer: Value, index: Value) -> list[Value]:
        return [self.load_each(self.place(pointer, number), index) for number in range(count)]

    def store_some(self, values: list[Value], pointer: Value, index: Value, where: Value | None = None) -> None:
        for number, value in enumerate(values):
            self.store_each(value, self.place(pointer, number), index, where)

    def _taken(self, where: Value | None) -> Value:
        return ir.Constant(CONDITIONS, [1] * LANES) if where is None else where

    def _helper(self, name: str, whole: bool) -> ir.Function:
        """A function that goes through the lanes one by one."""
        module, scalar = self.function.module, I32 if whole else self.scalar
        full = f"{name}_{scalar}"
        if full in module.globals:
            return module.globals[full]
        vector = ir.VectorType(scalar, LANES)
        loads = name == "load_each"
        arguments = [POINTER, self.integers, CONDITIONS] + ([] if loads else [vector])
        function = ir.Function(module, ir.FunctionType(vector if loads else VOID, arguments), full)
        function.linkage = "internal"
        function.attributes.add("noinline")
        at = ir.IRBuilder(function.append_basic_block("entry"))
        pointer, indices, where, *given = function.args
        _each_lane(at, where, lambda lane: self._one(at, scalar, pointer, indices, lane, vector, given), vector, loads)
        return function

    def _one(self, at, scalar, pointer, indices, lane, vector, given) -> Callable[[Value], Value]:
        address = at.gep(pointer, [at.extract_element(indices, lane)], inbounds=True, source_etype=scalar)
        align = WORD if scalar is I32 else self.bytes
        if given:
            at.store(at.extract_element(given[0], lane), address, align=align)
            return lambda held: held
        loaded = at.load(address, align=align, typ=scalar)
        return lambda held: at.insert_element(held, loaded, lane)


def _each_lane(at: ir.IRBuilder, where: Value, one: Callable, vector: ir.Type, loads: bool) -> None:
    """The body of a helper: `one(lane)` for every lane taken, with the vector that is built up."""
    function = at.function
    entry, loop = at.block, function.append_basic_block("loop")
    taken, joined, end = (function.append_basic_block(name) for name in ("taken", "joined", "end"))
    at.branch(loop)
    at.position_at_end(loop)
    lane, held = at.phi(I32), at.phi(vector)
    at.cbranch(at.extract_element(where, lane), taken, joined)
    at.position_at_end(taken)
    result = one(lane)(held)
    at.branch(joined)
    at.position_at_end(joined)
    merged = at.phi(vector)
    merged.add_incoming(held, loop)
    merged.add_incoming(result, taken)
    following = at.add(lane, ir.Constant(I32, 1))
    at.cbranch(at.icmp_signed("<", following, ir.Constant(I32, LANES)), loop, end)
    lane.add_incoming(ir.Constant(I32, 0), entry)
    lane.add_incoming(following, joined)
    held.add_incoming(ir.Constant(vector, [0] * LANES), entry)
    held.add_incoming(merged, joined)
    at.position_at_end(end)
    at.ret(merged) if loads else at.ret_void()
