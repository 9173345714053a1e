"""Running a program on a user's memory, with the engine that suits it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, cast

import numpy as np

from nram.display import Displayed, cells_in_words, counted, heading, memory_table
from nram.errors import UsageError, shown
from nram.programs.interpret import interpret
from nram.programs.ir import Program
from nram.programs.memory import default_max_steps, narrow_cells, prepare_memory
from nram.tasks.base import Instance

ENGINES = ("auto", "native", "python")


Memory = TypeVar("Memory")
Registers = TypeVar("Registers")
Steps = TypeVar("Steps")
Halted = TypeVar("Halted")


@dataclass(frozen=True, repr=False)
class Result(Displayed, Generic[Memory, Registers, Steps, Halted]):
    """How a run ended. For a batch, every field has one entry for each memory."""

    memory: Memory
    """A list; or, if an array was given, an array of the same type (of int32 if that type cannot hold M - 1)."""
    registers: Registers
    steps: Steps
    """An integer; for a batch a list, or an array if an array was given. `registers` and `halted` likewise."""
    halted: Halted

    def _brief(self) -> str:
        memory, steps, halted = cast(tuple[Any, Any, Any], (self.memory, self.steps, self.halted))
        if isinstance(steps, int):
            how = "halted" if halted else "not halted"
            return f"{how} after {counted(steps, 'step')}: memory {cells_in_words(memory)}"
        return f"of {counted(len(memory), 'run')}: {np.sum(halted)} halted, at most {np.max(steps)} steps"

    def _repr_html_(self) -> str | None:
        """What a notebook shows of a single run."""
        if not isinstance(self.steps, int):
            return None
        return heading(self._brief().partition(":")[0]) + memory_table({"memory": cast(Any, self.memory)})


def execute(
    program: Program,
    memory: Any,
    max_steps: int | None = None,
    memory_size: int | None = None,
    engine: str = "auto",
    largest_value: int | None = None,
) -> Result[Any, Any, Any, Any]:
    """Run a program on one memory, a batch or an instance: the work of `Program.run`.

    `engine` is one of ENGINES; 'python' is the reference interpreter.
    """
    if largest_value is not None:
        return _execute_wide(program, memory, max_steps, memory_size, engine, largest_value)
    if isinstance(memory, Instance):
        memory, max_steps = memory.input, memory.steps if max_steps is None else max_steps
    engine = engine_for(program, engine)
    cells = prepare_memory(memory, memory_size)
    limit = check_max_steps(max_steps, cells.shape[-1])
    batch = cells if cells.ndim == 2 else cells[None]
    if engine == "native":
        from nram.programs.native.jit import compiled

        registers, steps, halted = compiled(program).run_batch(batch, limit)
    else:
        registers = np.zeros((len(batch), len(program.registers)), np.int32)
        steps, halted = np.zeros(len(batch), np.int64), np.zeros(len(batch), bool)
        for i, row in enumerate(batch):
            ending = interpret(program, row.tolist(), limit)
            row[:] = ending.memory
            registers[i], steps[i], halted[i] = ending.registers, ending.steps, ending.halted
    if cells.ndim == 1:
        return Result(_like(memory, cells), registers[0].tolist(), int(steps[0]), bool(halted[0]))
    if isinstance(memory, np.ndarray):
        return Result(_like(memory, cells), registers, steps, halted)
    return Result(cells.tolist(), registers.tolist(), steps.tolist(), halted.tolist())


def _execute_wide(
    program: Program, memory: Any, max_steps: int | None, memory_size: int | None, engine: str, largest_value: int
) -> Result[Any, Any, Any, Any]:
    """Run on a memory of largest_value + 1 cells, and return those that were given."""
    if isinstance(memory, Instance):
        raise UsageError("an instance says how large its values are: give its input, or leave the largest value out")
    if memory_size is not None:
        raise UsageError("the largest value says how large the memory is: leave the memory size out")
    if engine_for(program, engine) != "native":
        raise UsageError("the interpreter holds every cell: a largest value needs native code, with emitted modules")
    given = narrow_cells(memory, largest_value)
    result = execute(program, given, check_max_steps(max_steps, len(given)), int(largest_value) + 1)
    return Result(_like(memory, result.memory[: len(given)].copy()), result.registers, result.steps, result.halted)


def engine_for(program: Program, engine: str) -> Literal["native", "python"]:
    """The engine to use: 'auto' means native code if all modules of the program can be emitted."""
    match engine:
        case "native" | "python":
            return engine
        case "auto":
            return "native" if all(module.emits for module in program.modules) else "python"
    raise UsageError(f"there is no engine '{engine}': use {', '.join(map(repr, ENGINES))}")


def check_max_steps(max_steps: int | None, size: int) -> int:
    """The step limit of a run, checked; the default if none is given."""
    if max_steps is None:
        return default_max_steps(size)
    limit = int(max_steps) if isinstance(max_steps, (int, np.integer)) and not isinstance(max_steps, bool) else -1
    if limit < 0:
        raise UsageError(f"max_steps is {shown(max_steps)}: give a whole number from 0 up")
    if limit >= 2**62:
        raise UsageError(f"max_steps is {shown(max_steps)}: give at most {2**62 - 1}")
    return limit


def _like(given: Any, cells: np.ndarray) -> Any:
    if not isinstance(given, np.ndarray):
        return cells.tolist()
    wide_enough = given.dtype.kind in "iu" and np.iinfo(given.dtype).max >= cells.shape[-1] - 1
    return cells.astype(given.dtype, copy=False) if wide_enough else cells
