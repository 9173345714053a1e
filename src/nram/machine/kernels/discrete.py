"""The discretised machine as machine code: whole populations, from tables of what their controllers decide.

All members have the same modules in the same order, so a step is straight-line code: every argument is fetched from the
slot that the table names. A run takes the time of the steps that it executes. The code is LLVM for this processor and
takes some hundredths of a second to compile.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from nram.llvm import I8, I16, I32, I64, POINTER, VOID, Instructions, Value, element, i32, i64, optimised_engine
from nram.machine.wiring import Wiring
from nram.module_tables import table_of
from nram.modules import Module

LEAST_SIZE = 3  # of a memory: the module TWO gives 2


class DiscreteRuns(NamedTuple):
    """How the runs of some machines on some memories ended."""

    memory: np.ndarray  # int32 [machines, memories, M]
    steps: np.ndarray  # int32 [machines, memories], that were executed
    halted: np.ndarray  # bool [machines, memories], whether it stopped by itself


def run_tables(
    wiring: Wiring, tables: np.ndarray, memories: np.ndarray, limits: np.ndarray, sizes: np.ndarray
) -> DiscreteRuns:
    """Run machines, given by their tables [machines, rows, wires + 2], on memories [memories, M].

    Each has its own step limits [machines, memories]. Memories may have several sizes: of each only the first `size`
    cells are used.
    """
    machines, (count, cells) = len(tables), memories.shape
    used = np.where(np.arange(cells) < sizes[:, None], memories, 0)
    if np.any((used < 0) | (used >= sizes[:, None])) or np.any((sizes < LEAST_SIZE) | (sizes > cells)):
        raise ValueError(f"a memory has at least {LEAST_SIZE} cells, with numbers from 0 to M - 1")
    # Arrays that stay alive until the code has run.
    tables = np.ascontiguousarray(tables, np.int16)
    results = np.repeat(np.asarray(memories, np.int32)[None], machines, axis=0)
    limits = np.ascontiguousarray(np.broadcast_to(limits, (machines, count)), np.int32)
    sizes = np.ascontiguousarray(sizes, np.int32)
    looked_up = _looked_up(wiring)
    different, which = np.unique(sizes, return_inverse=True)
    kept = [np.ascontiguousarray(table_of(module, int(size))) for size in different for module in looked_up]
    addresses = np.array([one.ctypes.data for one in kept], np.int64).reshape(len(different), len(looked_up))[which]
    steps, halted = np.zeros((machines, count), np.int32), np.zeros((machines, count), np.int8)
    arrays = tables, results, sizes, limits, addresses, steps, halted
    _compiled(wiring)(*(array.ctypes.data for array in arrays), machines, tables.shape[1], count, cells)
    return DiscreteRuns(results, steps, halted.astype(bool))


def _looked_up(wiring: Wiring) -> list[Module]:
    """The modules without an emitted form, which go by tables of all arguments."""
    return [module for module in wiring.modules if not module.emits]


@lru_cache(maxsize=64)
def _compiled(wiring: Wiring) -> Any:
    engine = optimised_engine(_Walk(wiring).module)
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 7, *[ctypes.c_int64] * 4)
    function: Any = kind(engine.get_function_address("run"))
    function.engine = engine  # code lives as long as its engine
    return function


class _Walk:
    """The function `run`, whose arguments are those of `run_tables`."""

    def __init__(self, wiring: Wiring):
        self.wiring = wiring
        self.width = wiring.wires + 2
        self.module = ir.Module("discrete")
        function = ir.Function(self.module, ir.FunctionType(VOID, [POINTER] * 7 + [I64] * 4), "run")
        self.tables, self.memories, self.sizes, self.limits, self.addresses, self.steps, self.halted = function.args[:7]
        machines, self.rows, self.count, self.cells = function.args[7:]
        for argument in function.args[:7]:
            argument.add_attribute("noalias")
        self.function, self.at = function, ir.IRBuilder(function.append_basic_block("entry"))
        self.slots = self.at.alloca(I32, i32(wiring.values))
        with _Loop(self, machines) as machine, _Loop(self, self.count) as memory:
            self._run(machine, memory)
        self.at.ret_void()

    def block(self, name: str) -> ir.Block:
        return self.function.append_basic_block(name)

    def _run(self, machine: Value, memory: Value) -> None:
        """One machine on one memory."""
        at, wiring = self.at, self.wiring
        run = at.add(at.mul(machine, self.count), memory)
        table = element(at, self.tables, at.mul(at.mul(machine, self.rows), i64(self.width)), I16)
        cells = element(at, self.memories, at.mul(run, self.cells))
        size, limit = (at.load(element(at, *place), typ=I32) for place in ((self.sizes, memory), (self.limits, run)))
        addresses = element(at, self.addresses, at.mul(memory, i64(len(_looked_up(wiring)))), I64)
        for register in range(wiring.registers):
            at.store(i32(0), self._slot(i64(register)))
        before, head, body, ended = at.block, *(self.block(name) for name in ("head", "step", "ended"))
        at.branch(head)

        at.position_at_end(head)
        row, step, halted = at.phi(I64), at.phi(I32), at.phi(I8)
        going = at.and_(at.icmp_signed("<", step, limit), at.icmp_signed("==", halted, I8(0)))
        at.cbranch(going, body, ended)
        at.position_at_end(body)
        values = _Values(self, element(at, table, at.mul(row, i64(self.width)), I16))
        self._operate(values, Instructions(at, cells, size), addresses)
        following = self._update(values)
        halts, later = at.trunc(values.number(wiring.wires), I8), at.add(step, i32(1))
        at.branch(head)
        first = i64((1 << wiring.registers) - 1)  # state 0, and every register is 0
        for phi, start, then in (
            (row, first, following),
            (step, i32(0), later),
            (halted, I8(0), halts),
        ):
            phi.add_incoming(start, before)
            phi.add_incoming(then, body)

        at.position_at_end(ended)
        at.store(step, element(at, self.steps, run))
        at.store(halted, element(at, self.halted, run, I8))

    def _operate(self, values: _Values, b: Instructions, addresses: Value) -> None:
        """Carry out the modules in their order."""
        at, looked_up = self.at, 0
        for index, module in enumerate(self.wiring.modules):
            arguments = [values.next() for _ in module.arguments]
            if module.emits:
                output = module.emit(b, *arguments)
            else:
                table = at.load(element(at, addresses, i64(looked_up), POINTER), typ=POINTER)
                looked_up += 1
                place = i32(0)
                for argument in arguments:
                    place = at.add(at.mul(place, b.size), argument)
                output = at.load(element(at, table, at.zext(place, I64)), typ=I32)
            output = b.number(0) if module.memory == "writes" else output
            at.store(output, self._slot(i64(self.wiring.registers + index)))

    def _update(self, values: _Values) -> Value:
        """Update all registers at once; the row that the new flags and the next state select."""
        at, registers = self.at, self.wiring.registers
        row = at.shl(values.number(self.wiring.wires + 1), i64(registers))
        for register, value in enumerate([values.next() for _ in range(registers)]):
            at.store(value, self._slot(i64(register)))
            zero = at.zext(at.icmp_unsigned("==", value, i32(0)), I64)
            row = at.or_(row, at.shl(zero, i64(register)))
        return row

    def _slot(self, index: Value) -> Value:
        return element(self.at, self.slots, index)


class _Values:
    """What the wires of one row choose, in their order."""

    def __init__(self, walk: _Walk, row: Value):
        self.walk, self.row, self.wire = walk, row, 0

    def number(self, index: int) -> Value:
        at = self.walk.at
        return at.zext(at.load(element(at, self.row, i64(index), I16), typ=I16), I64)

    def next(self) -> Value:
        source = self.number(self.wire)
        self.wire += 1
        return self.walk.at.load(self.walk._slot(source), typ=I32)


class _Loop:
    """Repeats the code inside for the numbers below a count, which is at least 1."""

    def __init__(self, walk: _Walk, count: Value):
        self.walk, self.count = walk, count

    def __enter__(self) -> Value:
        at, before, body = self.walk.at, self.walk.at.block, self.walk.block("repeat")
        at.branch(body)
        at.position_at_end(body)
        self.body, self.number = body, at.phi(I64)
        self.number.add_incoming(i64(0), before)
        return self.number

    def __exit__(self, *_: object) -> None:
        at, after = self.walk.at, self.walk.block("after")
        following = at.add(self.number, i64(1))
        self.number.add_incoming(following, at.block)
        at.cbranch(at.icmp_unsigned("<", following, self.count), self.body, after)
        at.position_at_end(after)
