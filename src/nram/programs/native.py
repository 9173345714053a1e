"""Programs as machine code of this computer, made when they are first run."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np
from llvmlite import binding, ir

from nram.programs.ir import Program, Row
from nram.programs.llvm import HALTED, add_batch, build_advance

STEPS_AT_ONCE = 1 << 24
"""Between two looks at Ctrl-C: well under a second, a few when every step misses the cache."""


class CompiledProgram:
    """Machine code of one program. It works in place, and on memories of any size."""

    def __init__(self, program: Program):
        self.registers = len(program.registers)
        module = ir.Module("program")
        add_batch(module, build_advance(module, program), self.registers)
        self.machine = target_machine(host=True)
        self.module = optimised(module, self.machine)
        self._engine = binding.create_mcjit_compiler(self.module, self.machine)
        self._engine.finalize_object()
        whole, array = ctypes.c_int64, ctypes.c_void_p
        kind = ctypes.CFUNCTYPE(whole, array, whole, whole, whole, whole, whole, array, array, array)
        self._run_batch: Any = kind(self._engine.get_function_address("run_batch"))

    def run_batch(
        self, batch: np.ndarray, limit: int, steps_at_once: int = STEPS_AT_ONCE
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Run on every row of an int32 array [B, M] of values in 0..M-1, in place, each for at most `limit` steps.

        Gives the registers [B, R], the steps [B] and whether each halted [B]. Ctrl-C is noticed every
        `steps_at_once` steps.
        """
        count, size = batch.shape
        registers = np.zeros((count, self.registers), np.int32)
        places = np.zeros(count, np.int32)
        steps = np.zeros(count, np.int64)
        addresses = registers.ctypes.data, places.ctypes.data, steps.ctypes.data
        first = 0
        while first < count:
            first = self._run_batch(batch.ctypes.data, size, first, count, limit, steps_at_once, *addresses)
        return registers, steps, places == HALTED


def compiled(program: Program) -> CompiledProgram:
    """The machine code of a program, made once for all programs that do the same."""
    return _compiled(len(program.registers), program.states)


@lru_cache(maxsize=64)
def _compiled(registers: int, states: tuple[tuple[Row, ...], ...]) -> CompiledProgram:
    return CompiledProgram(Program(tuple(f"r{i + 1}" for i in range(registers)), states))


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
