"""A failure that the reference interpreter has confirmed, and the commands that repeat it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nram.errors import NramError, UsageError
from nram.messages import shell_command
from nram.pictures.traces import record_trace, trace_to_text
from nram.programs.interpret import interpret
from nram.programs.ir import Program
from nram.programs.verify.findings import Failure
from nram.tasks.base import Instance, Task

MANY_CELLS = 40  # in larger memories, zeros at the end are not written out
MOST_CELLS_IN_A_COMMAND = 2000


@dataclass(frozen=True)
class Counterexample(Failure):
    """An input on which the program is wrong, with what it should give and what it gives."""

    cells: tuple[int, ...]
    """The addresses of the output cells."""
    expected: tuple[int, ...]
    """The whole memory as it should be; only the output cells matter."""
    obtained: tuple[int, ...]
    steps: int
    halted: bool

    @property
    def wrong_cells(self) -> tuple[int, ...]:
        return tuple(cell for cell in self.cells if self.expected[cell] != self.obtained[cell])

    @property
    def instance(self) -> Instance:
        """As an instance, for `nram.trace`: its step limit is the one that the program was stopped at."""
        return Instance(list(self.memory), list(self.expected), list(self.cells), list(self.cells), self.limit)

    def commands(self, program: str) -> tuple[str, ...]:
        """The commands that repeat the run, for the program of this name or in this file.

        There are none if the memory is too large for a command line; the JSON form has it.
        """
        cells = self.memory
        size = None
        if len(cells) > MANY_CELLS:
            cells = cells[: max((address + 1 for address, cell in enumerate(cells) if cell), default=1)]
            size = len(self.memory)
        if len(cells) > MOST_CELLS_IN_A_COMMAND:
            return ()
        memory = " ".join(map(str, cells))
        return tuple(
            shell_command(verb, program, memory=memory, memory_size=size, max_steps=self.limit)
            for verb in ("run", "trace")
        )

    def trace(self, program: Program, width: int | None = 120) -> str:
        """The run as a table like the paper's."""
        try:
            record = record_trace(program, list(self.memory), self.limit, instance=self.instance)
        except UsageError:
            return f"the run of {self.steps} steps is too long for a table\n"
        return trace_to_text(record, width=width)

    def to_json(self) -> dict[str, Any]:
        return {
            "complexity": self.complexity,
            "memory_size": len(self.memory),
            "memory": list(self.memory),
            "cells": list(self.cells),
            "expected": list(self.expected),
            "obtained": list(self.obtained),
            "wrong_cells": list(self.wrong_cells),
            "limit": self.limit,
            "limit_is_T": self.at_first,
            "steps": self.steps,
            "halted": self.halted,
            "found_by": self.method,
        }


def is_confirmed(program: Program, task: Task, failure: Failure) -> bool:
    """Whether the interpreter fails on this input too."""
    return bool(_interpreted(program, task, failure).wrong_cells)


def confirmed(program: Program, task: Task, failure: Failure) -> Counterexample:
    """The failure as a counterexample, with the run of the interpreter."""
    found = _interpreted(program, task, failure)
    if not found.wrong_cells:
        cells = " ".join(map(str, failure.memory[:MOST_CELLS_IN_A_COMMAND]))
        raise NramError(
            f"the native code is wrong on this memory under {failure.limit} steps and the interpreter is right: "
            f"this is a bug of nram, please report it with the program: {cells}"
        )
    return found


def _interpreted(program: Program, task: Task, failure: Failure) -> Counterexample:
    expected, cells = task.oracle(failure.memory)
    ending = interpret(program, failure.memory, failure.limit)
    return Counterexample(
        **vars(failure),
        cells=tuple(cells),
        expected=tuple(expected),
        obtained=tuple(ending.memory),
        steps=ending.steps,
        halted=ending.halted,
    )
