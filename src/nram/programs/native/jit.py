"""Programs as machine code of this computer, made when they are first run."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from llvmlite import binding, ir

from nram.programs.ir import Program
from nram.programs.native.llvm import HALTED, START, add_batch, build_advance

OPERATIONS_AT_ONCE = 1 << 26
"""Between two looks at Ctrl-C: a fraction of a second, a few seconds when every step misses the cache."""


class CompiledProgram:
    """Machine code of one program. It works in place, and on memories of any size."""

    def __init__(self, program: Program):
        self.registers = len(program.registers)
        longest = max(len(row.operations) for rows in program.states for row in rows)
        self.steps_at_once = OPERATIONS_AT_ONCE // (longest + 4)
        module = ir.Module("program")
        add_batch(module, build_advance(module, program), self.registers)
        machine = target_machine(host=True)
        self._engine = binding.create_mcjit_compiler(optimised(module, machine), machine)
        self._engine.finalize_object()
        whole, array = ctypes.c_int64, ctypes.c_void_p
        kind = ctypes.CFUNCTYPE(whole, array, whole, whole, whole, whole, whole, array, array, array)
        self.function: Any = kind(self._engine.get_function_address("run_batch"))

    def run_batch(
        self, batch: np.ndarray, limit: int, steps_at_once: int | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Run on every row of an int32 array [B, M] of values in 0..M-1, in place, each for at most `limit` steps.

        Gives the registers [B, R], the steps [B] and whether each halted [B]. Ctrl-C is noticed every
        `steps_at_once` steps.
        """
        job = Job(self, batch, limit, steps_at_once)
        job.run()
        return job.registers, job.steps, job.halted


class Job:
    """A batch of memories, and room for what becomes of it: a call that can be repeated without preparations."""

    def __init__(self, code: CompiledProgram, batch: np.ndarray, limit: int, steps_at_once: int | None = None):
        if batch.dtype != np.int32 or batch.ndim != 2 or not batch.flags.c_contiguous or not batch.flags.writeable:
            raise ValueError("the batch must be a writeable, contiguous int32 array of two axes")
        self.batch = batch
        self.registers = np.zeros((len(batch), code.registers), np.int32)
        self.steps = np.zeros(len(batch), np.int64)
        self._places = np.zeros(len(batch), np.int32)
        self._code = code
        self._limits = limit, steps_at_once or code.steps_at_once
        self._addresses = [array.ctypes.data for array in (self.registers, self._places, self.steps)]

    @property
    def halted(self) -> np.ndarray:
        return self._places == HALTED

    def run(self) -> None:
        """Run on the memories as they are now."""
        self.steps.fill(0)
        self._places.fill(START)
        count, size = self.batch.shape
        memories, function, first = self.batch.ctypes.data, self._code.function, 0
        while first < count:
            first = function(memories, size, first, count, *self._limits, *self._addresses)


def compiled(program: Program) -> CompiledProgram:
    """The machine code of a program, made once for all programs that do the same."""
    return _compiled(_Meaning(program))


@dataclass(frozen=True, eq=False)
class _Meaning:
    """A program as far as its machine code is concerned. Its digest is computed once, its hash every time."""

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


def target_machine(host: bool) -> binding.TargetMachine:
    """For exactly this processor, or for every one of its architecture."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_default_triple()
    if not host:
        return target.create_target_machine(opt=3, reloc="pic", codemodel="default")
    features = binding.get_host_cpu_features().flatten()
    return target.create_target_machine(cpu=binding.get_host_cpu_name(), features=features, opt=3)


def parsed(module: ir.Module, machine: binding.TargetMachine) -> binding.ModuleRef:
    """The module as LLVM itself holds it, checked."""
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    reference = binding.parse_assembly(str(module))
    reference.verify()
    return reference


def optimised(module: ir.Module, machine: binding.TargetMachine) -> binding.ModuleRef:
    """The module after LLVM's passes."""
    reference = parsed(module, machine)
    options = binding.create_pipeline_tuning_options(speed_level=3)
    passes = binding.create_pass_builder(machine, options)
    passes.getModulePassManager().run(reference, passes)
    return reference
