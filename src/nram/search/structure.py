"""The structure of the programs that are searched, and the tables of small integers that represent them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from nram.errors import UsageError
from nram.modules import MODULE_NAMES, Module
from nram.programs.ir import CONSTANTS as CONSTANT_MODULES
from nram.programs.ir import MODULES, Constant, Operation, Output, Program, Register, Row, Value
from nram.programs.sketch import Sketch
from nram.programs.sketch_text import sketch_from_text
from nram.search.template import MOST_ROWS, Template

CONSTANTS = len(CONSTANT_MODULES)  # the first values; then come the registers, then the operations' outputs
GENES_PER_OPERATION = 3
MOST_REPEATS = 8


@dataclass(frozen=True)
class Structure:
    """Registers, states, and the modules of a row in their order. The constants 0, 1 and 2 need no module."""

    registers: int
    repeats: int = 1
    states: int = 1
    modules: tuple[str, ...] = MODULE_NAMES
    sketch: str | None = None
    """The text of a sketch: the programs that fill its holes. Then its rows are not those of the flags."""

    def __post_init__(self) -> None:
        if self.registers < 1 or self.states < 1 or not 1 <= self.repeats <= MOST_REPEATS:
            raise UsageError(
                f"{self} cannot be searched: at least one register and state, and modules 1 to {MOST_REPEATS} times"
            )
        if self.template is not None:  # it has refused what cannot be searched
            return
        rows = self.rows if self.registers < 64 else "too many"  # rows are a power of 2 to that
        if isinstance(rows, str) or rows > MOST_ROWS:
            raise UsageError(
                f"{self} has {rows} rows: at most {MOST_ROWS} can be searched; use fewer registers or states"
            )

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone, for another process: what follows from them holds modules, which are known by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def sequence(self) -> tuple[str, ...]:
        """The module names of a row's operations, in their order."""
        return tuple(name for name in self.modules if name not in CONSTANT_MODULES) * self.repeats

    @cached_property
    def template(self) -> Template | None:
        """What is written in the tables of the sketch, and what is free."""
        return None if self.sketch is None else Template(sketch_from_text(self.sketch), self.sequence)

    @property
    def rows(self) -> int:
        return self.states << self.registers if self.template is None else self.template.shape[0]

    @property
    def width(self) -> int:
        if self.template is not None:
            return self.template.width
        return GENES_PER_OPERATION * len(self.sequence) + self.registers + 2

    @property
    def free_genes(self) -> int:
        """How many genes the search may change."""
        return self.rows * self.width if self.template is None else int(self.template.free.sum())

    @cached_property
    def kinds(self) -> tuple[Module, ...]:
        """The modules that a row may use, each once."""
        if self.template is not None:
            return self.template.kinds
        return tuple(MODULES[name] for name in dict.fromkeys(self.sequence))

    @property
    def operations(self) -> tuple[Module, ...]:
        """The module of every operation of a row."""
        return tuple(MODULES[name] for name in self.sequence)

    def __str__(self) -> str:
        states = f", {self.states} states" if self.states > 1 else ""
        modules = "" if self.modules == MODULE_NAMES else f" of {len(self.modules)} modules"
        return f"R{self.registers} x{self.repeats}{modules}{states}{'' if self.sketch is None else ', a sketch'}"

    def holds(self, genes: np.ndarray) -> bool:
        """Whether these numbers are a table of this structure. The kernel relies on it, and checks nothing."""
        if self.template is not None:
            return self.template.holds(genes)
        if genes.shape != (self.rows, self.width):
            return False
        first_output = CONSTANTS + self.registers
        most = np.full(self.width, first_output + len(self.sequence))
        for k in range(len(self.sequence)):
            most[3 * k : 3 * k + 3] = first_output + k, first_output + k, 2
        most[-2:] = 2, self.states
        return bool(np.all((genes >= 0) & (genes < most)))

    def program(self, genes: np.ndarray, **known) -> Program:
        """The program that a table represents, not simplified: with dead operations, and a row for all flags."""
        if self.template is not None:
            return self.template.program(genes, **known)
        names = tuple(f"r{i + 1}" for i in range(self.registers))
        rows = [self._row(genes[index], index) for index in range(self.rows)]
        size = 1 << self.registers
        states = tuple(tuple(rows[state * size : (state + 1) * size]) for state in range(self.states))
        return Program(names, states, **known)

    def _row(self, genes: np.ndarray, index: int) -> Row:
        positions: dict[int, int] = {}  # of each operation that is present, among those
        operations: list[Operation] = []

        def value(gene: int) -> Value:
            if gene < CONSTANTS:
                return Constant(int(gene))
            if gene < CONSTANTS + self.registers:
                return Register(int(gene) - CONSTANTS)
            return Output(positions[int(gene) - CONSTANTS - self.registers])

        for k, name in enumerate(self.sequence):
            first, second, present = genes[3 * k : 3 * k + 3]
            module = MODULES[name]
            if module.memory == "writes" and not present:
                continue
            arguments = (value(first), value(second))[: module.arity]
            positions[k] = len(operations)
            operations.append(Operation(name, arguments))
        updates = 3 * len(self.sequence)
        new = tuple(value(gene) for gene in genes[updates : updates + self.registers])
        when = tuple(bool(index >> r & 1) for r in range(self.registers))
        return Row(when, tuple(operations), new, bool(genes[-2]), int(genes[-1]))


