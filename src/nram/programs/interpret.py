"""The reference interpreter: a program on Python integers, one step after another, as the definition reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nram.programs.ir import MODULES, Constant, Operation, Output, Program, Register, Row, Value


@dataclass(frozen=True)
class Step:
    """What happened in one timestep. Memory and registers are those at its beginning, as in the paper's tables."""

    number: int
    """From 1."""
    memory: list[int]
    registers: list[int]
    state: int
    row: int
    """Which of the state's rows was carried out."""
    arguments: list[list[int]]
    """Of each operation of that row."""
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
    halted = False
    steps = 0
    while not halted and steps < max_steps:
        row = machine.choose()
        machine.compute(row)
        halted = row.halt
        steps += 1
    return Ending(machine.memory, machine.registers, steps, halted)


def trace(program: Program, memory: Sequence[int], max_steps: int) -> Iterator[Step | Ending]:
    """The same, telling every step; the ending comes last. The memory is copied at every step."""
    machine = Machine(program, memory)
    halted = False
    steps = 0
    while not halted and steps < max_steps:
        row = machine.choose()
        before = list(machine.memory), list(machine.registers), machine.state, machine.row
        arguments, outputs = machine.compute(row)
        halted = row.halt
        steps += 1
        yield Step(steps, *before, arguments, outputs)
    yield Ending(machine.memory, machine.registers, steps, halted)


class Machine:
    """A program amidst its run."""

    def __init__(self, program: Program, memory: Sequence[int]):
        self.program = program
        self.memory = list(memory)
        self.registers = [0] * len(program.registers)
        self.state = 0
        self.row = 0
        self.chosen: dict[tuple[int, tuple[bool, ...]], int] = {}  # the table as far as it was needed

    def choose(self) -> Row:
        """The row that applies now."""
        zero = tuple(value == 0 for value in self.registers)
        found = self.chosen.get((self.state, zero))
        if found is None:
            found = self.chosen[self.state, zero] = self.program.row_for(self.state, zero)
        self.row = found
        return self.program.states[self.state][found]

    def compute(self, row: Row) -> tuple[list[list[int]], list[int]]:
        """Carry out a row: every operation's arguments and output."""
        arguments: list[list[int]] = []
        outputs: list[int] = []
        for operation in row.operations:
            given = [self._value(argument, outputs) for argument in operation.arguments]
            arguments.append(given)
            outputs.append(self._apply(operation, given))
        self.registers = [self._value(value, outputs) for value in row.registers]
        self.state = row.next_state
        return arguments, outputs

    def _apply(self, operation: Operation, given: list[int]) -> int:
        module = MODULES[operation.module]
        if module.memory == "nothing":
            return module.integer(len(self.memory), *given)
        output = module.integer(self.memory, *given)
        return 0 if module.memory == "writes" else output

    def _value(self, value: Value, outputs: list[int]) -> int:
        match value:
            case Register(index):
                return self.registers[index]
            case Output(index):
                return outputs[index]
            case Constant(number):
                return number
