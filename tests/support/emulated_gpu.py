"""The kernels of a GPU on a CPU: a warp is a vector of 32 lanes.

The mathematics is the code of `nram.machine.kernels.gpu`, so that tests can run it where there is no GPU, also in
float64. What differs is how a lane, an exchange between lanes, and a launch are implemented.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from llvmlite import ir

from nram.llvm import I1, I32, I64, POINTER, VOID, Value, fingerprint, loaded, object_code
from nram.machine.kernels.common.call_frame import CallFrame, register
from nram.machine.kernels.common.code import WORD, internal_function
from nram.machine.kernels.common.specification import SOURCES, Precision, Specification, extend
from nram.machine.kernels.gpu.frame import Frame, Position, Tables
from nram.machine.kernels.gpu.kernel import ENTRY, Launch, constant_tables, launches
from nram.machine.kernels.gpu.shape import LANES, WarpShape, warp_shape
from nram.machine.kernels.gpu.warps import Columns, Warps

CONDITIONS = ir.VectorType(I1, LANES)


@dataclass(frozen=True, kw_only=True)
class EmulatedShape(WarpShape):
    """The kernel of a GPU, run by a CPU. The end of the workspace stands in for shared memory."""

    @property
    def workspace_scalars(self) -> int:
        return super().workspace_scalars + self.shared

    def registered(self) -> str:
        return _registered(self)


def emulated_shape(specification: Specification) -> EmulatedShape:
    return extend(EmulatedShape, warp_shape(specification))


@cache
def _registered(shape: EmulatedShape) -> str:
    name = f"nram_emulated_{fingerprint(shape, SOURCES)}"
    register(name, loaded(object_code(build_emulated_kernel(shape))), ENTRY, "cpu")
    return name


def build_emulated_kernel(shape: WarpShape) -> ir.Module:
    """The function that XLA calls: all members, blocks, parts and warps one after the other."""
    module = ir.Module("episodes")
    tables = constant_tables(module, shape, POINTER)
    code = CallFrame(module, ENTRY, shape)
    context = code.at.alloca(POINTER, len(shape.buffers))
    for index, address in enumerate(code.buffers()):
        code.at.store(address, code.place(context, index, POINTER))

    def each(count: Value | int, body: Callable[[Value], Any]) -> None:
        code.repeat(count, lambda index, _: [body(index)][:0])

    def run(launch: Launch, member: Value) -> None:
        functions = [_part(module, shape, tables, part) for part in launch.parts]

        def block(index: Value) -> None:
            for function in functions:
                each(launch.warps, lambda warp, own=function: code.at.call(own, [context, member, index, warp]))

        each(launch.blocks, block)

    members = code.members()
    with code.at.if_then(code.at.icmp_signed(">", members, I64(0))):
        for launch in launches(shape):
            each(members, lambda member, launch=launch: run(launch, member))
    code.return_null()
    return module


def _part(module: ir.Module, shape: WarpShape, tables: Tables, part: Callable[[Frame], None]) -> ir.Function:
    """void part(ptr* buffers, i64 member, i64 block, i64 warp)"""
    function = internal_function(module, part.__name__, VOID, [POINTER, I64, I64, I64])
    code = HostWarps(function, shape.precision)
    context, *indices = function.args
    buffers = {
        name: code.at.load(code.place(context, index, POINTER), typ=POINTER, align=8)
        for index, name in enumerate(shape.buffers)
    }
    end = code.at.add(code.at.mul(indices[0], I64(shape.workspace_scalars)), I64(shape.batch * shape.example["end"]))
    shared = code.place(buffers["workspace"], end)
    position = Position(*(code.at.trunc(index, I32) for index in indices))
    part(Frame(code, shape, buffers, tables, shared, position))
    code.at.ret_void()
    return function


class HostWarps(Warps):
    """Warps as vectors."""

    def __init__(self, function: ir.Function, precision: Precision):
        super().__init__(function, precision, LANES)
        self.quad_alignment = self.bytes
        self._rooms: dict[tuple[str, str], Value] = {}

    @property
    def lane(self) -> Value:
        return ir.Constant(self.integers, list(range(LANES)))

    def uniform(self, warp: Value) -> Value:
        return self.at.extract_element(warp, self.index(0))

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
