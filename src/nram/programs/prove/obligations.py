"""What must be proven: obligations made from a program, the claim of its task and an invariant, and nothing else.

If all of them hold, then the claim holds for every n, every M and every input. Here is why. The invariant holds at the
start (*start*). If it holds at some place, then it holds at the place that follows, and the memory has its form there
(*to place ...*, *memory*); rows that no place stands for are never next (*never ...*). So it holds at every moment of
every run. Where a run halts, the output cells are right (*the end*). No cell changes except the listed ones
(*changes*). At every place fewer than T(n) steps were carried out (*steps*), so every run halts within T(n). For an
invariant that does not prove halting: the output cells are right at every place from T(n) steps on (*from T on*).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nram.limits import StepLimit
from nram.programs.ir import Program
from nram.programs.prove.instances import ground_instances, instances
from nram.programs.prove.invariant import (
    INDEX,
    TAIL,
    Invariant,
    first_place,
    is_about_every_k,
    register_variables,
)
from nram.programs.prove.step import Step, StepBuilder, row_condition, row_of
from nram.tasks.base import Task
from nram.tasks.claim import NOTHING_OUTSIDE, SIZE, VALUES_FIT, Assumption, N, always, memory
from nram.terms import (
    FALSE,
    TRUE,
    Term,
    between,
    both,
    call,
    calls,
    either,
    equal,
    negated,
    number,
    operators,
    smt,
    substituted,
    symbol,
    variable,
    variables,
)

ADDRESS = variable("x")
"""Any address: what is proven of it holds for all."""


@dataclass(frozen=True)
class Obligation:
    """The goals follow from the hypotheses."""

    name: str
    known: tuple[Term, ...]
    """What holds by the claim's assumptions, by the machine and by the step."""
    facts: tuple[Term, ...]
    """Of the invariant, at the place where the step begins. Of a fact about every k: those k that matter."""
    goals: tuple[Term, ...]
    target: int | None = None
    """The index of the place whose facts the goals are."""

    def to_smt(self) -> str:
        """As a file in SMT-LIB 2, for which the answer must be unsat."""
        terms = [*self.known, *self.facts, *self.goals]
        functions = dict.fromkeys(term.parts[0] for term in calls(terms))
        nonlinear = not operators(terms).isdisjoint(("times", "mod", "div"))
        lines = [f"; {self.name}", f"(set-logic {'QF_UFNIA' if nonlinear else 'QF_UFLIA'})"]
        lines += [f"(declare-fun {name} (Int) Int)" for name in functions]
        lines += [f"(declare-const {symbol(name)} Int)" for name in variables(terms)]
        lines += [f"(assert {smt(term)})" for term in (*self.known, *self.facts)]
        lines += [f"(assert {smt(negated(both(*self.goals)))})", "(check-sat)"]
        return "\n".join(lines) + "\n"


