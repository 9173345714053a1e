"""A program as LLVM: one function that carries the machine on from wherever it stands.

    { i64 steps, i32 place } advance(ptr memory, i32 size, ptr registers, i32 place, i64 limit)

`place` is START, 1 + the number of the row that comes next, or HALTED. Every row is a block of its own, and the
tests that find the next row stand at its end, as few as the flow of the program allows. Registers are local
variables here and become SSA values in LLVM's first pass. `strides` adds loops that take many steps at once.

No address is ever checked. It need not be: every value in a register or in memory lies in 0..M-1 when the run
begins, every module keeps it so (0, 1 and 2 because M is at least 3, modules of one's own by `within`), a `Program`
has no wire from nowhere, and addresses are values.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from llvmlite import ir

from nram.programs.ir import MODULES, Constant, Output, Program, Register, Row, Value
from nram.programs.memory import LARGEST_SIZE
from nram.programs.native.flow import Decision, Flow, RowName, known_before, tests_of

I1, I8, I32, I64, POINTER = ir.IntType(1), ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.PointerType()
ENDING = ir.LiteralStructType([I64, I32])

START, HALTED = 0, -1  # places before the first row and after the last

LARGEST_TABLE = 1024  # conditions of all rows; beyond, finding out which rows can be reached takes too long
LARGEST_CODE = 2500  # operations and, twice, tests; beyond, compiling takes longer than a second, and soon minutes
LARGEST_OWN_DECISION = 16
"""Tests that are repeated after every row that needs them; larger decisions are shared between rows."""


class Instructions:
    """The primitives of the modules as LLVM instructions on unsigned 32-bit integers: sums stay below 2 M < 2**32."""

    def __init__(self, at: ir.IRBuilder, memory: Any, size: Any):
        self.at = at
        self.memory = memory
        self.size = size

    def number(self, literal: int) -> Any:
        return ir.Constant(I32, literal)

    def add(self, a: Any, b: Any) -> Any:
        return self.at.add(a, b)

    def sub(self, a: Any, b: Any) -> Any:
        return self.at.sub(a, b)

    def multiply(self, a: Any, b: Any) -> Any:
        wide = self.at.mul(self.at.zext(a, I64), self.at.zext(b, I64))
        return self.at.trunc(self.at.urem(wide, self.at.zext(self.size, I64)), I32)

    def divide(self, a: Any, b: Any) -> Any:
        nothing = self.equal(b, self.number(0))
        quotient = self.at.udiv(a, self.at.select(nothing, self.number(1), b))
        return self.at.select(nothing, self.number(0), quotient)

    def less(self, a: Any, b: Any) -> Any:
        return self.at.icmp_unsigned("<", a, b)

    def equal(self, a: Any, b: Any) -> Any:
        return self.at.icmp_unsigned("==", a, b)

    def choose(self, condition: Any, yes: Any, no: Any) -> Any:
        return self.at.select(condition, yes, no)

    def within(self, value: Any) -> Any:
        return self.at.select(self.less(value, self.size), value, self.number(0))

    def read(self, pointer: Any) -> Any:
        return self.read_at(self.at.zext(pointer, I64))

    def write(self, pointer: Any, value: Any) -> None:
        self.write_at(self.at.zext(pointer, I64), value)

    def read_at(self, index: Any) -> Any:
        """The cell at a 64-bit index."""
        value = self.at.load(self._cell(index), typ=I32)
        limits = [ir.Constant(I32, 0), ir.Constant(I32, LARGEST_SIZE)]
        value.set_metadata("range", self.at.module.add_metadata(limits))
        return value

    def write_at(self, index: Any, value: Any) -> None:
        self.at.store(value, self._cell(index))

    def _cell(self, index: Any) -> Any:
        return element(self.at, self.memory, index)


def carry_out(row: Row, registers: list[Any], to: Any) -> list[Any]:
    """Emit the operations of a row; the new values of the registers. `to` builds for any target."""
    outputs: list[Any] = []

    def value_of(value: Value) -> Any:
        match value:
            case Register(index):
                return registers[index]
            case Output(index):
                return outputs[index]
            case Constant(number):
                return to.number(number)

    for operation in row.operations:
        module = MODULES[operation.module]
        output = module.emit(to, *map(value_of, operation.arguments))
        outputs.append(to.number(0) if module.memory == "writes" else output)
    return [value_of(value) for value in row.registers]


def declare_advance(module: ir.Module) -> ir.Function:
    """The function without its body, under a name that no function of C can have."""
    name = module.get_unique_name("nram.advance")
    function = ir.Function(module, ir.FunctionType(ENDING, [POINTER, I32, POINTER, I32, I64]), name)
    function.linkage = "internal"
    for argument, name in zip(function.args, ("memory", "size", "registers", "place", "limit"), strict=True):
        argument.name = name
    for argument in (function.args[0], function.args[2]):
        argument.add_attribute("noalias")
    return function


def element(at: ir.IRBuilder, pointer: Any, index: Any, kind: ir.Type = I32) -> Any:
    """The address of an element of an array."""
    return at.gep(pointer, [index], inbounds=True, source_etype=kind)


def ending_of(at: ir.IRBuilder, steps: Any, place: Any) -> Any:
    """What `advance` returns."""
    ending = at.insert_value(ir.Constant(ENDING, ir.Undefined), steps, 0)
    return at.insert_value(ending, place, 1)


class Advance:
    """The function while it is being built; `strides` may add to it before it is finished."""

    def __init__(self, module: ir.Module, program: Program, flow: Flow):
        self.program = program
        self.flow = flow
        self.function = declare_advance(module)
        self.memory, self.size, self.registers_in, self.place_in, self.limit = self.function.args
        entry = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.registers = [entry.alloca(I32, name=f"r{i + 1}") for i in range(len(program.registers))]
        self.left = entry.alloca(I64, name="left")
        self.place = entry.alloca(I32, name="next")
        entry.store(self.limit, self.left)
        self.blocks: dict[RowName, ir.Block] = {
            name: self.function.append_basic_block(f"state{name[0]}.row{name[1] + 1}") for name in self.flow.rows
        }
        self.end = self.function.append_basic_block("end")
        self.following: dict[RowName, ir.Block] = {
            name: self.function.append_basic_block(f"state{name[0]}.row{name[1] + 1}.done")
            for name in self.flow.rows
            if not self.flow.row(name).halt
        }
        """Where the search for the row after this one begins."""
        self._shared: dict[Decision, ir.Block] = {}
        self._enter(entry)

    def finish(self, instead: dict[tuple[RowName, RowName], ir.Block]) -> ir.Function:
        """Emit every row. `instead` names blocks to go to between two rows in place of the second."""
        for name, block in self.following.items():
            ir.IRBuilder(block).branch(self._find_next(name, instead))
        for number, name in enumerate(self.flow.rows):
            self._row(number, name)
        self._leave()
        return self.function

    def _enter(self, at: ir.IRBuilder) -> None:
        """Begin anew, or go on at a row."""
        fresh, resumed = (self.function.append_basic_block(name) for name in ("fresh", "resumed"))
        at.cbranch(at.icmp_signed("==", self.place_in, ir.Constant(I32, START)), fresh, resumed)
        at.position_at_end(fresh)
        for register in self.registers:
            at.store(ir.Constant(I32, 0), register)
        at.branch(self.blocks[self.flow.rows[0]])

        at.position_at_end(resumed)
        for i, register in enumerate(self.registers):
            at.store(at.load(self._register_in(at, i), typ=I32), register)
        nowhere = self.function.append_basic_block("nowhere")
        choice = at.switch(self.place_in, nowhere)
        for number, name in enumerate(self.flow.rows):
            choice.add_case(ir.Constant(I32, 1 + number), self._resume_at(name))
        at.position_at_end(nowhere)
        at.unreachable()

    def _resume_at(self, name: RowName) -> ir.Block:
        """A block that repeats what every other way to the row knows of the flags, and goes there."""
        block = self.function.append_basic_block(f"{self.blocks[name].name}.resumed")
        at = ir.IRBuilder(block)
        flags = known_before([row.when for row in self.program.states[name[0]]], name[1])
        for register, zero in zip(self.registers, flags, strict=True):
            if zero is True:
                at.store(ir.Constant(I32, 0), register)
            elif zero is False:
                at.assume(at.icmp_unsigned("!=", at.load(register, typ=I32), ir.Constant(I32, 0)))
        at.branch(self.blocks[name])
        return block

    def _row(self, number: int, name: RowName) -> None:
        row, block = self.flow.row(name), self.blocks[name]
        at = ir.IRBuilder(block)
        stop = self.function.append_basic_block(f"{block.name}.stop")
        work = self.function.append_basic_block(f"{block.name}.work")
        left = at.load(self.left, typ=I64)
        branch = at.cbranch(at.icmp_unsigned("==", left, ir.Constant(I64, 0)), stop, work)
        branch.set_weights([1, 1 << 20])

        at.position_at_end(stop)
        at.store(ir.Constant(I32, 1 + number), self.place)
        at.branch(self.end)

        at.position_at_end(work)
        at.store(at.sub(left, ir.Constant(I64, 1)), self.left)
        before = [at.load(register, typ=I32) for register in self.registers]
        after = carry_out(row, before, Instructions(at, self.memory, self.size))
        self.store_registers(at, after)
        if row.halt:
            at.store(ir.Constant(I32, HALTED), self.place)
            at.branch(self.end)
        else:
            at.branch(self.following[name])

    def store_registers(self, at: ir.IRBuilder, values: list[Any]) -> None:
        for register, value in zip(self.registers, values, strict=True):
            at.store(value, register)

    def _find_next(self, name: RowName, instead: dict[tuple[RowName, RowName], ir.Block]) -> ir.Block:
        decision = self.flow.decision(name)
        own = any((name, follower) in instead for follower in self.flow.followers(name))
        large = len(list(islice(tests_of(decision), LARGEST_OWN_DECISION + 1))) > LARGEST_OWN_DECISION
        if large and not own:
            if decision not in self._shared:
                self._shared[decision] = self._tests(name, decision, {})
            return self._shared[decision]
        return self._tests(name, decision, instead)

    def _tests(self, name: RowName, decision: Decision, instead: dict[tuple[RowName, RowName], ir.Block]) -> ir.Block:
        """The blocks of a decision."""
        state = self.flow.row(name).next_state
        blocks = {
            id(test): self.function.append_basic_block(f"{self.blocks[name].name}.next") for test in tests_of(decision)
        }

        def block_of(node: Decision) -> ir.Block:
            if not isinstance(node, int):
                return blocks[id(node)]
            follower = state, node
            return instead.get((name, follower), self.blocks[follower])

        for test in tests_of(decision):
            at = ir.IRBuilder(blocks[id(test)])
            value = at.load(self.registers[test.register], typ=I32)
            zero = at.icmp_unsigned("==", value, ir.Constant(I32, 0))
            at.cbranch(zero, block_of(test.zero), block_of(test.other))
        return block_of(decision)

    def _leave(self) -> None:
        at = ir.IRBuilder(self.end)
        for i, register in enumerate(self.registers):
            at.store(at.load(register, typ=I32), self._register_in(at, i))
        steps = at.sub(self.limit, at.load(self.left, typ=I64))
        at.ret(ending_of(at, steps, at.load(self.place, typ=I32)))

    def _register_in(self, at: ir.IRBuilder, index: int) -> Any:
        return element(at, self.registers_in, ir.Constant(I64, index))


def build_advance(module: ir.Module, program: Program) -> ir.Function:
    """The function of a program: code for every row, with loops; for large programs a walk through tables."""
    from nram.programs.native.strides import add_loops
    from nram.programs.native.tables import build_table_walk

    if program.rows * len(program.registers) > LARGEST_TABLE:
        return build_table_walk(module, program)
    flow = Flow(program)
    if sum(_code_size(flow, name) for name in flow.rows) > LARGEST_CODE:
        return build_table_walk(module, program)
    advance = Advance(module, program, flow)
    return advance.finish(add_loops(advance))


def _code_size(flow: Flow, name: RowName) -> int:
    """A measure of the code of a row: LLVM takes about twice as long for a test as for an operation."""
    tests = 0 if flow.row(name).halt else sum(1 for _ in tests_of(flow.decision(name)))
    return len(flow.row(name).operations) + 2 * tests


def add_batch(module: ir.Module, advance: ir.Function, registers: int) -> None:
    """A function that carries on a batch of memories, one after another:

        i64 run_batch(ptr memories, i64 size, i64 first, i64 count, i64 limit, i64 budget,
                      ptr registers, ptr places, ptr steps)

    It begins with memory `first`, which alone may stand amidst its run, and returns the first memory that is not
    finished: `count`, or less when the budget of steps was used up.
    """
    kind = ir.FunctionType(I64, [POINTER, I64, I64, I64, I64, I64, POINTER, POINTER, POINTER])
    function = ir.Function(module, kind, "run_batch")
    memories, size, first, count, limit, budget, all_registers, all_places, all_steps = function.args
    for argument in (memories, all_registers, all_places, all_steps):
        argument.add_attribute("noalias")
    entry, work, done, unfinished = (
        function.append_basic_block(name) for name in ("entry", "work", "done", "unfinished")
    )
    at = ir.IRBuilder(entry)

    size32 = at.trunc(size, I32)
    place_before = at.load(element(at, all_places, first), typ=I32)
    steps_before = at.load(element(at, all_steps, first, I64), typ=I64)
    at.branch(work)

    at.position_at_end(work)
    number, place, taken, left = (at.phi(kind) for kind in (I64, I32, I64, I64))
    allowed = at.sub(limit, taken)
    allowed = at.select(at.icmp_unsigned("<", allowed, left), allowed, left)
    memory = element(at, memories, at.mul(number, size))
    own_registers = element(at, all_registers, at.mul(number, ir.Constant(I64, registers)))
    ending = at.call(advance, [memory, size32, own_registers, place, allowed])
    steps, place_after = at.extract_value(ending, 0), at.extract_value(ending, 1)
    total = at.add(taken, steps)
    at.store(place_after, element(at, all_places, number))
    at.store(total, element(at, all_steps, number, I64))
    halted = at.icmp_signed("<", place_after, ir.Constant(I32, START))
    finished = at.or_(halted, at.icmp_unsigned("==", total, limit))
    at.cbranch(finished, done, unfinished)

    at.position_at_end(unfinished)
    at.ret(number)

    at.position_at_end(done)
    following = at.add(number, ir.Constant(I64, 1))
    spent = at.add(steps, ir.Constant(I64, 1))  # so that a batch of very short runs comes to an end too
    enough = at.icmp_unsigned("<", spent, left)
    go_on = at.and_(enough, at.icmp_unsigned("<", following, count))
    left_after = at.sub(left, spent)
    last = function.append_basic_block("last")
    at.cbranch(go_on, work, last)
    at.position_at_end(last)
    at.ret(following)

    for phi, begin, then in (
        (number, first, following),
        (place, place_before, ir.Constant(I32, START)),
        (taken, steps_before, ir.Constant(I64, 0)),
        (left, budget, left_after),
    ):
        phi.add_incoming(begin, entry)
        phi.add_incoming(then, done)
