"""The circuit of a row of a program: registers before and after the step, modules, and the wires between them.

As in the paper, operations whose output is not used are left out, and so are registers that are neither read nor
changed. The modules ZERO, ONE and TWO appear as constants.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

from nram.errors import UsageError
from nram.modules import MemoryUse
from nram.programs.ir import (
    CONSTANTS,
    MODULES,
    Constant,
    Operation,
    Output,
    Program,
    Register,
    Row,
    Value,
    condition_in_words,
)


@dataclass(frozen=True)
class Input:
    """An input of a part: a wire from another part, or a constant."""

    source: int | None
    constant: int = 0
    label: str = ""


@dataclass(frozen=True)
class Part:
    """A register before or after the step, or a module."""

    kind: Literal["before", "module", "after"]
    name: str
    index: int
    """Of the register, or of the operation in its row."""
    inputs: tuple[Input, ...] = ()
    memory: MemoryUse = "nothing"
    turn: int | None = None
    """The position of this access to memory among all of the row, where their order could be misread."""
    kept: bool = False
    """A register that the row reads and leaves as it is."""


@dataclass(frozen=True)
class Circuit:
    """The circuit of one row. Wires lead from earlier parts to later ones."""

    label: str
    title: str
    ending: str
    halts: bool
    parts: tuple[Part, ...]
    remarks: tuple[str, ...]


def circuit_of(program: Program, state: int, row: int) -> Circuit:
    """The circuit of a row. States and rows count from 0."""
    if not 0 <= state < len(program.states):
        raise UsageError(f"there is no state {state}: the program has {_up_to(len(program.states), 'state')}")
    rows = program.states[state]
    if not 0 <= row < len(rows):
        raise UsageError(f"state {state} has no row {row + 1}: it has {_up_to(len(rows), 'row', 1)}")
    return _Builder(program, rows[row]).circuit(program, state, row)


def _up_to(count: int, what: str, first: int = 0) -> str:
    return f"only {what} {first}" if count == 1 else f"{what}s {first} to {count - 1 + first}"


class _Builder:
    """Collects the parts of one row, from what it changes back to what that depends on."""

    def __init__(self, program: Program, row: Row):
        self.row = row
        self.indices: dict[Register | Output, int] = {}
        self.parts: list[Part] = []
        changed = [i for i, value in enumerate(row.registers) if value != Register(i)]
        live = _live_operations(row, changed)
        read = {
            argument.index
            for index in live
            for argument in row.operations[index].arguments
            if isinstance(argument, Register)
        }
        read |= {value.index for i in changed if isinstance(value := row.registers[i], Register)}
        self.shown = [i for i in range(len(program.registers)) if i in read or i in changed]
        self.dropped = sum(operation.module not in CONSTANTS for operation in row.operations)

        for i in sorted(read):
            self.indices[Register(i)] = len(self.parts)
            self.parts.append(Part("before", program.registers[i], i))
        turns = _turns(row, live)
        for index in live:
            operation = row.operations[index]
            if operation.module in CONSTANTS:
                continue
            self.dropped -= 1
            module = MODULES[operation.module]
            names = module.arguments if _labelled(operation.module) else [""] * module.arity
            inputs = tuple(self._input(a, name) for a, name in zip(operation.arguments, names, strict=True))
            self.indices[Output(index)] = len(self.parts)
            self.parts.append(Part("module", operation.module, index, inputs, module.memory, turns.get(index)))
        for i in self.shown:
            kept = i not in changed
            self.parts.append(Part("after", program.registers[i], i, (self._input(row.registers[i]),), kept=kept))

    def _input(self, value: Value, label: str = "") -> Input:
        match value:
            case Constant(constant):
                return Input(None, constant, label)
            case Output(index) if self.row.operations[index].module in CONSTANTS:
                return Input(None, CONSTANTS[self.row.operations[index].module], label)
            case _:
                return Input(self.indices[value], label=label)

    def circuit(self, program: Program, state: int, row: int) -> Circuit:
        remarks = []
        idle = [name for i, name in enumerate(program.registers) if i not in self.shown]
        tested = [name for name, zero in zip(program.registers, self.row.when, strict=True) if zero is not None]
        for names, what in (
            ([name for name in idle if name in tested], "only tested."),
            ([name for name in idle if name not in tested], "neither read nor changed."),
        ):
            if self.shown and names:
                remarks.append(f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} {what}")
        if self.dropped:
            what = "operation" if self.dropped == 1 else "operations"
            whose = "whose output is" if self.dropped == 1 else "whose outputs are"
            remarks.append(f"{self.dropped} {what} {whose} not used: left out.")
        if any(part.turn is not None for part in self.parts):
            remarks.append("Numbers in corners: the order of the accesses to memory.")
        going = self.row.next_state != state
        return Circuit(
            label=f"row {row + 1}" if len(program.states) == 1 else f"state {state}, row {row + 1}",
            title=condition_in_words(program.registers, program.states[state], row),
            ending="halt" if self.row.halt else f"state {self.row.next_state}" if going else "",
            halts=self.row.halt,
            parts=tuple(self.parts),
            remarks=tuple(remarks),
        )


def _live_operations(row: Row, changed: list[int]) -> list[int]:
    """The indices of the operations that write, or whose outputs reach a write or a register."""
    needed = {value.index for i in changed if isinstance(value := row.registers[i], Output)}
    for index in reversed(range(len(row.operations))):
        operation = row.operations[index]
        if _writes(operation) or index in needed:
            needed.add(index)
            needed |= {argument.index for argument in operation.arguments if isinstance(argument, Output)}
    return sorted(needed)


def _writes(operation: Operation) -> bool:
    return MODULES[operation.module].memory == "writes"


def _turns(row: Row, live: list[int]) -> dict[int, int]:
    """The accesses to memory, counted from 1. Empty if no access follows a write: their order is then plain."""
    accesses = [index for index in live if MODULES[row.operations[index].module].memory != "nothing"]
    if not any(_writes(row.operations[index]) for index in accesses[:-1]):
        return {}
    return {index: turn for turn, index in enumerate(accesses, start=1)}


@cache
def _labelled(name: str) -> bool:
    """Whether the wires into a module need labels: READ, WRITE, and modules for which the order matters."""
    module = MODULES[name]
    if module.memory != "nothing":
        return True
    if module.arity != 2 or not module.built_in:
        return module.arity == 2  # user-defined: the order may matter for other M than the one tried
    size = 3
    return any(module.integer(size, a, b) != module.integer(size, b, a) for a in range(size) for b in range(size))
