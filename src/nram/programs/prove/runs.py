"""Recorded runs of a program on small inputs of a task, from which invariants are guessed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count, pairwise
from random import Random
from typing import Any

import numpy as np

from nram.limits import StepLimit
from nram.modules import MODULES, Module
from nram.programs.ir import Constant, Output, Program, Register, Row, Value, carry_out
from nram.programs.prove.deadline import check_time
from nram.programs.prove.invariant import History, Place, RowId, first_place
from nram.tasks.base import Task
from nram.tasks.claim import SIZE, N, memory
from nram.terms import INVALID, Functions, Term, variable

SIZES = 8  # complexities
FIRST_CELLS = (0, 1, 2)  # often pointers and counts
EXPLORED = 25_000  # inputs that are tried when a guess has failed
RARE = 40  # runs
IN_VAIN = 5_000  # so many in a row that show nothing rare end it
INPUTS = 6  # of each complexity and memory size


@dataclass
class Moment:
    """A run before one of its steps."""

    instance: int
    row: RowId
    registers: list[int]
    memory: list[int]
    writes: dict[int, tuple[int, int]]
    """What the step writes: operation -> address, value."""


@dataclass
class Recorded:
    """All moments of runs on many inputs."""

    program: Program
    instances: list[tuple[list[int], int]] = field(default_factory=list)
    """Memory at the start, and n."""
    runs: list[list[Moment]] = field(default_factory=list)
    halts: bool = True
    """Every run halts within T(n)."""

    def places(self, history: History) -> list[Place]:
        """All places that the runs come to, in the order of their first visits."""
        found: dict[Place, None] = {}
        for run in self.runs:
            for place in places_of(run, history):
                found[place] = None
        return list(found)

    def depending_rows(self) -> list[RowId]:
        """The rows that are carried out more or less often depending on the values, not on n alone."""
        counts: dict[RowId, dict[int, set[int]]] = {}
        rows = dict.fromkeys(moment.row for run in self.runs for moment in run)
        for (_, n), run in zip(self.instances, self.runs, strict=True):
            seen = Counter(moment.row for moment in run)
            for row in rows:
                counts.setdefault(row, {}).setdefault(n, set()).add(seen[row])
        return [row for row, by_n in counts.items() if max(len(found) for found in by_n.values()) > 2]


def places_of(run: list[Moment], history: History) -> list[Place]:
    """The places that a run comes to."""
    places = [first_place(run[0].row)]
    for moment in run[1:]:
        places.append(places[-1].then(moment.row, history))
    return places


def record(program: Program, task: Task, limit: StepLimit, deadline: float, seed: int = 0) -> Recorded:
    """Runs on inputs of the smallest complexities. If not all halt within T(n), they are three times as long."""
    recorded = _record(program, task, limit, deadline, seed)
    if not recorded.halts:
        recorded = _record(program, task, StepLimit(3 * limit.per_item, 3 * limit.constant), deadline, seed)
        recorded.halts = False
    return recorded


def explore(recorded: Recorded, task: Task, limit: StepLimit, deadline: float, seed: int = 0) -> None:
    """Add runs that do what few runs did before: inputs of small sizes, at random."""
    rng, rows = Random(seed), _Rows(recorded.program)
    counts = Counter(pair for run in recorded.runs for pair in _pairs(run))
    since = 0  # the last run that did
    for _ in range(EXPLORED):
        since += 1
        if since > IN_VAIN:
            break
        check_time(deadline)
        n = task.min_complexity + rng.randrange(4)
        memory = task.sample_input(rng, n, task.least_memory(n) + rng.randrange(4))
        limit_now = limit(n) if recorded.halts else 3 * limit(n)
        pairs = set(pairwise(rows.carried_out(memory, limit_now)))
        if any(counts[pair] < RARE for pair in pairs):
            since = 0
            moments, halted = _moments(recorded.program, memory, len(recorded.instances), limit_now)
            counts.update(pairs)
            recorded.instances.append((memory, n))
            recorded.runs.append(moments)
            recorded.halts &= halted


class _Rows:
    """Runs a program just for the rows that it carries out, which takes a third of the time of recording it."""

    def __init__(self, program: Program):
        self.program = program
        self.known: dict[tuple[Any, ...], tuple[RowId, Row, list[Any], list[Any], list[int]]] = {}

    def carried_out(self, start: list[int], limit: int) -> list[RowId]:
        memory, size, state = list(start), len(start), 0
        registers, found = [0] * len(self.program.registers), []
        for _ in range(limit):
            key = state, *[value == 0 for value in registers]
            prepared = self.known.get(key)
            if prepared is None:
                prepared = self.known[key] = self._prepared(state, list(key[1:]))
            row_id, row, constants, operations, new = prepared
            found.append(row_id)
            values = [*registers, *constants]
            for function, about_memory, indices in operations:
                given = [values[i] for i in indices]
                output = function(memory if about_memory else size, *given)
                values.append(0 if output is None else output)  # of a write: nothing
            if row.halt:
                break
            registers, state = [values[i] for i in new], row.next_state
        return found

    def _prepared(self, state: int, zeros: list[bool]) -> tuple[RowId, Row, list[Any], list[Any], list[int]]:
        """A row with the places of its values: registers, constants, and outputs of operations."""
        number = self.program.row_for(state, zeros)
        row, count = self.program.states[state][number], len(self.program.registers)
        used = [value for one in row.operations for value in one.arguments] + list(row.registers)
        constants = list(dict.fromkeys(value.value for value in used if isinstance(value, Constant)))

        def at(value: Value) -> int:
            match value:
                case Register(index):
                    return index
                case Constant(literal):
                    return count + constants.index(literal)
                case Output(index):
                    return count + len(constants) + index

        operations = []
        for one in row.operations:
            module = MODULES[one.module]
            operations.append((module.integer, module.memory != "nothing", list(map(at, one.arguments))))
        return (state, number), row, constants, operations, list(map(at, row.registers))


def _pairs(run: list[Moment]) -> set[tuple[RowId, RowId]]:
    """The rows that follow one another."""
    return {(a.row, b.row) for a, b in pairwise(run)}


def _record(program: Program, task: Task, limit: StepLimit, deadline: float, seed: int) -> Recorded:
    rng = Random(seed)
    recorded = Recorded(program)
    for n in range(task.min_complexity, task.min_complexity + SIZES):
        least = task.least_memory(n)
        # Some programs do something else where M is twice the size of an array, or where a pointer wraps around.
        for extra in sorted({0, 1, 2, 3, 8, n, n + 1, 2 * n, 2 * n + 1, least, rng.randrange(3 * least)}):
            check_time(deadline)
            for _ in range(INPUTS):
                memory = task.sample_input(rng, n, least + extra)
                recorded.instances.append((memory, n))
                moments, halted = _moments(program, memory, len(recorded.instances) - 1, limit(n))
                recorded.runs.append(moments)
                recorded.halts &= halted
    return recorded


def _moments(program: Program, start: list[int], instance: int, limit: int) -> tuple[list[Moment], bool]:
    """The moments of a run, and whether it halted."""
    memory, registers, state = list(start), [0] * len(program.registers), 0
    moments: list[Moment] = []
    for _ in range(limit):
        number = program.row_for(state, [value == 0 for value in registers])
        row = program.states[state][number]
        before = list(memory)
        registers_after, writes = _carried_out(row, registers, memory)
        moments.append(Moment(instance, (state, number), registers, before, writes))
        if row.halt:
            return moments, True
        registers, state = registers_after, row.next_state
    return moments, False


def _carried_out(row: Row, registers: list[int], memory: list[int]) -> tuple[list[int], dict[int, tuple[int, int]]]:
    """The registers after a row, which changes the memory, and its writes: operation -> address, value."""
    writes: dict[int, tuple[int, int]] = {}
    operations = count()

    def apply(module: Module, arguments: list[int]) -> int:
        operation = next(operations)
        if module.memory == "nothing":
            return module.integer(len(memory), *arguments)
        if module.memory == "reads":
            return module.integer(memory, *arguments)
        writes[operation] = arguments[0], arguments[1]
        module.integer(memory, *arguments)
        return 0

    return carry_out(row, registers.__getitem__, apply, int).registers, writes


class Inputs:
    """The inputs as arrays, for terms: n, M, the numbers and the functions of a claim."""

    def __init__(self, instances: Sequence[tuple[Sequence[int], int]], task: Task):
        assert task.claim is not None
        claim = task.claim()
        memories = [start for start, _ in instances]
        self.numbers: dict[Term, np.ndarray] = {
            N: np.array([n for _, n in instances]),
            SIZE: np.array([len(memory) for memory in memories]),
        }
        for name, value in claim.numbers.items():
            self.numbers[variable(name)] = np.array([value(start, n) for start, n in instances])
        for address in FIRST_CELLS:
            self.numbers[memory(address)] = np.array([start[address] for start in memories])
        self.tables = {"memory": _table(memories)}
        for name, values in claim.functions.items():
            self.tables[name] = _table([list(values(start, n)) for start, n in instances])

    def sizes(self, instances: np.ndarray) -> np.ndarray:
        return self.numbers[SIZE][instances]

    def at(self, instances: np.ndarray) -> tuple[dict[Term, np.ndarray], Functions]:
        """The numbers and the functions at points of these instances."""
        values = {name: numbers[instances] for name, numbers in self.numbers.items()}

        def function(table: np.ndarray):
            rows = table[instances]
            every = np.arange(len(instances))

            def look(argument: Any) -> np.ndarray:
                """At one index for each point, or at a matrix of them with a column for each point."""
                inside = (argument >= 0) & (argument < table.shape[1])
                return np.where(inside, rows[every, np.where(inside, argument, 0)], INVALID)

            return look

        return values, {name: function(table) for name, table in self.tables.items()}


def _table(lists: Sequence[Sequence[int]]) -> np.ndarray:
    table = np.full((len(lists), max(map(len, lists)) + 1), INVALID, np.int64)
    for i, values in enumerate(lists):
        table[i, : len(values)] = values
    return table
