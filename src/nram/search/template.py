"""The tables of a sketch: what each place of a table is, which are written, and which the search may change.

A table of a sketch has a row of genes for every row of the sketch, with just the operations that stand there. A row
whose body is a hole has a row of genes for every combination of flags under which it may apply, as a structure without
a sketch has. Conditions that are holes are further rows at the end of the table. Whatever the genes, the rows are tried
in their order: so `targets` say which row of genes a row of the sketch means under which flags.

Genes that are written have one value in all tables. The kernel changes the others alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from nram.errors import UsageError, shown
from nram.modules import MODULES, Module
from nram.programs.ir import CONSTANTS as CONSTANT_MODULES
from nram.programs.ir import Conditions, Constant, Operation, Output, Program, Register, Row, Value
from nram.programs.sketch import Hole, Sketch, SketchRow

CONSTANTS = len(CONSTANT_MODULES)
MOST_ROWS = 64  # of genes: the kernel keeps the rows that a run visited as bits of one word
MOST_REGISTERS = 10
MOST_SLOTS = 1000
WISHES: tuple[bool | None, ...] = (None, True, False)
"""What the genes of a condition mean, for each register: no condition, = 0, > 0."""


class Slot(NamedTuple):
    """A place for an operation in a row of genes."""

    modules: tuple[Module, ...]
    """One, or those from which the search chooses."""
    arguments: tuple[Value | Hole, ...] | None
    """None: they are holes."""
    written: int | None
    """Which of the operations that are written it is; None: one of those that may stand at a place."""


@dataclass(frozen=True)
class SlottedRow:
    """A row of the sketch, with the slots of its operations."""

    row: SketchRow
    state: int
    slots: tuple[Slot, ...]
    slot_of: tuple[int | None, ...]
    """Of each operation that is written; None: it is a constant."""


class Template:
    """The tables of a sketch, where a row may use these modules at a place for any operations."""

    def __init__(self, sketch: Sketch, sequence: Sequence[str]):
        """`sequence` are the modules of a place, in their order."""
        self.sketch = sketch
        self.registers, self.states = len(sketch.registers), len(sketch.states)
        if self.registers > MOST_REGISTERS:
            raise UsageError(f"a sketch of {self.registers} registers cannot be searched: at most {MOST_REGISTERS} can")
        unknown = [name for name in sequence if name not in MODULES]
        if unknown:
            raise UsageError(f"{shown(unknown[0])} is not a module")
        self.sequence = tuple(MODULES[name] for name in sequence)
        self.rows = [self._slotted(row, state) for state, rows in enumerate(sketch.states) for row in rows]
        self.count = max(1, *(len(row.slots) for row in self.rows))
        """Slots of a row. Rows with fewer have WRITEs at the end that are always absent."""
        if self.count > MOST_SLOTS:
            raise UsageError(
                f"a row of the sketch has room for {self.count} operations: at most {MOST_SLOTS} can be searched"
            )
        self.first_output = CONSTANTS + self.registers
        self.width = 3 * self.count + self.registers + 2
        self._find_targets()
        self.open = [index for index, row in enumerate(self.rows) if row.row.open_conditions]
        """The rows of the sketch whose conditions are genes: further rows of the table, in this order."""
        if not self.free.any():
            raise UsageError(
                "the holes of the sketch leave nothing to choose: it is a program; write it as one, and verify it"
            )

    def _slotted(self, row: SketchRow, state: int) -> SlottedRow:
        slots: list[Slot] = []
        slot_of: list[int | None] = []
        for index in range(len(row.operations) + 1):
            if index in row.places:
                slots += [Slot((module,), None, None) for module in self.sequence]
            for operation in row.operations[index : index + 1]:
                if operation.module in CONSTANT_MODULES:
                    slot_of.append(None)
                    continue
                slot_of.append(len(slots))
                slots.append(Slot(self._modules_for(operation.module, operation.arguments), operation.arguments, index))
        return SlottedRow(row, state, tuple(slots), tuple(slot_of))

    def _modules_for(self, name: str | None, arguments: Sequence[Value | Hole] | None) -> tuple[Module, ...]:
        """The modules that an operation may be of."""
        if name is not None:
            return (MODULES[name],)
        with_output = [module for module in dict.fromkeys(self.sequence) if module.memory != "writes"]
        found = [module for module in with_output if arguments is None or module.arity == len(arguments)]
        if not found:
            taking = "" if arguments is None else f" and takes {len(arguments)} arguments"
            raise UsageError(f"none of the modules has an output{taking}: name more by --modules")
        return tuple(found)

    # ---- rows of genes

    def _find_targets(self) -> None:
        """Give every row of the sketch its rows of genes: one, or one for all flags under which it may apply."""
        flags = 1 << self.registers
        self.targets = np.full((len(self.rows), flags), -1, np.int64)
        self.row_of_genes: list[int] = []
        """The row of the sketch that each row of genes belongs to."""
        self.first_genes: list[int] = []
        """The first row of genes of each row of the sketch."""
        taken = np.zeros((self.states, flags), bool)  # by a row whose conditions are written
        for index, one in enumerate(self.rows):
            wishes = [None if isinstance(wish, Hole) else wish for wish in one.row.when]
            may = self.flags_with(wishes) & ~taken[one.state]
            if not one.row.open_conditions:
                taken[one.state] |= may
            self.first_genes.append(len(self.row_of_genes))
            if one.row.anything:
                numbers = len(self.row_of_genes) + np.cumsum(may) - 1
                self.targets[index] = np.where(may, numbers, -1)
                self.row_of_genes += [index] * int(may.sum())
            else:
                self.targets[index] = np.where(may, len(self.row_of_genes), -1)
                self.row_of_genes.append(index)
        if len(self.row_of_genes) > MOST_ROWS:
            raise UsageError(
                f"the sketch has {len(self.row_of_genes)} rows, since a row with '?' as its only line counts for every "
                f"combination of flags: at most {MOST_ROWS} can be searched; use fewer registers, or write more of it"
            )

    def flags_with(self, when: Sequence[bool | None]) -> np.ndarray:
        """For each combination of flags, whether these conditions hold. Bit i of a combination: register i is 0."""
        numbers = np.arange(1 << self.registers)
        holds = np.ones(len(numbers), bool)
        for register, wish in enumerate(when):
            if wish is not None:
                holds &= (numbers >> register & 1 == 1) == wish
        return holds

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.row_of_genes) + len(self.open), self.width

    # ---- genes

    @cached_property
    def written(self) -> np.ndarray:
        """A table with the genes that are written. The others are 0."""
        table = np.zeros(self.shape, np.int16)
        for number, index in enumerate(self.row_of_genes):
            one = self.rows[index]
            for k, slot in enumerate(one.slots):
                known = [] if slot.arguments is None else [self._gene(one, value) for value in slot.arguments]
                table[number, 3 * k : 3 * k + len(known)] = known
                table[number, 3 * k + 2] = slot.written is not None
            for r, value in enumerate(one.row.registers):
                table[number, 3 * self.count + r] = self._gene(one, value)
            table[number, -2] = one.row.halt is True
            table[number, -1] = 0 if isinstance(one.row.next_state, Hole) else one.row.next_state
        for number, index in enumerate(self.open, len(self.row_of_genes)):
            for r, wish in enumerate(self.rows[index].row.when):
                table[number, r] = 0 if isinstance(wish, Hole) else WISHES.index(wish)
        return table

    @cached_property
    def free(self) -> np.ndarray:
        """Which genes of the table the search may change."""
        free = np.zeros(self.shape, bool)
        for number, index in enumerate(self.row_of_genes):
            one = self.rows[index]
            for k, slot in enumerate(one.slots):
                if slot.written is None or slot.arguments is None:
                    free[number, 3 * k : 3 * k + 2] = True
                else:
                    free[number, 3 * k : 3 * k + len(slot.arguments)] = [isinstance(a, Hole) for a in slot.arguments]
                free[number, 3 * k + 2] = slot.written is None or len(slot.modules) > 1
            for r, value in enumerate(one.row.registers):
                free[number, 3 * self.count + r] = isinstance(value, Hole)
            free[number, -2] = isinstance(one.row.halt, Hole)
            free[number, -1] = isinstance(one.row.next_state, Hole)
        for number, index in enumerate(self.open, len(self.row_of_genes)):
            free[number, : self.registers] = self.open_conditions(index) > 0
        return free

    def open_conditions(self, index: int) -> np.ndarray:
        """How many wishes each condition of a sketch's row has to choose from: 0, 2 or 3 of `WISHES`."""
        row = self.rows[index].row
        return np.array([2 if isinstance(w, Hole) else 3 * (row.any_when and w is None) for w in row.when])

    def _gene(self, one: SlottedRow, value: Value | Hole) -> int:
        match value:
            case Constant(literal):
                return literal
            case Register(register):
                return CONSTANTS + register
            case Output(output):
                name, slot = one.row.operations[output].module, one.slot_of[output]
                if slot is None or (name is not None and MODULES[name].memory == "writes"):
                    return CONSTANT_MODULES.get(name or "", 0)
                return self.first_output + slot
            case _:
                return 0

    @cached_property
    def slots(self) -> tuple[tuple[Slot, ...], ...]:
        """Of each row of genes, with the absent WRITEs at the end."""
        absent = Slot((MODULES["WRITE"],), (Constant(0), Constant(0)), None)
        rows = [self.rows[index].slots for index in self.row_of_genes]
        return tuple(slots + (absent,) * (self.count - len(slots)) for slots in rows)

    @cached_property
    def kinds(self) -> tuple[Module, ...]:
        """All modules that a row may use, each once."""
        return tuple(dict.fromkeys(module for slots in self.slots for slot in slots for module in slot.modules))

    def holds(self, genes: np.ndarray) -> bool:
        """Whether these numbers are a table of this sketch. The kernel relies on it, and checks nothing."""
        if genes.shape != self.shape or np.any((genes != self.written) & ~self.free):
            return False
        least, most = np.zeros((2, *self.shape), np.int64)
        for number, slots in enumerate(self.slots):
            for k, slot in enumerate(slots):
                most[number, 3 * k : 3 * k + 2] = self.first_output + k
                least[number, 3 * k + 2] = len(slot.modules) > 1
                most[number, 3 * k + 2] = 1 + len(slot.modules)
            most[number, 3 * self.count :] = self.first_output + self.count
            most[number, -2:] = 2, self.states
        most[len(self.slots) :] = len(WISHES)
        return bool(np.all((genes >= least) & (genes < most)))

    # ---- what was given

    @cached_property
    def given(self) -> tuple[int, int]:
        """How many genes that say something are written, and how many there are. A condition counts as one."""
        free = sum(int((self.open_conditions(index) > 0).sum()) for index in self.open)
        matter = len(self.rows) * self.registers
        for number, slots in enumerate(self.slots):
            one = self.rows[self.row_of_genes[number]]
            columns = [self.width - 2, *range(3 * self.count, 3 * self.count + self.registers)]
            columns += [self.width - 1] * (self.states > 1)
            for k, slot in enumerate(slots[: len(one.slots)]):
                columns += range(3 * k, 3 * k + max(module.arity for module in slot.modules))
                if slot.written is not None or slot.modules[0].memory == "writes":
                    columns.append(3 * k + 2)
            matter += len(columns)
            free += int(self.free[number, columns].sum())
        return matter - free, matter

    @cached_property
    def fillings(self) -> float:
        """The decimal logarithm of how many ways there are to fill the holes."""
        ways = 0.0
        for number, slots in enumerate(self.slots):
            for k, slot in enumerate(slots):
                values = self._values(slots, k)
                arguments = range(3 * k, 3 * k + max(module.arity for module in slot.modules))
                ways += sum(math.log10(values) for gene in arguments if self.free[number, gene])
                if self.free[number, 3 * k + 2]:
                    ways += math.log10(2 if slot.modules[0].memory == "writes" else len(slot.modules))
            updates = self.free[number, 3 * self.count : -2].sum()
            ways += updates * math.log10(self._values(slots, self.count))
            ways += self.free[number, -2] * math.log10(2) + self.free[number, -1] * math.log10(self.states)
        for index in self.open:
            ways += sum(math.log10(count) for count in self.open_conditions(index) if count)
        return ways

    def _values(self, slots: Sequence[Slot], k: int) -> int:
        """How many values an argument of slot `k` may be."""
        return self.first_output + sum(slot.modules[0].memory != "writes" for slot in slots[:k])

    # ---- the program of a table

    def conditions(self, genes: np.ndarray, index: int) -> Conditions:
        """When a row of the sketch applies."""
        if index not in self.open:
            return tuple(bool(wish) if wish is not None else None for wish in self.rows[index].row.when)
        chosen = genes[len(self.row_of_genes) + self.open.index(index)]
        return tuple(WISHES[int(gene)] for gene in chosen[: self.registers])

    def row_of(self, genes: np.ndarray) -> np.ndarray:
        """The row of genes for every state and combination of flags."""
        found = np.full((self.states, 1 << self.registers), -1, np.int64)
        for index, one in enumerate(self.rows):
            mine = self.flags_with(self.conditions(genes, index)) & (found[one.state] < 0)
            found[one.state][mine] = self.targets[index][mine]
        return found.reshape(-1)

    def program(self, genes: np.ndarray, **known) -> Program:
        """The program that a table represents: the sketch with its holes filled.

        A row whose body is a hole becomes a row for every combination of flags. Operations that the search put in and
        that nothing uses are left out.
        """
        states: list[list[Row]] = [[] for _ in range(self.states)]
        for index, one in enumerate(self.rows):
            when = self.conditions(genes, index)
            if not one.row.anything:
                states[one.state].append(self.filled_row(genes, self.first_genes[index], when))
                continue
            for flags in np.flatnonzero(self.flags_with(when) & (self.targets[index] >= 0)):
                full = tuple(bool(flags >> r & 1) for r in range(self.registers))
                states[one.state].append(self.filled_row(genes, int(self.targets[index, flags]), full))
        return Program(self.sketch.registers, tuple(map(tuple, states)), **known)

    def filled_row(self, genes: np.ndarray, number: int, when: Conditions) -> Row:
        """The row of a row of genes: what is written as it stands, and what the search has put into the holes."""
        one, line = self.rows[self.row_of_genes[number]], genes[number]
        slots, free = self.slots[number], self.free[number]
        live = self._live(one, line, free, slots)
        operations: list[Operation] = []
        at: dict[int, int] = {}  # of each slot, the operation that it has become
        at_written: dict[int, int] = {}

        def value(gene: int) -> Value:
            if gene < CONSTANTS:
                return Constant(int(gene))
            return (
                Register(int(gene) - CONSTANTS)
                if gene < self.first_output
                else Output(at[int(gene) - self.first_output])
            )

        def as_written(written: Value | Hole, gene: int) -> Value:
            if isinstance(written, Output):
                return Output(at_written[written.index])
            return value(gene) if isinstance(written, Hole) else written

        def put(k: int) -> None:
            slot = slots[k]
            module = _chosen(slot, int(line[3 * k + 2]))
            given = (slot.arguments or (Hole(), Hole()))[: module.arity]
            arguments = tuple(as_written(a, line[3 * k + j]) for j, a in enumerate(given))
            at[k] = len(operations)
            operations.append(Operation(module.name, arguments))

        k = 0
        for index, operation in enumerate(one.row.operations):
            slot = one.slot_of[index]
            while slot is not None and k < slot:
                if live[k]:
                    put(k)
                k += 1
            if slot is None:
                at_written[index] = len(operations)
                operations.append(Operation(operation.module or ""))
            elif operation.module is not None or live[slot]:
                at_written[index] = len(operations)
                put(slot)
            k = k if slot is None else slot + 1
        for rest in range(k, len(one.slots)):
            if live[rest]:
                put(rest)
        halt = bool(line[-2])
        new = []
        for r, written in enumerate(one.row.registers):
            gene = line[3 * self.count + r]
            new.append(Register(r) if halt and isinstance(written, Hole) else as_written(written, gene))
        return Row(when, tuple(operations), tuple(new), halt, one.state if halt and free[-1] else int(line[-1]))

    def _live(self, one: SlottedRow, line: np.ndarray, free: np.ndarray, slots: Sequence[Slot]) -> list[bool]:
        """Which slots matter: what is written, WRITEs that are present, and what these and the registers use."""
        live = [False] * self.count
        for r, written in enumerate(one.row.registers):
            if not (isinstance(written, Hole) and line[-2]):
                self._use(live, line[3 * self.count + r])
        for k in reversed(range(len(one.slots))):
            slot = slots[k]
            if slot.written is not None:
                live[k] |= len(slot.modules) == 1
            elif slot.modules[0].memory == "writes":
                live[k] = bool(line[3 * k + 2])
            if live[k]:
                for j in range(_chosen(slot, int(line[3 * k + 2])).arity):
                    self._use(live, line[3 * k + j])
        return live

    def _use(self, live: list[bool], gene: int) -> None:
        if gene >= self.first_output:
            live[int(gene) - self.first_output] = True


def _chosen(slot: Slot, gene: int) -> Module:
    """The module of a slot; the third gene of a hole numbers them from 1."""
    return slot.modules[gene - 1 if len(slot.modules) > 1 else 0]
