"""Programs as LLVM: the function `advance` of a program, which starts or resumes a run (see `instructions`).

Every row is a block, followed by the tests that find the next row, as few as the flow of the program allows. Registers
are local variables, which LLVM's first pass turns into SSA values. `strides` adds loops that take many steps at once,
`regions` groups of rows that need no test for every sum. Very large programs become a walk through `tables` instead.

No address is checked, because none can be wrong. Every value in a register or in memory lies in 0..M-1 at the start.
Every module keeps values in that range (0, 1 and 2 because M is at least 3, user-defined modules by `within`). A
`Program` has no undefined wires. And addresses are values.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from llvmlite import ir

from nram.llvm import I32, I64, Instructions, element, i32, i64
from nram.programs.ir import Program
from nram.programs.native.flow import Decision, Flow, RowId, tests_of
from nram.programs.native.instructions import HALTED, START, declare_advance, emit_row, ending_of
from nram.programs.native.regions import add_regions
from nram.programs.native.strides import add_loops
from nram.programs.native.tables import build_table_walk

LARGEST_TABLE = 1024  # conditions of all rows; for larger tables the analysis of the flow takes too long
LARGEST_CODE = 2500  # operations plus twice the tests; larger code takes more than a second to compile, soon minutes
LARGEST_TWICE = 400  # of that; smaller programs get separate code for starting and resuming, and for `regions`
LARGEST_COPIED_DECISION = 16
"""Up to this many tests are repeated after every row that needs them; larger decisions are shared between rows."""


class Advance:
    """The function `advance` while it is being built. `strides` and `regions` add to it before `finish`."""

    def __init__(self, module: ir.Module, program: Program, flow: Flow, starts: bool = True, resumes: bool = True):
        self.program = program
        self.flow = flow
        self.function = declare_advance(module)
        self.memory, self.size, self.registers_in, self.resumed_row, self.limit = self.function.args
        self._locals = ir.IRBuilder(self.function.append_basic_block("locals"))
        entry = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.registers = [self.local(I32, f"r{i + 1}") for i in range(len(program.registers))]
        self.left, self.next_row = self.local(I64, "left"), self.local(I32, "next")
        entry.store(self.limit, self.left)
        self.blocks: dict[RowId, ir.Block] = {
            (state, row): self.function.append_basic_block(f"state{state}.row{row + 1}") for state, row in flow.rows
        }
        self.end = self.function.append_basic_block("end")
        self.following: dict[RowId, ir.Block] = {
            row_id: self.function.append_basic_block(f"{block.name}.done")
            for row_id, block in self.blocks.items()
            if not flow.row(row_id).halt
        }
        """For each row, the block that finds the next row."""
        self._shared: dict[Decision, ir.Block] = {}
        if starts and resumes:
            fresh, resumed = (self.function.append_basic_block(name) for name in ("fresh", "resumed"))
            entry.cbranch(entry.icmp_signed("==", self.resumed_row, i32(START)), fresh, resumed)
            self._begin(ir.IRBuilder(fresh))
            self._resume(ir.IRBuilder(resumed))
        elif starts:
            self._begin(entry)
        else:
            self._resume(entry)

    def local(self, kind: ir.Type, name: str) -> Any:
        """A local variable."""
        return self._locals.alloca(kind, name=name)

    def finish(self, instead: dict[tuple[RowId, RowId], ir.Block]) -> ir.Function:
        """Emit every row. `instead` maps pairs of rows to a block that replaces the second after the first."""
        for row_id, block in self.following.items():
            ir.IRBuilder(block).branch(self._find_next(row_id, instead))
        for index, row_id in enumerate(self.flow.rows):
            self._row(index, row_id)
        self._leave()
        self._locals.branch(self.function.blocks[1])
        return self.function

    def _begin(self, at: ir.IRBuilder) -> None:
        """Start a run."""
        for register in self.registers:
            at.store(i32(0), register)
        at.branch(self.blocks[self.flow.rows[0]])

    def _resume(self, at: ir.IRBuilder) -> None:
        """Continue a run at a row."""
        for i, register in enumerate(self.registers):
            at.store(at.load(self._register_in(at, i), typ=I32), register)
        nowhere = self.function.append_basic_block("nowhere")
        choice = at.switch(self.resumed_row, nowhere)
        for index, row_id in enumerate(self.flow.rows):
            choice.add_case(i32(1 + index), self._resume_at(row_id))
        at.position_at_end(nowhere)
        at.unreachable()

    def _resume_at(self, row_id: RowId) -> ir.Block:
        """A block that leads to the row and tells LLVM what all other ways to it know about the flags."""
        block = self.function.append_basic_block(f"{self.blocks[row_id].name}.resumed")
        at = ir.IRBuilder(block)
        flags = self.flow.known_before(row_id)
        for register, zero in zip(self.registers, flags, strict=True):
            if zero is True:
                at.store(i32(0), register)
            elif zero is False:
                at.assume(at.icmp_unsigned("!=", at.load(register, typ=I32), i32(0)))
        at.branch(self.blocks[row_id])
        return block

    def _row(self, index: int, row_id: RowId) -> None:
        row, block = self.flow.row(row_id), self.blocks[row_id]
        at = ir.IRBuilder(block)
        stop = self.function.append_basic_block(f"{block.name}.stop")
        work = self.function.append_basic_block(f"{block.name}.work")
        left = at.load(self.left, typ=I64)
        branch = at.cbranch(at.icmp_unsigned("==", left, i64(0)), stop, work)
        branch.set_weights([1, 1 << 20])

        at.position_at_end(stop)
        at.store(i32(1 + index), self.next_row)
        at.branch(self.end)

        at.position_at_end(work)
        at.store(at.sub(left, i64(1)), self.left)
        before = [at.load(register, typ=I32) for register in self.registers]
        self.store_registers(at, emit_row(row, before, Instructions(at, self.memory, self.size)))
        if row.halt:
            at.store(i32(HALTED), self.next_row)
            at.branch(self.end)
        else:
            at.branch(self.following[row_id])

    def store_registers(self, at: ir.IRBuilder, values: list[Any]) -> None:
        for register, value in zip(self.registers, values, strict=True):
            at.store(value, register)

    def _find_next(self, row_id: RowId, instead: dict[tuple[RowId, RowId], ir.Block]) -> ir.Block:
        decision = self.flow.decision(row_id)
        special = any((row_id, follower) in instead for follower in self.flow.followers(row_id))
        large = len(list(islice(tests_of(decision), LARGEST_COPIED_DECISION + 1))) > LARGEST_COPIED_DECISION
        if large and not special:
            if decision not in self._shared:
                self._shared[decision] = self.tests(row_id, decision, {})
            return self._shared[decision]
        return self.tests(row_id, decision, instead)

    def tests(self, row_id: RowId, decision: Decision, instead: dict[tuple[RowId, RowId], ir.Block]) -> ir.Block:
        """Emit the tests of a decision; the first block."""
        state = self.flow.row(row_id).next_state
        name = f"{self.blocks[row_id].name}.next"
        blocks = {id(test): self.function.append_basic_block(name) for test in tests_of(decision)}

        def block_of(node: Decision) -> ir.Block:
            if not isinstance(node, int):
                return blocks[id(node)]
            follower = state, node
            return instead.get((row_id, follower), self.blocks[follower])

        for test in tests_of(decision):
            at = ir.IRBuilder(blocks[id(test)])
            value = at.load(self.registers[test.register], typ=I32)
            zero = at.icmp_unsigned("==", value, i32(0))
            at.cbranch(zero, block_of(test.zero), block_of(test.other))
        return block_of(decision)

    def _leave(self) -> None:
        at = ir.IRBuilder(self.end)
        for i, register in enumerate(self.registers):
            at.store(at.load(register, typ=I32), self._register_in(at, i))
        steps = at.sub(self.limit, at.load(self.left, typ=I64))
        at.ret(ending_of(at, steps, at.load(self.next_row, typ=I32)))

    def _register_in(self, at: ir.IRBuilder, index: int) -> Any:
        return element(at, self.registers_in, i64(index))


def build_start(module: ir.Module, program: Program) -> ir.Function:
    """`advance` for runs that start: code for every row, with loops; for large programs a walk through tables."""
    flow = _flow(program)
    return (
        build_table_walk(module, program) if flow is None else _finished(Advance(module, program, flow, resumes=False))
    )


def build_start_and_resume(module: ir.Module, program: Program) -> tuple[ir.Function, ir.Function]:
    """`advance` for runs that start, and for those that continue.

    These are two functions, because LLVM knows more about a run that has begun with all registers at 0. Larger programs
    have one for both, since it takes long to compile.
    """
    flow = _flow(program)
    if flow is None:
        both = build_table_walk(module, program)
    elif _code_size(flow) > LARGEST_TWICE:
        both = _finished(Advance(module, program, flow))
    else:
        resume = _finished(Advance(module, program, flow, starts=False))
        resume.attributes.add("noinline")  # it is called once for many steps
        return _finished(Advance(module, program, flow, resumes=False)), resume
    return both, both


def _finished(advance: Advance) -> ir.Function:
    loops = add_loops(advance)
    entries = add_regions(advance, loops) if _code_size(advance.flow) <= LARGEST_TWICE else {}
    return advance.finish(entries | loops)


def _flow(program: Program) -> Flow | None:
    """The flow of a program, or None if it is too large for code of its own."""
    if program.rows * len(program.registers) > LARGEST_TABLE:
        return None
    flow = Flow(program)
    return flow if _code_size(flow) <= LARGEST_CODE else None


def _code_size(flow: Flow) -> int:
    """The size of the rows' code. LLVM takes about twice as long for a test as for an operation."""
    sizes = (
        len(flow.row(row_id).operations)
        + (0 if flow.row(row_id).halt else 2 * sum(1 for _ in tests_of(flow.decision(row_id))))
        for row_id in flow.rows
    )
    return sum(sizes)
