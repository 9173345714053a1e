"""Records of runs, step by step."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from nram.display import Displayed, counted, shortened
from nram.errors import UsageError
from nram.limits import wrong_cells
from nram.programs.execute import check_max_steps
from nram.programs.interpret import Ending, Machine
from nram.programs.ir import MODULES, Program, Row
from nram.programs.memory import prepare_memory
from nram.tasks.base import Instance

PICTURE_SUFFIXES = (".png", ".svg", ".pdf")
MAX_STEPS = 200_000
MAX_LISTED = 20_000_000  # memory cells in a form that shows all of them at every step


def require_picture(path: Path) -> None:
    """Refuse a file whose name does not say which kind of picture it is."""
    if path.suffix.lower() not in PICTURE_SUFFIXES:
        raise UsageError(f"{path} does not end in {', '.join(PICTURE_SUFFIXES)}: choose one of these")


@dataclass(frozen=True, slots=True)
class Access:
    """One READ or WRITE: where, and what was read or written."""

    pointer: int
    value: int


@dataclass(frozen=True, slots=True)
class TracedStep:
    """A step without its memory, which follows from the writes before it."""

    number: int
    registers: tuple[int, ...]
    state: int
    row: int
    """From 0; people count rows from 1."""
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]

    @property
    def reads_in_words(self) -> str:
        """What READ was given: 'p:1', all of them if there are several."""
        return ", ".join(f"p:{access.pointer}" for access in self.reads)

    @property
    def writes_in_words(self) -> str:
        """What WRITE was given: 'p:6 a:2'."""
        return ", ".join(f"p:{access.pointer} a:{access.value}" for access in self.writes)


@dataclass(frozen=True, repr=False)
class Trace(Displayed):
    """A whole run."""

    program: Program
    start: tuple[int, ...]
    steps: tuple[TracedStep, ...]
    ending: Ending
    limit: int
    """The most steps it could have taken."""
    instance: Instance | None = None
    """The instance of the task it was run on, where it is known."""

    def memories(self) -> Iterator[list[int]]:
        """The memory at the start of every step, and at the end. Always the same list: copy what you keep."""
        memory = list(self.start)
        for step in self.steps:
            yield memory
            for access in step.writes:
                memory[access.pointer] = access.value
        yield memory

    @property
    def row_heading(self) -> str:
        return "row" if len(self.program.states) == 1 else "state:row"

    def place(self, step: TracedStep) -> str:
        """The name of nram 0.1 for `row_in_words`."""
        warnings.warn("Trace.place is now Trace.row_in_words: the old name goes in nram 0.3", DeprecationWarning, 2)
        return self.row_in_words(step)

    def row_in_words(self, step: TracedStep) -> str:
        """The row that a step carried out, with its state if there are several."""
        return f"{step.row + 1}" if len(self.program.states) == 1 else f"{step.state}:{step.row + 1}"

    @property
    def output_cells(self) -> frozenset[int]:
        """The output cells of the instance; empty if it is not known."""
        return frozenset() if self.instance is None else frozenset(self.instance.cells)

    @cached_property
    def idle_from(self) -> int | None:
        """The first step of those at the end that change nothing; None if the last one changes something."""
        found = None
        following = [*(step.registers for step in self.steps[1:]), tuple(self.ending.registers)]
        for step, memory, registers in zip(self.steps, self.memories(), following, strict=False):
            idle = registers == step.registers and all(memory[one.pointer] == one.value for one in step.writes)
            idle = idle and self.program.states[step.state][step.row].next_state == step.state
            found = (found or step.number) if idle else None
        return found

    def outcome(self) -> list[str]:
        """How it ended, in words."""
        ending = self.ending
        steps = f"{ending.steps} step{'' if ending.steps == 1 else 's'}"
        lines = [f"halted by itself after {steps}" if ending.halted else f"stopped at the limit of {steps}"]
        if not ending.halted and self.idle_from is not None:
            lines[0] += f"; nothing changes from step {self.idle_from} on"
        if self.instance is not None:
            lines.append(verdict(self.instance, ending.memory))
        return lines

    def __str__(self) -> str:
        from nram.pictures.traces import trace_to_text

        return trace_to_text(self)

    def _repr_svg_(self) -> str:
        """What a notebook shows."""
        from nram.pictures.trace_svg import trace_to_svg

        return trace_to_svg(self)

    def _brief(self) -> str:
        where = f"{shortened(self.program.name, 40)} on {counted(len(self.start), 'cell')}"
        return f"of {where}: {'; '.join(self.outcome())}"

    def require_listable(self) -> None:
        """UsageError if the whole memory at every step would be too large."""
        if (len(self.steps) + 1) * len(self.start) > MAX_LISTED:
            raise UsageError(
                f"{len(self.steps)} steps of {len(self.start)} cells are too much for this form: "
                "give fewer with --max-steps, or a smaller memory"
            )


def verdict(instance: Instance, memory: Sequence[int]) -> str:
    """Whether the output cells of a memory are right, in words."""
    asked = instance.cells
    wrong = wrong_cells(memory, instance)
    if not wrong:
        return f"right: {'the output cell is' if len(asked) == 1 else f'all {len(asked)} output cells are'} as expected"
    shown = [f"cell {cell} holds {memory[cell]}, not {instance.output[cell]}" for cell in wrong[:5]]
    more = [f"{len(wrong) - 5} more"] if len(wrong) > 5 else []
    return f"WRONG in {len(wrong)} of {len(asked)} output cells: {'; '.join(shown + more)}"


def instance_to_json(instance: Instance, memory: Sequence[int]) -> dict[str, Any]:
    """What was expected, and whether the memory holds it."""
    right = not wrong_cells(memory, instance)
    return {"expected": instance.output, "cells": instance.cells, "right": right}


def record_trace(
    program: Program,
    memory: Any,
    max_steps: int | None = None,
    memory_size: int | None = None,
    instance: Instance | None = None,
) -> Trace:
    """Run a program on one memory and keep what happened. `instance` is the one that the memory comes from."""
    cells = prepare_memory(memory, memory_size)
    if cells.ndim != 1:
        raise UsageError("a trace is of one memory, not of a batch: give one")
    limit = check_max_steps(max_steps, len(cells))
    start = tuple(cells.tolist())
    machine = Machine(program, start)  # `trace` would copy the memory at every step
    steps: list[TracedStep] = []
    while not machine.halted and len(steps) < limit:
        if len(steps) == MAX_STEPS:
            raise UsageError(
                f"the run has not ended after {MAX_STEPS} steps, the most that a trace can hold: "
                "give fewer with --max-steps, or a smaller memory"
            )
        row = machine.choose()
        before = tuple(machine.registers), machine.state, machine.row
        reads, writes = _accesses(row, *machine.compute(row)[:2])
        steps.append(TracedStep(len(steps) + 1, *before, reads, writes))
    return Trace(program, start, tuple(steps), machine.ending(), limit, instance)


def _accesses(
    row: Row, arguments: list[list[int]], outputs: list[int]
) -> tuple[tuple[Access, ...], tuple[Access, ...]]:
    """What the row read and what it wrote."""
    reads, writes = [], []
    for operation, given, output in zip(row.operations, arguments, outputs, strict=True):
        match MODULES[operation.module].memory:
            case "reads":
                reads.append(Access(given[0], output))
            case "writes":
                writes.append(Access(given[0], given[1]))
    return tuple(reads), tuple(writes)
