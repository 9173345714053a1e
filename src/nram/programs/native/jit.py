"""Programs as machine code for this computer, compiled when they are first run."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from llvmlite import ir

from nram.llvm import I8, I32, I64, POINTER, element, i32, i64, optimised_engine
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
        kind = ctypes.CFUNCTYPE(whole, array, whole, whole, whole, whole, whole, array)
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
        self._records = np.zeros(len(batch), record_of(code.registers))
        self._code = code
        self._limits = limit, steps_at_once or code.steps_at_once
        self._addresses = batch.ctypes.data, self._records.ctypes.data

    @property
    def registers(self) -> np.ndarray:
        return np.ascontiguousarray(self._records["registers"])

    @property
    def steps(self) -> np.ndarray:
        return np.ascontiguousarray(self._records["steps"])

    @property
    def halted(self) -> np.ndarray:
        return self._records["next_row"] == HALTED

    def run(self) -> None:
        """Run on the memories in their present state."""
        count, size = self.batch.shape
        memories, records = self._addresses
        first = 0
        while first != count:
            first = self._code.function(memories, size, first, count, *self._limits, records)


def record_of(registers: int) -> np.dtype:
    """How the run on one memory stands: together, so that the code needs one pointer."""
    return np.dtype([("steps", np.int64), ("next_row", np.int32), ("registers", np.int32, (registers,))], align=True)


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

        i64 run_batch(ptr memories, i64 size, i64 first, i64 count, i64 limit, i64 budget, ptr records)

    It begins with memory `first` and returns the index of the memory to begin with in the next call: `count`, or
    another if the budget of steps is used up. An index ~i, below 0, says that memory i is in the middle of its run.
    Each memory that starts takes one step more of the budget, which bounds batches of very short runs too.
    """
    function = ir.Function(module, ir.FunctionType(I64, [POINTER, I64, I64, I64, I64, I64, POINTER]), "run_batch")
    memories, size, first, count, limit, budget, records = function.args
    for argument in (memories, records):
        argument.add_attribute("noalias")
    entry, resuming, resumed, fresh, work, scarce, run, done, last, stopped = (
        function.append_basic_block(name)
        for name in ("entry", "resume", "resumed", "fresh", "work", "scarce", "run", "done", "last", "stopped")
    )
    at = ir.IRBuilder(entry)
    record = record_of(registers)
    fields = {name: record.fields[name][1] for name in ("steps", "next_row", "registers")}  # type: ignore[index]
    size32 = at.trunc(size, I32)

    def field(of: Any, name: str) -> Any:
        return element(at, of, i64(fields[name]), I8)

    def call(advance: ir.Function, memory: Any, of: Any, next_row: Any, allowed: Any, taken: Any) -> tuple[Any, Any]:
        """Run on one memory and record how that ended; the steps of this call, and whether the run is finished."""
        ending = at.call(advance, [memory, size32, field(of, "registers"), next_row, allowed])
        steps, row_after = at.extract_value(ending, 0), at.extract_value(ending, 1)
        total = at.add(taken, steps)
        at.store(row_after, field(of, "next_row"))
        at.store(total, field(of, "steps"))
        halted = at.icmp_signed("<", row_after, i32(START))
        return steps, at.or_(halted, at.icmp_unsigned("==", total, limit))

    def following(memory: Any, of: Any) -> tuple[Any, Any]:
        return element(at, memory, size), element(at, of, i64(record.itemsize), I8)

    in_the_middle = at.icmp_signed("<", first, i64(0))
    index = at.select(in_the_middle, at.not_(first), first)
    first_memory = element(at, memories, at.mul(index, size))
    first_record = element(at, records, at.mul(index, i64(record.itemsize)), I8)
    to_do = at.sub(count, index)
    at.cbranch(in_the_middle, resuming, fresh)

    at.position_at_end(resuming)
    row_before = at.load(field(first_record, "next_row"), typ=I32)
    taken = at.load(field(first_record, "steps"), typ=I64)
    remaining = at.sub(limit, taken)
    allowed = at.select(at.icmp_unsigned("<", remaining, budget), remaining, budget)
    steps, finished = call(resume, first_memory, first_record, row_before, allowed, taken)
    at.cbranch(finished, resumed, stopped)
    at.position_at_end(resumed)
    second_memory, second_record = following(first_memory, first_record)
    others, left_by_first = at.sub(to_do, i64(1)), at.sub(budget, steps)
    some = at.icmp_unsigned("<", i64(0), others)
    at.cbranch(at.and_(some, at.icmp_unsigned("<", i64(0), left_by_first)), fresh, last)

    at.position_at_end(fresh)
    begin = [at.phi(kind) for kind in (POINTER, POINTER, I64, I64)]
    at.branch(work)

    # What a memory needs does not depend on the results of the one before it (but for rare branches), so that the
    # processor can work on several at once.
    at.position_at_end(work)
    memory, of, undone, left = now = [at.phi(kind) for kind in (POINTER, POINTER, I64, I64)]
    at.cbranch(at.icmp_unsigned("<", left, limit), scarce, run).set_weights([1, 1 << 20])
    at.position_at_end(scarce)
    at.branch(run)
    at.position_at_end(run)
    allowed = at.phi(I64)
    steps, finished = call(start, memory, of, i32(START), allowed, i64(0))
    at.cbranch(finished, done, stopped).set_weights([1 << 20, 1])

    at.position_at_end(done)
    next_memory, next_record = following(memory, of)
    fewer, spent = at.sub(undone, i64(1)), at.add(steps, i64(1))
    enough = at.icmp_unsigned("<", spent, left)
    left_after = at.sub(left, spent)
    at.cbranch(at.and_(enough, at.icmp_unsigned("<", i64(0), fewer)), work, last)

    at.position_at_end(last)
    unstarted = at.phi(I64)
    at.ret(at.sub(count, unstarted))
    at.position_at_end(stopped)
    unfinished = at.phi(I64)
    at.ret(at.not_(at.sub(count, unfinished)))

    at_entry = first_memory, first_record, to_do, budget
    after_first = second_memory, second_record, others, left_by_first
    for phi, *values in zip(begin, at_entry, after_first, strict=True):
        _incoming(phi, zip(values, (entry, resumed), strict=True))
    for phi, *values in zip(now, begin, (next_memory, next_record, fewer, left_after), strict=True):
        _incoming(phi, zip(values, (fresh, done), strict=True))
    _incoming(allowed, ((limit, work), (left, scarce)))
    _incoming(unstarted, ((others, resumed), (fewer, done)))
    _incoming(unfinished, ((to_do, resuming), (undone, run)))


def _incoming(phi: Any, incoming: Iterable[tuple[Any, ir.Block]]) -> None:
    for value, block in incoming:
        phi.add_incoming(value, block)
