"""Very large programs: LLVM code that walks through a table of the program.

The function is the same `advance` as in `llvm`. A step takes the time of the row's operations and of at most one test
for every condition of its state, whatever M. The code is one loop; the program is constant data:

    rows        for each row: the index of its line in `lines`
    lines       for each row: the module and the slots of two arguments of each operation; NO_MODULE; the slots of
                the registers' new values; the index in `tests` where the search for the next row starts, or HALT
    tests       a register, and where to go if it is 0 and if not: another test, or ~row

A slot is an index into the array of the values of a step: the registers, the numbers 0, 1, 2, then the outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from nram.llvm import I8, I32, I64, Instructions, element, i32, i64
from nram.modules import PAPER_MODULES
from nram.programs.ir import Program, Row, Value, emitted
from nram.programs.native.flow import Decision, decide, tests_of
from nram.programs.native.instructions import HALTED, START, declare_advance, ending_of

NUMBERS = 3  # slots for 0, 1 and 2
HALT = 1 << 30
NO_MODULE = -1


class Tables:
    """The three tables of a program, and the modules that their indices refer to."""

    def __init__(self, program: Program):
        self.registers = len(program.registers)
        self.modules = tuple(dict.fromkeys((*PAPER_MODULES, *program.modules)))
        module_index = {module.name: index for index, module in enumerate(self.modules)}
        first_rows = np.cumsum([0] + [len(rows) for rows in program.states]).tolist()
        self.tests: list[int] = []
        first_tests = [self._add_tests(rows, first) for rows, first in zip(program.states, first_rows, strict=False)]
        self.start = program.row_for(0, (True,) * self.registers)
        self.rows: list[int] = []
        self.lines: list[int] = []
        for rows in program.states:
            for row in rows:
                self.rows.append(len(self.lines))
                for operation in row.operations:
                    slots = [self._slot(argument) for argument in operation.arguments]
                    self.lines += [module_index[operation.module], *slots, *[0] * (2 - len(slots))]
                self.lines += [NO_MODULE, *[self._slot(value) for value in row.registers]]
                self.lines.append(HALT if row.halt else first_tests[row.next_state])
        self.slots = self.registers + NUMBERS + max(len(row.operations) for rows in program.states for row in rows)

    def _slot(self, value: Value) -> int:
        first = self.registers
        return value.resolve(int, lambda index: first + NUMBERS + index, lambda literal: first + literal)

    def _add_tests(self, rows: Sequence[Row], first_row: int) -> int:
        """Add the tests of a state; where they start."""
        decision = decide([row.when for row in rows], (None,) * self.registers)
        starts = {id(test): len(self.tests) + 3 * index for index, test in enumerate(tests_of(decision))}

        def target(node: Decision) -> int:
            return ~(first_row + node) if isinstance(node, int) else starts[id(node)]

        for test in tests_of(decision):
            self.tests += [test.register, target(test.zero), target(test.other)]
        return target(decision)


def build_table_walk(module: ir.Module, program: Program) -> ir.Function:
    """The function `advance` of a program, as a walk through its tables."""
    return _Walk(module, Tables(program)).function


class _Walk:
    def __init__(self, module: ir.Module, tables: Tables):
        self.function = declare_advance(module)
        self.memory, self.size, self.registers_in, self.resumed_row, self.limit = self.function.args
        self.tables = tables
        self.rows, self.lines, self.tests = (
            _constant_data(module, name, getattr(tables, name)) for name in ("rows", "lines", "tests")
        )
        self.at = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.slots = self.at.alloca(I32, i32(tables.slots), name="slots")
        self.left = self.at.alloca(I64, name="left")
        self.row, self.position, self.output, self.search, self.next_row = (
            self.at.alloca(I32, name=name) for name in ("row", "position", "output", "search", "next")
        )
        self.step, self.operate, self.update, self.find, self.leave = (
            self.function.append_basic_block(name) for name in ("step", "operate", "update", "find", "leave")
        )
        self._enter()
        self._step()
        self._operate()
        self._update()
        self._find()
        self._leave()

    def _item(self, table: Any, index: Any, offset: int = 0) -> Any:
        """An entry of a table, or the value of a slot."""
        return self.at.load(element(self.at, table, self.at.add(index, i32(offset))), typ=I32)

    def _set_slot(self, index: Any, value: Any) -> None:
        self.at.store(value, element(self.at, self.slots, index))

    def _enter(self) -> None:
        at, tables = self.at, self.tables
        at.store(self.limit, self.left)
        fresh = at.icmp_signed("==", self.resumed_row, i32(START))
        resumed = at.sub(self.resumed_row, i32(1))
        at.store(at.select(fresh, i32(tables.start), resumed), self.row)
        for i in range(tables.registers):
            given = self._item(self.registers_in, i32(i))
            self._set_slot(i32(i), at.select(fresh, i32(0), given))
        for value in range(NUMBERS):
            self._set_slot(i32(tables.registers + value), i32(value))
        at.branch(self.step)

    def _step(self) -> None:
        """Stop at the limit, or start with the operations of the row."""
        at = self.at
        at.position_at_end(self.step)
        stop, work = (self.function.append_basic_block(name) for name in ("stop", "work"))
        left, row = at.load(self.left, typ=I64), at.load(self.row, typ=I32)
        at.cbranch(at.icmp_unsigned("==", left, i64(0)), stop, work)
        at.position_at_end(stop)
        at.store(at.add(row, i32(1)), self.next_row)
        at.branch(self.leave)

        at.position_at_end(work)
        at.store(at.sub(left, i64(1)), self.left)
        at.store(self._item(self.rows, row), self.position)
        at.store(i32(self.tables.registers + NUMBERS), self.output)
        at.branch(self.operate)

    def _operate(self) -> None:
        """Carry out one operation after another."""
        at = self.at
        at.position_at_end(self.operate)
        choose, done, nowhere = (self.function.append_basic_block(name) for name in ("choose", "done", "nowhere"))
        position = at.load(self.position, typ=I32)
        module_index = self._item(self.lines, position)
        at.cbranch(at.icmp_signed("==", module_index, i32(NO_MODULE)), self.update, choose)

        at.position_at_end(choose)
        arguments = [self._item(self.slots, self._item(self.lines, position, i)) for i in (1, 2)]
        choice = at.switch(module_index, nowhere)
        b = Instructions(at, self.memory, self.size)
        outputs = []
        for index, module in enumerate(self.tables.modules):
            block = self.function.append_basic_block(module.name)
            choice.add_case(i32(index), block)
            at.position_at_end(block)
            outputs.append((emitted(b, module, arguments[: module.arity]), block))
            at.branch(done)
        at.position_at_end(nowhere)
        at.unreachable()

        at.position_at_end(done)
        result = at.phi(I32)
        for value, block in outputs:
            result.add_incoming(value, block)
        slot = at.load(self.output, typ=I32)
        self._set_slot(slot, result)
        at.store(at.add(slot, i32(1)), self.output)
        at.store(at.add(position, i32(3)), self.position)
        at.branch(self.operate)

    def _update(self) -> None:
        """Update all registers at once; then halt or go on."""
        at, count = self.at, self.tables.registers
        at.position_at_end(self.update)
        position = at.load(self.position, typ=I32)
        values = [self._item(self.slots, self._item(self.lines, position, 1 + i)) for i in range(count)]
        for i, value in enumerate(values):
            self._set_slot(i32(i), value)
        search = self._item(self.lines, position, 1 + count)
        at.store(search, self.search)
        at.store(i32(HALTED), self.next_row)
        at.cbranch(at.icmp_signed("==", search, i32(HALT)), self.leave, self.find)

    def _find(self) -> None:
        """Test registers until a row is found."""
        at = self.at
        at.position_at_end(self.find)
        test, found = (self.function.append_basic_block(name) for name in ("ask", "found"))
        search = at.load(self.search, typ=I32)
        at.cbranch(at.icmp_signed("<", search, i32(0)), found, test)
        at.position_at_end(found)
        at.store(at.not_(search), self.row)
        at.branch(self.step)
        at.position_at_end(test)
        value = self._item(self.slots, self._item(self.tests, search))
        zero = at.icmp_unsigned("==", value, i32(0))
        at.store(at.select(zero, self._item(self.tests, search, 1), self._item(self.tests, search, 2)), self.search)
        at.branch(self.find)

    def _leave(self) -> None:
        at = self.at
        at.position_at_end(self.leave)
        for i in range(self.tables.registers):
            at.store(self._item(self.slots, i32(i)), element(at, self.registers_in, i32(i)))
        at.ret(ending_of(at, at.sub(self.limit, at.load(self.left, typ=I64)), at.load(self.next_row, typ=I32)))


def _constant_data(module: ir.Module, name: str, values: list[int]) -> ir.GlobalVariable:
    """An array of 32-bit integers, given to LLVM as bytes, which it reads much faster."""
    data = bytearray(np.array(values or [0], np.int32).tobytes())
    kind = ir.ArrayType(I8, len(data))
    table: Any = ir.GlobalVariable(module, kind, module.get_unique_name(f"nram.{name}"))
    table.initializer = ir.Constant(kind, data)
    table.global_constant = True
    table.linkage = "internal"
    table.align = 4
    return table
