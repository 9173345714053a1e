"""Programs as machine code for this computer, compiled when they are first run."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from llvmlite import ir

from nram.llvm import I32, I64, POINTER, element, i32, i64, optimised_engine
from nram.programs.ir import Program
from nram.programs.native.instructions import HALTED, START
from nram.programs.native.llvm import build_start_and_resume

OPERATIONS_AT_ONCE = 1 << 26
"""How much runs between two checks for Ctrl-C: a fraction of a second, or a few if every step misses the cache."""


class CompiledProgram:
    """The machine code of one program. It works in place, on memories of any size."""

    def __init__(self, program: Program):
        self.registers = len(program.registers)
        longest = max(len(row.operations) for rows in program.states for row in rows)
        self.steps_at_once = OPERATIONS_AT_ONCE // (longest + 4)
        module = ir.Module("program")
        add_batch(module, *build_start_and_resume(module, program), self.registers)
        self._engine = optimised_engine(module)
        whole, array = ctypes.c_int64, ctypes.c_void_p
        kind = ctypes.CFUNCTYPE(whole, array, whole, whole, whole, whole, whole, array, array, array)
        self.function: Any = kind(self._engine.get_function_address("run_batch"))

    def run_batch(
        self, batch: np.ndarray, limit: int, steps_at_once: int | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Run on every row of an int32 array [B, M] of values in 0..M-1, in place, each for at most `limit` steps.

        Returns the registers [B, R], the steps [B] and whether each run halted [B]. Ctrl-C is checked every
        `steps_at_once` steps.
        """
        job = Job(self, batch, limit, steps_at_once)
        job.run()
        return job.registers, job.steps, job.halted


class Job:
    """A batch of memories with arrays for the results, so that a call can be repeated without preparations."""

    def __init__(self, code: CompiledProgram, batch: np.ndarray, limit: int, steps_at_once: int | None = None):
        if batch.dtype != np.int32 or batch.ndim != 2 or not batch.flags.c_contiguous or not batch.flags.writeable:
            raise ValueError("the batch must be a writeable, contiguous int32 array of two axes")
        self.batch = batch
        self.registers = np.zeros((len(batch), code.registers), np.int32)
        self.steps = np.zeros(len(batch), np.int64)
        self._next_rows = np.zeros(len(batch), np.int32)
        self._code = code
        self._limits = limit, steps_at_once or code.steps_at_once
        self._addresses = [array.ctypes.data for array in (self.registers, self._next_rows, self.steps)]

    @property
    def halted(self) -> np.ndarray:
        return self._next_rows == HALTED

    def run(self) -> None:
        """Run on the memories in their present state."""
        self.steps.fill(0)
        self._next_rows.fill(START)
        count, size = self.batch.shape
        memories, function, first = self.batch.ctypes.data, self._code.function, 0
        while first < count:
            first = function(memories, size, first, count, *self._limits, *self._addresses)


def compiled(program: Program) -> CompiledProgram:
    """The machine code of a program, compiled once for all programs with the same table."""
    return _compiled(_Meaning(program))


@dataclass(frozen=True, eq=False)
class _Meaning:
    """A program as a cache key: equal for equal tables. The fingerprint is stored, a program's hash is not."""

    program: Program

    def __hash__(self) -> int:
        return hash(self.program.fingerprint)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Meaning)
            and self.program.registers == other.program.registers
            and self.program.states == other.program.states
        )


@lru_cache(maxsize=64)
def _compiled(meaning: _Meaning) -> CompiledProgram:
    return CompiledProgram(meaning.program)


