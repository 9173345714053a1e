"""One row carried out on terms, with the memory of an invariant."""

from __future__ import annotations

from dataclasses import dataclass, field

from nram.modules import Module
from nram.programs.ir import Program, Row, carry_out, emitted
from nram.programs.prove.invariant import INDEX, Invariant, RowId, register_variables
from nram.tasks.claim import SIZE
from nram.terms import Term, both, choose, equal, negated, number, substituted, variable


@dataclass
class Step:
    """A step from a place: values before and after it. Every intermediate value has a name and a definition."""

    visits: list[Term]
    registers: list[Term]
    cells: list[Term]
    definitions: list[Term] = field(default_factory=list)
    writes: list[tuple[int, Term, Term]] = field(default_factory=list)
    """Operations, addresses and values, in order."""
    visits_after: list[Term] = field(default_factory=list)
    registers_after: list[Term] = field(default_factory=list)
    cells_after: list[Term] = field(default_factory=list)

    def after(self) -> dict[Term, Term]:
        """The values after the step, in place of those before it."""
        before = [*self.visits, *self.registers, *self.cells]
        return dict(zip(before, [*self.visits_after, *self.registers_after, *self.cells_after], strict=True))

    def written(self, address: Term, before: Term) -> Term:
        """What a cell holds after the writes so far."""
        for _, pointer, value in self.writes:
            before = choose(equal(address, pointer), value, before)
        return before


class StepBuilder:
    """Carries out rows on terms. It is a builder of `nram.modules`."""

    size = SIZE

    def __init__(self, program: Program, invariant: Invariant):
        self.program = program
        self.invariant = invariant

    def step(self, index: int) -> Step:
        """The step from the place with this index."""
        invariant = self.invariant
        cells = [cell.value for cell in invariant.cells]
        self.now = Step(invariant.visits, register_variables(self.program), cells)
        self.operations = 0
        done = carry_out(row_of(self.program, invariant.places[index].row), self._register, self._apply, number)
        now = self.now
        now.registers_after = done.registers
        now.visits_after = [count + 1 if i == index else count for i, count in enumerate(now.visits)]
        now.definitions += self._recorded(index)
        now.cells_after = [now.written(cell.address, cell.value) for cell in invariant.cells]
        return now

    def _recorded(self, index: int) -> list[Term]:
        """The k-th value that is written to an array is called by this name from now on."""
        found = []
        for number_of_array, array in enumerate(self.invariant.arrays):
            k = array.written(self.now.visits)
            values = [value for operation, _, value in self.now.writes if (index, operation) in array.writers]
            found += [equal(substituted(array.tail(number_of_array), {INDEX: k}), value) for value in values]
        return found

    def memory_after(self, step: Step, address: Term) -> Term:
        """What a cell holds after the step, by what it held before and the writes of the step."""
        return step.written(address, self.invariant.memory_now(address, step.visits, step.cells))

    def _register(self, index: int) -> Term:
        return self.now.registers[index]

    def _apply(self, module: Module, arguments: list[Term]) -> Term:
        self.operations += 1
        value = emitted(self, module, arguments)
        if value.op in ("int", "var"):
            return value
        name = variable(f"o{self.operations}")
        self.now.definitions.append(equal(name, value))
        return name

    # ---- the builder

    def number(self, literal: int) -> Term:
        return number(literal)

    def add(self, a: Term, b: Term) -> Term:
        return a + b

    def sub(self, a: Term, b: Term) -> Term:
        return a - b

    def multiply(self, a: Term, b: Term) -> Term:
        return Term("mod", (Term("times", (a, b)), SIZE))

    def divide(self, a: Term, b: Term) -> Term:
        return choose(equal(b, 0), 0, Term("div", (a, b)))

    def within(self, value: Term) -> Term:
        return choose((number(0) <= value) & (value < SIZE), value, 0)

    def less(self, a: Term, b: Term) -> Term:
        return a < b

    def equal(self, a: Term, b: Term) -> Term:
        return equal(a, b)

    def choose(self, condition: Term, yes: Term, no: Term) -> Term:
        return choose(condition, yes, no)

    def read(self, pointer: Term) -> Term:
        return self.memory_after(self.now, pointer)

    def write(self, pointer: Term, value: Term) -> None:
        self.now.writes.append((self.operations - 1, pointer, value))


def row_of(program: Program, row: RowId) -> Row:
    return program.states[row[0]][row[1]]


def row_condition(program: Program, row: RowId, registers: list[Term]) -> Term:
    """That this row is the first of its state that applies."""
    conditions = [_applies(one, registers) for one in program.states[row[0]][: row[1] + 1]]
    return both(*(negated(one) for one in conditions[:-1]), conditions[-1])


def _applies(row: Row, registers: list[Term]) -> Term:
    parts = [(equal(r, 0), wanted) for r, wanted in zip(registers, row.when, strict=True) if wanted is not None]
    return both(*(zero if wanted else negated(zero) for zero, wanted in parts))