class Problem:
    """A program, and the claim that it must fulfil."""

    def __init__(self, program: Program, task: Task, limit: StepLimit):
        assert task.claim is not None
        self.program, self.task, self.limit = program, task, limit
        self.claim = task.claim()
        self.assumptions = (VALUES_FIT, NOTHING_OUTSIDE, always(task.min_complexity <= N), *self.claim.assumptions)
        self.bound = limit.per_item * N + limit.constant
        """T(n)"""

    def obligations(self, invariant: Invariant) -> Iterator[Obligation]:
        """All of them."""
        yield self.start(invariant)
        for index in range(len(invariant.places)):
            yield from self.at_place(invariant, index)

    def start(self, invariant: Invariant) -> Obligation:
        """All registers and counts are 0, and the memory is the input."""
        row = 0, self.program.row_for(0, [True] * len(self.program.registers))
        first = next((i for i, place in enumerate(invariant.places) if place == first_place(row)), None)
        values = dict.fromkeys([*register_variables(self.program), *invariant.visits], number(0))
        values |= {cell.value: memory(cell.address) for cell in invariant.cells}
        goals = [FALSE] if first is None else [substituted(fact, values) for fact in invariant.facts[first]]
        return self._obligation("start", [], (), goals, first)

    def at_place(self, invariant: Invariant, index: int) -> Iterator[Obligation]:
        """What must hold at a place, and after the step from there."""
        builder = StepBuilder(self.program, invariant)
        step = builder.step(index)
        facts = invariant.facts[index]
        name = f"place {index + 1}"
        known = [*self._machine(invariant), *step.definitions]
        row = row_of(self.program, invariant.places[index].row)
        if invariant.halts:
            yield self._obligation(f"{name}: steps", known, facts, [invariant.steps < self.bound])
        else:
            now = invariant.memory_now(ADDRESS, step.visits, step.cells)
            late = [*known, self._is_output(), invariant.steps >= self.bound]
            yield self._obligation(f"{name}: from T on", late, facts, [equal(now, self.claim.expected(ADDRESS))])
        if step.writes:
            yield self._changes(invariant, index, step)
        if row.halt:
            after = builder.memory_after(step, ADDRESS)
            goal = equal(after, self.claim.expected(ADDRESS))
            yield self._obligation(f"{name}: the end", [*known, self._is_output()], facts, [goal])
            return
        # Also where nothing is written: an array must not grow by itself.
        now = invariant.memory_now(ADDRESS, step.visits_after, step.cells_after)
        goal = equal(builder.memory_after(step, ADDRESS), now)
        if goal != TRUE:
            anywhere = between(0, ADDRESS, SIZE - 1)
            yield self._obligation(f"{name}: memory", [*known, anywhere], facts, [goal])
        yield from self._following(invariant, index, step, known)

    def changes_at(self, invariant: Invariant, index: int) -> Obligation | None:
        """That the step from a place writes to the listed ranges alone. None where it writes nothing."""
        step = StepBuilder(self.program, invariant).step(index)
        return self._changes(invariant, index, step) if step.writes else None

    def _changes(self, invariant: Invariant, index: int, step: Step) -> Obligation:
        known = [*self._machine(invariant), *step.definitions]
        return self._obligation(
            f"place {index + 1}: changes", known, invariant.facts[index], [_inside(invariant, step)]
        )

    def _following(self, invariant: Invariant, index: int, step: Step, known: list[Term]) -> Iterator[Obligation]:
        indices = {place: i for i, place in enumerate(invariant.places)}
        facts, after = invariant.facts[index], step.after()
        state = row_of(self.program, invariant.places[index].row).next_state
        for row in range(len(self.program.states[state])):
            condition = row_condition(self.program, (state, row), step.registers_after)
            if condition == FALSE:
                continue
            target = indices.get(invariant.places[index].then((state, row), invariant.history))
            if target is None:
                words = f"place {index + 1}: never row {row + 1}" + (f" of state {state}" if state else "")
                yield self._obligation(words, [*known, condition], facts, [FALSE])
            else:
                goals = [substituted(fact, after) for fact in invariant.facts[target]]
                words = f"place {index + 1}: to place {target + 1}"
                yield self._obligation(words, [*known, condition], facts, goals, target)

    def _machine(self, invariant: Invariant) -> list[Term]:
        """What holds in every machine: counts are not negative; registers and cells hold numbers below M."""
        values = [between(0, name, SIZE - 1) for name in register_variables(self.program)]
        values += [between(0, cell.value, SIZE - 1) for cell in invariant.cells]
        return [*values, *(count >= 0 for count in invariant.visits)]

    def _is_output(self) -> Term:
        return between(0, ADDRESS, SIZE - 1) & self.claim.is_output(ADDRESS)

    def _obligation(
        self, name: str, known: Iterable[Term], facts: tuple[Term, ...], goals: list[Term], target: int | None = None
    ) -> Obligation:
        """With the claim's assumptions at all cells that the terms mention.

        A fact about every k is used for the k that these cells suggest. As a goal it is about a k of which nothing else
        is known.
        """
        known = [term for term in known if term != TRUE]
        plain = [fact for fact in facts if not is_about_every_k(fact)]
        cells = calls([*known, *plain, *goals])
        facts = tuple(
            both(*instances(Assumption((INDEX,), fact), cells)) if fact not in plain else fact for fact in facts
        )
        tails = {term.parts[0] for term in calls([*known, *facts, *goals]) if TAIL.fullmatch(term.parts[0])}
        fit = [always(lambda i, name=name: between(0, call(name, i), SIZE - 1)) for name in sorted(tails)]
        assumed = ground_instances([*self.assumptions, *fit], [*known, *facts, *goals])
        return Obligation(name, (*assumed, *known), facts, tuple(goals), target)


def _inside(invariant: Invariant, step: Step) -> Term:
    """That every write goes to one of the listed ranges."""
    return both(
        *(
            either(*(between(change.first, address, change.last) for change in invariant.changes))
            for _, address, _ in step.writes
        )
    )