def sketched(sketch: Sketch, repeats: int = 1, modules: tuple[str, ...] = MODULE_NAMES) -> Structure:
    """The programs that fill a sketch. The holes for modules and operations are filled with these modules."""
    return Structure(len(sketch.registers), repeats, len(sketch.states), modules, str(sketch))


def embed(program: Program) -> tuple[Structure, np.ndarray]:
    """The smallest structure that can hold a program, and the table that represents it there."""
    registers, states = len(program.registers), len(program.states)
    user_defined = tuple(module.name for module in program.modules if not module.built_in)
    for repeats in range(1, MOST_REPEATS + 1):
        structure = Structure(registers, repeats, states, (*user_defined, *MODULE_NAMES))
        if structure.rows > MOST_ROWS:
            raise UsageError(
                f"{program.name} has {structure.rows} rows when its flags are spelled out, and at most {MOST_ROWS} can "
                "be searched: 'nram simplify' may help"
            )
        genes = table_of(program, structure)
        if genes is not None:
            return structure, genes
    raise UsageError(
        f"{program.name} has a row that needs the modules more than {MOST_REPEATS} times: simplify it first"
    )


def table_of(program: Program, structure: Structure, others: np.ndarray | None = None) -> np.ndarray | None:
    """The table that represents a program of no more registers and states in this structure; None: it has no room.

    Registers that the program does not have keep their value. Operations that it does not have are as in `others`.
    """
    if others is None:
        others = np.zeros((structure.rows, structure.width), np.int16)
    rows = [_row_of(program, structure, index, genes) for index, genes in enumerate(others.tolist())]
    return None if None in rows else np.array(rows, np.int16)


def _row_of(program: Program, structure: Structure, index: int, genes: list[int]) -> list[int] | None:
    """One row of the table, whose other operations are in `genes`. Every operation gets the first place for it."""
    state, flags = divmod(index, 1 << structure.registers)
    zero = tuple(bool(flags >> r & 1) for r in range(len(program.registers)))
    rows = program.states[min(state, len(program.states) - 1)]
    row = rows[program.row_for(min(state, len(program.states) - 1), zero)]
    first_output, count = CONSTANTS + structure.registers, len(structure.sequence)
    outputs: list[int] = []  # the gene that means each operation's output
    free = set(range(count))
    after_write = after_access = 0  # the first places behind the last WRITE, and behind the last READ or WRITE

    def gene(value: Value) -> int:
        match value:
            case Constant(literal):
                return literal
            case Register(register):
                return CONSTANTS + register
            case Output(output):
                return outputs[output]

    for k, name in enumerate(structure.sequence):
        if MODULES[name].memory == "writes":
            genes[3 * k + 2] = 0
    for operation in row.operations:
        if operation.module in CONSTANT_MODULES:
            outputs.append(CONSTANT_MODULES[operation.module])
            continue
        memory = MODULES[operation.module].memory
        arguments = [gene(argument) for argument in operation.arguments]
        least = max([0, *(argument - first_output + 1 for argument in arguments)])
        if memory != "nothing":
            least = max(least, after_access if memory == "writes" else after_write)
        places = (k for k in range(least, count) if k in free and structure.sequence[k] == operation.module)
        k = next(places, None)
        if k is None:
            return None
        free.remove(k)
        if memory != "nothing":
            after_access = max(after_access, k + 1)
            after_write = k + 1 if memory == "writes" else after_write
        genes[3 * k : 3 * k + 3] = [*(*arguments, 0, 0)[:2], 1]
        outputs.append(0 if memory == "writes" else first_output + k)
    updates = [*map(gene, row.registers)]
    kept = [CONSTANTS + r for r in range(len(updates), structure.registers)]
    genes[3 * count :] = [*updates, *kept, int(row.halt), row.next_state]
    return genes
