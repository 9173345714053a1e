"""Guess which cells around pointers are never larger than others, and how far the pointers go.

Some programs go on after their work is done, and then most of that is no longer true. So the facts are about the
*phase* in which the next value that goes to an array is one that the invariant knows.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nram.modules import MODULES
from nram.programs.ir import Output, Program, Register, Row, Value
from nram.programs.prove.invariant import INDEX, Array, register_variables
from nram.tasks.claim import SIZE, N, memory
from nram.terms import INVALID, TRUE, Functions, Term, both, evaluated, implies, number, substituted

FARTHEST = 4  # from a bound to the last value that a pointer has

Columns = Mapping[Term, np.ndarray]


def phase_of(arrays: list[Array], visits: list[Term]) -> Term:
    """That the next values are those that the invariant knows."""
    known = (array for array in arrays if array.value.op == "if")
    return both(*(substituted(array.value.parts[0], {INDEX: array.written(visits)}) for array in known))


def read_registers(program: Program) -> set[Term]:
    """The registers from which addresses for reading come, also those that are moved to such a register."""
    names = register_variables(program)
    rows = [row for rows in program.states for row in rows]
    found: set[int] = set()
    for row in rows:
        for operation in row.operations:
            if MODULES[operation.module].memory == "reads":
                found |= _sources(row, operation.arguments[0])
    while True:
        moved = {
            value.index
            for row in rows
            for i, value in enumerate(row.registers)
            if i in found and isinstance(value, Register)
        }
        if moved <= found:
            return {names[i] for i in found}
        found |= moved


def _sources(row: Row, value: Value) -> set[int]:
    """The registers of which a value is computed, without what comes from the memory."""
    if isinstance(value, Register):
        return {value.index}
    if not isinstance(value, Output) or MODULES[row.operations[value.index].module].memory != "nothing":
        return set()
    return set().union(*(_sources(row, one) for one in row.operations[value.index].arguments))


class Compared:
    """The facts of one place."""

    def __init__(self, phase: Term, columns: Columns, functions: Functions):
        count = len(next(iter(columns.values())))
        self.functions, self.known = functions, dict(columns)
        self.count = count
        self.during = self._values(phase)
        self.columns = columns
        self.phase = TRUE if self.during.all() else phase

    def _values(self, term: Term) -> np.ndarray:
        return np.broadcast_to(evaluated(term, {}, self.functions, self.known), self.count)

    def bounds(self, pointers: Mapping[Term, Term], claimed: list[Term]) -> list[Term]:
        """How pointers stay below or above n, M and the numbers of the claim."""
        if not self.during.any():
            return []
        ends = [N, SIZE, *claimed, *(N - name for name in claimed)]
        facts = []
        for name in pointers:
            column = self.columns[name][self.during]
            for end in ends if np.ptp(column) else ():
                against = self._values(end)[self.during]
                for small, large, a, b in ((name, end, column, against), (end, name, against, column)):
                    least = int((b - a).min())
                    if abs(least) <= FARTHEST:
                        facts.append(implies(self.phase, small + least <= large))
        return facts

    def cells(self, pointers: Mapping[Term, Term], others: list[Term]) -> list[Term]:
        """Which of the cells around pointers, and of other values, are never larger than others.

        The cell before a pointer counts only once the pointer has moved.
        """
        start = {name: number(0) for name in self.columns if name.op == "var" and name.parts[0].startswith("visits")}
        values = [(name, name, TRUE, self.during, self.columns[name]) for name in others]
        for pointer in dict.fromkeys(pointers.values()):
            first = substituted(pointer, start)
            # A pointer that is set in the first visit has not moved then.
            for offset, guard in ((0, TRUE), (1, TRUE), (-1, pointer > first), (-1, pointer > first + 1)):
                holds = self._values(guard) & self.during
                cell = memory(pointer + offset)
                found = self._values(cell)
                if holds.any() and (found[holds] > INVALID // 2).all() and np.ptp(found[holds]):
                    values.append((pointer, cell, guard, holds, found))
        facts: dict[Term, Term] = {}
        for pointer_a, a, guard_a, holds_a, values_a in values:
            for pointer_b, b, guard_b, holds_b, values_b in values:
                both_hold = holds_a & holds_b
                if pointer_a != pointer_b and both_hold.any() and (values_a <= values_b)[both_hold].all():
                    facts.setdefault(a <= b, implies(both(self.phase, guard_a, guard_b), a <= b))
        return list(facts.values())
