"""The certificates of the zoo, evaluated along real runs: nothing in their invariants and obligations is false there.

The solvers prove that an obligation follows from what it assumes. This shows that what it assumes is true: of inputs,
of the machine, and of a step as the interpreter carries it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from random import Random
from typing import Any

import numpy as np
import pytest

from nram.extensions import get_task
from nram.programs.interpret import Machine
from nram.programs.ir import Constant
from nram.programs.library import zoo_entries
from nram.programs.prove import Certificate, load_certificate
from nram.programs.prove.invariant import INDEX, first_place, register_variables
from nram.programs.prove.obligations import ADDRESS, Problem
from nram.programs.prove.step import StepBuilder
from nram.tasks import Task
from nram.terms import Term, both, equal, evaluated, number, variable

SIZES = 6
MOST = 250  # moments of a place
SLOW = ("merge@trained", "merge@searched", "reverse@trained", "copy@trained")


@dataclass(frozen=True)
class Moment:
    """A run before a step, in the words of the certificate."""

    instance: int
    values: dict[str, int]
    """Of all variables."""
    memory: list[int]


class Runs:
    """What is false in a certificate along runs of its program."""

    def __init__(self, certificate: Certificate, task: Task):
        assert task.claim is not None
        self.certificate, self.claim = certificate, task.claim()
        self.invariant, self.program = certificate.invariant, certificate.program
        self.problem = Problem(self.program, task, certificate.limit)
        self.rng = Random(0)
        self.indices = {place: i for i, place in enumerate(self.invariant.places)}
        self.steps: list[list[tuple[Moment, Moment | None, int | None]]] = [[] for _ in self.indices]
        """From each place: a moment, the one after it, and the place of that."""
        self.lists: dict[str, list[list[int]]] = {}
        """Of each instance, the values of the functions."""
        self.false: dict[str, None] = {}
        self.evaluated: dict[str, int] = {}
        """How often the goals of each obligation were looked at."""
        for instance, (start, n) in enumerate(inputs(task, self.rng)):
            self._run(instance, start, n)
        self.tables = {name: padded(lists) for name, lists in self.lists.items()}
        for index in range(len(self.indices)):
            self._look_at(index)

    # ---- runs

    def _run(self, instance: int, start: list[int], n: int) -> None:
        numbers = {"n": n, "M": len(start)} | {name: value(start, n) for name, value in self.claim.numbers.items()}
        lists = {"memory": list(start)}
        lists |= {name: list(values(start, n)) for name, values in self.claim.functions.items()}
        tables = {name: padded([values]) for name, values in lists.items()}
        of_input = functions(tables, np.zeros(1, int))
        addresses = (evaluated(cell.address, numbers, of_input, {}) for cell in self.invariant.cells)
        cells = [int(np.broadcast_to(address, 1)[0]) for address in addresses]
        written: list[list[int]] = [[] for _ in self.invariant.arrays]
        machine, visits = Machine(self.program, start), [0] * len(self.indices)
        limit = self.certificate.limit(n) * (1 if self.invariant.halts else 2)
        place, before, came_from = None, None, 0
        while not machine.halted and machine.steps < limit:
            row = machine.choose()
            here = machine.state, machine.row
            place = first_place(here) if place is None else place.then(here, self.invariant.history)
            index = self.indices.get(place)
            now = Moment(instance, self._variables(numbers, machine, visits, cells), list(machine.memory))
            if before is not None:
                self.steps[came_from].append((before, now, index))
            if index is None:
                self.false["a run comes to a place that is not listed"] = None
                break
            done = machine.compute(row)
            for array, values in zip(self.invariant.arrays, written, strict=True):
                values += [done.arguments[at][1] for of_place, at in array.writers if of_place == index]
            visits[index] += 1
            before, came_from = now, index
        if machine.halted:
            assert before is not None
            after = Moment(instance, self._variables(numbers, machine, visits, cells), list(machine.memory))
            self.steps[came_from].append((before, after, None))
        elif self.invariant.halts:
            self.false["a run does not halt within T(n)"] = None
        lists |= {f"written{i + 1}": values for i, values in enumerate(written)}
        for name, values in lists.items():
            self.lists.setdefault(name, []).append(values)

    def _variables(
        self, numbers: dict[str, int], machine: Machine, visits: list[int], cells: list[int]
    ) -> dict[str, int]:
        found = dict(numbers)
        named: list[tuple[Iterable[Term], Iterable[int]]] = [
            (register_variables(self.program), machine.registers),
            (self.invariant.visits, visits),
            (
                (cell.value for cell in self.invariant.cells),
                (machine.memory[at] if 0 <= at < len(machine.memory) else 0 for at in cells),
            ),
        ]
        for names, values in named:
            found |= {name.parts[0]: value for name, value in zip(names, values, strict=True)}
        return found

    # ---- what is said of a place

    def _look_at(self, index: int) -> None:
        steps = self.steps[index]
        if not steps:
            return
        if len(steps) > MOST:
            steps = self.rng.sample(steps, MOST)
        # Every moment with every address, and with a number k.
        points = [(moment, after, to, x) for moment, after, to in steps for x in range(len(moment.memory))]
        self.values = {name: np.array([one[0].values[name] for one in points]) for name in steps[0][0].values}
        self.values[ADDRESS.parts[0]] = np.array([x for *_, x in points])
        self.values[INDEX.parts[0]] = np.array([self.rng.randrange(-1, 2 * one[0].values["n"] + 4) for one in points])
        self.functions = functions(self.tables, np.array([one[0].instance for one in points]))
        self.known: dict[Term, Any] = {}
        name = f"place {index + 1}"
        for fact in self.invariant.facts[index]:
            self._must_hold(f"{name}: the fact {fact}", fact)
        now = np.array([moment.memory[x] for moment, *_, x in points])
        form = self.invariant.memory_now(ADDRESS, self.invariant.visits, [one.value for one in self.invariant.cells])
        self._must_be(f"{name}: the memory", form, now)

        step = StepBuilder(self.program, self.invariant).step(index)
        for definition in step.definitions:
            if definition.parts[0].op == "var" and definition.parts[0].parts[0] not in self.values:
                self.values[definition.parts[0].parts[0]] = self._value(definition.parts[1])
            self._must_hold(f"{name}: the definition {definition}", definition)
        for before, after in step.after().items():
            reached = np.array([one[1].values[before.parts[0]] if one[1] else 0 for one in points])
            self._must_be(f"{name}: {before} after the step", after, reached)
        builder = StepBuilder(self.program, self.invariant)
        later = np.array([after.memory[x] if after else 0 for _, after, _, x in points])
        self._must_be(f"{name}: the memory after the step", builder.memory_after(builder.step(index), ADDRESS), later)

        to = np.array([-1 if one[2] is None else one[2] for one in points])
        for one in self.problem.at_place(self.invariant, index):
            assumed = self._value(both(*one.known))
            goals = self._value(both(*one.goals))
            if one.target is not None and not (assumed == (to == one.target)).all():
                self.false[f"{one.name}: what is assumed is not when runs come there"] = None
            if one.name.endswith((": steps", ": changes", ": memory")) and not assumed.all():
                self.false[f"{one.name}: what is assumed is not true"] = None
            facts = self._value(both(*one.facts))
            if not facts.all():
                self.false[f"{one.name}: a fact is not true"] = None
            if (assumed & ~goals).any():
                self.false[one.name] = None
            self.evaluated[one.name] = int(assumed.sum())

    def _value(self, term: Term) -> np.ndarray:
        found = evaluated(term, self.values, self.functions, self.known)
        return np.broadcast_to(found, len(self.values["n"]))

    def _must_hold(self, what: str, term: Term) -> None:
        if not self._value(term).all():
            self.false[what] = None

    def _must_be(self, what: str, term: Term, values: np.ndarray) -> None:
        if not (self._value(term) == values).all():
            self.false[what] = None


def inputs(task: Task, rng: Random) -> Iterator[tuple[list[int], int]]:
    """The first inputs of every small size, and some at random."""
    assert task.legal_inputs is not None
    for n in range(task.min_complexity, task.min_complexity + SIZES):
        for extra in (0, 1, 2, 5, n):
            size = task.least_memory(n) + extra
            yield from ((list(start), n) for start in islice(task.legal_inputs(n, size), 4))
            yield from ((task.sample_input(rng, n, size), n) for _ in range(6))


def padded(lists: list[list[int]]) -> np.ndarray:
    """A row for each list, with zeros behind it: there is nothing else outside the memory."""
    table = np.zeros((len(lists), max(map(len, lists)) + 1), np.int64)
    for i, values in enumerate(lists):
        table[i, : len(values)] = values
    return table


def functions(tables: dict[str, np.ndarray], instances: np.ndarray) -> dict[str, Any]:
    def function(table: np.ndarray) -> Any:
        def look(argument: Any) -> np.ndarray:
            argument = np.broadcast_to(argument, len(instances))
            inside = (argument >= 0) & (argument < table.shape[1])
            return np.where(inside, table[instances, np.where(inside, argument, 0)], 0)

        return look

    return {name: function(table) for name, table in tables.items()}


@pytest.mark.parametrize(
    "title",
    [
        pytest.param(one.title, marks=[pytest.mark.slow] if one.title in SLOW else [])
        for one in zoo_entries()
        if one.has_certificate
    ],
)
def test_nothing_in_a_certificate_is_false_along_real_runs(title):
    certificate = load_certificate(title)[0]
    runs = Runs(certificate, get_task(certificate.task))
    assert list(runs.false) == []
    assert sum(map(bool, runs.steps)) > 0.8 * len(runs.steps)  # some places are rare
    # Only a step that never comes is never looked at.
    never = [name for name, count in runs.evaluated.items() if not count]
    assert all(": never row" in name or ": to place" in name or ": from T on" in name for name in never)


def test_what_is_false_is_noticed():
    certificate = load_certificate("reverse@searched")[0]
    invariant = certificate.invariant
    r1 = register_variables(certificate.program)[0]
    more = replace(invariant, facts=tuple((*facts, equal(r1, number(0))) for facts in invariant.facts))
    elsewhere = replace(
        invariant, places=(*invariant.places[:-1], replace(invariant.places[-1], last=((0, 0), (0, 0))))
    )
    (array,) = invariant.arrays
    other = replace(invariant, arrays=(replace(array, value=variable(INDEX.parts[0])),))
    for wrong, words in ((more, "the fact r1 = 0"), (elsewhere, "a place that is not listed"), (other, ": the memory")):
        found = Runs(replace(certificate, invariant=wrong), get_task("reverse")).false
        assert any(words in one for one in found), words


def test_a_step_of_another_program_is_noticed():
    certificate = load_certificate("reverse@searched")[0]
    runs = Runs(certificate, get_task("reverse"))
    rows = list(certificate.program.states[0])
    rows[2] = replace(rows[2], registers=(Constant(1), *rows[2].registers[1:]))
    runs.program = replace(certificate.program, states=(tuple(rows),), verified=())
    runs.problem = Problem(runs.program, get_task("reverse"), certificate.limit)
    for index in range(len(runs.indices)):
        runs._look_at(index)
    assert any("after the step" in one for one in runs.false)