def add_batch(module: ir.Module, start: ir.Function, resume: ir.Function, registers: int) -> None:
    """Add a function that runs a batch of memories, one after another:

        i64 run_batch(ptr memories, i64 size, i64 first, i64 count, i64 limit, i64 budget,
                      ptr registers, ptr next_rows, ptr steps)

    It begins with memory `first`, which may be in the middle of its run, and returns the index of the first memory
    that is not finished: `count`, or less if the budget of steps is used up. Each memory that starts takes one step
    more of the budget, which bounds batches of very short runs too.
    """
    kind = ir.FunctionType(I64, [POINTER, I64, I64, I64, I64, I64, POINTER, POINTER, POINTER])
    function = ir.Function(module, kind, "run_batch")
    memories, size, first, count, limit, budget, all_registers, all_rows, all_steps = function.args
    for argument in (memories, all_registers, all_rows, all_steps):
        argument.add_attribute("noalias")
    entry, resuming, resumed, fresh, work, scarce, run, done, last = (
        function.append_basic_block(name)
        for name in ("entry", "resume", "resumed", "fresh", "work", "scarce", "run", "done", "last")
    )
    at = ir.IRBuilder(entry)
    size32 = at.trunc(size, I32)

    def call(advance: ir.Function, index: Any, next_row: Any, allowed: Any, taken: Any) -> tuple[Any, Any]:
        """Run on one memory and store how that ended; the steps of this call, and whether the run is finished."""
        memory = element(at, memories, at.mul(index, size))
        found = element(at, all_registers, at.mul(index, i64(registers)))
        ending = at.call(advance, [memory, size32, found, next_row, allowed])
        steps, row_after = at.extract_value(ending, 0), at.extract_value(ending, 1)
        total = at.add(taken, steps)
        at.store(row_after, element(at, all_rows, index))
        at.store(total, element(at, all_steps, index, I64))
        halted = at.icmp_signed("<", row_after, i32(START))
        return steps, at.or_(halted, at.icmp_unsigned("==", total, limit))

    row_before = at.load(element(at, all_rows, first), typ=I32)
    at.cbranch(at.icmp_signed("==", row_before, i32(START)), fresh, resuming)

    at.position_at_end(resuming)
    taken = at.load(element(at, all_steps, first, I64), typ=I64)
    remaining = at.sub(limit, taken)
    allowed = at.select(at.icmp_unsigned("<", remaining, budget), remaining, budget)
    steps, finished = call(resume, first, row_before, allowed, taken)
    at.cbranch(finished, resumed, last)
    at.position_at_end(resumed)
    second, left_by_first = at.add(first, i64(1)), at.sub(budget, steps)
    others = at.icmp_unsigned("<", second, count)
    at.cbranch(at.and_(others, at.icmp_unsigned("<", i64(0), left_by_first)), fresh, last)

    at.position_at_end(fresh)
    begin, left_at_first = at.phi(I64), at.phi(I64)
    at.branch(work)

    # What a memory needs does not depend on the results of the one before it (but for rare branches), so that the
    # processor can work on several at once.
    at.position_at_end(work)
    index, left = at.phi(I64), at.phi(I64)
    at.cbranch(at.icmp_unsigned("<", left, limit), scarce, run).set_weights([1, 1 << 20])
    at.position_at_end(scarce)
    at.branch(run)
    at.position_at_end(run)
    allowed = at.phi(I64)
    steps, finished = call(start, index, i32(START), allowed, i64(0))
    at.cbranch(finished, done, last).set_weights([1 << 20, 1])

    at.position_at_end(done)
    following, spent = at.add(index, i64(1)), at.add(steps, i64(1))
    enough = at.icmp_unsigned("<", spent, left)
    left_after = at.sub(left, spent)
    at.cbranch(at.and_(enough, at.icmp_unsigned("<", following, count)), work, last)

    at.position_at_end(last)
    unfinished = at.phi(I64)
    at.ret(unfinished)

    for phi, incoming in (
        (begin, ((first, entry), (second, resumed))),
        (left_at_first, ((budget, entry), (left_by_first, resumed))),
        (index, ((begin, fresh), (following, done))),
        (left, ((left_at_first, fresh), (left_after, done))),
        (allowed, ((limit, work), (left, scarce))),
        (unfinished, ((first, resuming), (second, resumed), (index, run), (following, done))),
    ):
        for value, block in incoming:
            phi.add_incoming(value, block)
