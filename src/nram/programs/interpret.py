"""The reference interpreter: it runs a program on Python integers, step by step, as the definition says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nram.modules import Module
from nram.programs.ir import Flags, Performed, Program, Row, carry_out


@dataclass(frozen=True)
class Step:
    """What happened in one timestep. Memory and registers are those at its start, as in the paper's tables."""

    number: int
    """From 1."""
    memory: list[int]
    registers: list[int]
    state: int
    row: int
    """The index of the row that was carried out, among those of the state."""
    arguments: list[list[int]]
    """For each operation of that row."""
    outputs: list[int]


@dataclass(frozen=True)
class Ending:
    """How a run ended."""

    memory: list[int]
    registers: list[int]
    steps: int
    halted: bool


def interpret(program: Program, memory: Sequence[int], max_steps: int) -> Ending:
    """Run until the program halts, at most `max_steps` steps. The memory is one of `prepare_memory`."""
    machine = Machine(program, memory)
    while not machine.halted and machine.steps < max_steps:
        machine.compute(machine.choose())
    return machine.ending()


def trace(program: Program, memory: Sequence[int], max_steps: int) -> Iterator[Step | Ending]:
    """Run like `interpret`, and yield every step, then the ending. The memory is copied at every step."""
    machine = Machine(program, memory)
    while not machine.halted and machine.steps < max_steps:
        row = machine.choose()
        before = list(machine.memory), list(machine.registers), machine.state, machine.row
        arguments, outputs, _ = machine.compute(row)
        yield Step(machine.steps, *before, arguments, outputs)
    yield machine.ending()


class Machine:
    """A program in the middle of a run."""

    def __init__(self, program: Program, memory: Sequence[int]):
        self.program = program
        self.memory = list(memory)
        self.registers = [0] * len(program.registers)
        self.state = 0
        self.row = 0
        self.steps = 0
        self.halted = False
        self._rows: dict[tuple[int, Flags], int] = {}  # the table, as far as it was needed

    @property
    def flags(self) -> Flags:
        return tuple([value == 0 for value in self.registers])

    def choose(self) -> Row:
        """The row that applies now."""
        key = self.state, self.flags
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = self.program.row_for(*key)
        self.row = row
        return self.program.states[self.state][self.row]

    def compute(self, row: Row) -> Performed:
        """Carry out a row: its arguments and outputs."""
        done = carry_out(row, self.registers.__getitem__, self._apply, int)
        self.registers = done.registers
        self.state = row.next_state
        self.steps += 1
        self.halted = row.halt
        return done

    def ending(self) -> Ending:
        return Ending(self.memory, self.registers, self.steps, self.halted)

    def _apply(self, module: Module, arguments: list[int]) -> int:
        if module.memory == "nothing":
            return module.integer(len(self.memory), *arguments)
        output = module.integer(self.memory, *arguments)
        return 0 if module.memory == "writes" else output
