"""Program synthesis with z3: the wires of the table are unknowns, and the examples are constraints.

This is the natural alternative to the search: constraint-based synthesis with counterexamples (CEGIS). A program is
the same as in the search: a row for every combination of flags, with all modules in their order. Its structure is
given. Each wire of each row has one boolean per possible source. An example runs on bit vectors from its concrete
memory. It must halt by its step limit with the right output cells. A table that z3 finds runs on the whole pool and
then on fresh and larger instances. An instance that fails joins the examples.

z3 gets some help: it looks for programs with few operations first, unused parts of a program are fixed, runs first get
only a part of their steps, and one incremental solver for finite domains (QF_FD) keeps what it has learned.

    .venv/bin/python benchmarks/search/z3_synthesis.py TASK REGISTERS REPEATS [--timeout SECONDS] [--seed S]
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import z3

from nram.extensions import get_task
from nram.programs.execute import execute
from nram.programs.ir import MODULES, Constant, Operation, Output, Program, Register, Row, Value
from nram.programs.simplify import simplify
from nram.programs.text import table_to_text
from nram.search.counterexamples import find_counterexamples
from nram.search.instances import Pool, exact, task_pool
from nram.search.structure import Structure
from nram.tasks.base import Instance, Task

CONSTANTS = 3  # 0, 1 and 2 are values without a module
PARTS = (1 / 3, 1 / 2, 3 / 4, 1.0)  # shares of an example's steps: shorter runs make smaller formulas
FIRST_ROUND = 2.0  # seconds for each share; every round has twice as many
QUESTIONS = 5  # at least, in the time of a share; after that z3 tries programs with more operations
EXAMPLE_CELLS = 5  # preferred size: such examples say more than those of three cells, and cost little


@dataclass(frozen=True)
class Synthesised:
    """The result. Without a program, the time ran out or there is none."""

    program: Program | None
    seconds: float
    questions: int
    """Number of questions to the solver."""
    examples: int
    """Number of examples that the solver knew at the end."""


def synthesise(task: Task, structure: Structure, seed: int, timeout: float) -> Synthesised:
    """Find a program that fits the pool and generalises, by the same test as the search, until the timeout."""
    began = time.monotonic()
    pool = task_pool(task, seed)
    examples = [min(pool.instances, key=_preference)]
    asking = [Synthesis(task, structure, pool, seed, part) for part in PARTS]
    program, seconds = None, FIRST_ROUND
    while program is None and any(one.hopeful for one in asking) and time.monotonic() < began + timeout:
        for one in asking:
            program = one.find(examples, min(time.monotonic() + seconds, began + timeout))
            if program is not None:
                break
        seconds *= 2
    questions = sum(one.questions for one in asking)
    return Synthesised(program, time.monotonic() - began, questions, len(examples))


class Synthesis:
    """One solver, whose runs get a share of their steps."""

    def __init__(self, task: Task, structure: Structure, pool: Pool, seed: int, part: float):
        self.task, self.structure, self.pool, self.seed, self.part = task, structure, pool, seed, part
        self.table = Table(structure)
        self.solver = z3.SolverFor("QF_FD")
        self.solver.set("random_seed", seed)
        self.solver.add(*self.table.constraints)
        self.known = 0
        self.questions = 0
        self.refuted = 0
        """No program with this many operations or fewer exists."""
        self.hopeful = True
        uses = [(one, 1) for row in self.table.used for one in row]
        self.bounds = [z3.Bool(f"at_most_{most}") for most in range(len(uses) + 1)]
        for most, bound in enumerate(self.bounds):
            self.solver.add(z3.Implies(bound, z3.PbLe(uses, most)))

    def find(self, examples: list[Instance], deadline: float) -> Program | None:
        """Find a right program, with few operations first. Counterexamples join the examples."""
        longest = (deadline - time.monotonic()) / QUESTIONS
        operations = self.refuted + 1
        while self.hopeful and operations < len(self.bounds):
            for example in examples[self.known :]:
                self._add(example)
            left = min(longest, deadline - time.monotonic())
            if left <= 0:
                return None
            self.solver.set("timeout", max(1, int(1000 * left)))
            answer = self.solver.check(self.bounds[operations])
            self.questions += 1
            if answer == z3.sat:
                program = self.table.program(self.solver.model())
                wrong = self._counterexample(program)
                if wrong is None:
                    return program
                examples.append(wrong)
                continue
            if answer == z3.unsat:
                self.hopeful = len(self.solver.unsat_core()) > 0  # otherwise the bound is not the reason
                if operations == self.refuted + 1:
                    self.refuted = operations
            operations += 1
        return None

    def _add(self, example: Instance) -> None:
        steps = math.ceil(self.part * example.steps)
        self.solver.add(*Run(self.table, example, steps, f"example{self.known}").constraints)
        self.known += 1

    def _counterexample(self, program: Program) -> Instance | None:
        wrong = [instance for instance in self.pool.instances if not _solves(program, instance)]
        wrong = wrong or find_counterexamples(program, self.task, self.seed)
        return min(wrong, key=_preference, default=None)


def _solves(program: Program, instance: Instance) -> bool:
    result = execute(program, instance.input, instance.steps)
    return result.halted and exact([instance], [result.memory]) == [True]


def _preference(example: Instance) -> tuple[int, int]:
    return abs(len(example.input) - EXAMPLE_CELLS), example.steps


Wire = dict[int, Any]
"""From the index of a source to the boolean that selects it."""


class Table:
    """The unknowns: the source of every wire in every row, the operations in use, and whether a row halts."""

    def __init__(self, structure: Structure):
        self.structure = structure
        self.first_output = CONSTANTS + structure.registers
        self.constraints: list[Any] = []
        self.arguments: list[list[list[Wire]]] = []
        self.updates: list[list[Wire]] = []
        self.used: list[list[Any]] = []
        self.halts: list[Any] = []
        for row in range(structure.rows):
            self._add_row(f"row{row}")

    def _add_row(self, name: str) -> None:
        shape = self.structure
        count = len(shape.sequence)
        used = [z3.Bool(f"{name}_used{k}") for k in range(count)]
        halts = z3.Bool(f"{name}_halts")
        arguments = [
            [self._wire(f"{name}_op{k}_{which}", k) for which in range(MODULES[shape.sequence[k]].arity)]
            for k in range(count)
        ]
        updates = [self._wire(f"{name}_r{r}", count) for r in range(shape.registers)]
        readers = [(used[k], wire) for k in range(count) for wire in arguments[k]]
        readers += [(z3.Not(halts), wire) for wire in updates]
        for matters, wire in readers:
            # Unused parts are 0, so that a program has one form instead of very many.
            self.constraints.append(z3.Or(matters, wire[0]))
            for source, chosen in wire.items():
                if source >= self.first_output:
                    self.constraints.append(z3.Implies(chosen, used[source - self.first_output]))
        self.arguments.append(arguments)
        self.updates.append(updates)
        self.used.append(used)
        self.halts.append(halts)

    def _wire(self, name: str, operation: int) -> Wire:
        """The unknown source of an argument: one of the values known to this operation."""
        outputs = [k for k in range(operation) if self.structure.sequence[k] != "WRITE"]
        sources = [*range(self.first_output), *(self.first_output + k for k in outputs)]
        choice = {source: z3.Bool(f"{name}_from{source}") for source in sources}
        self.constraints.append(z3.PbEq([(one, 1) for one in choice.values()], 1))
        return choice

    def program(self, model: Any) -> Program:
        """The program of a model."""

        def holds(condition: Any) -> bool:
            return z3.is_true(model.eval(condition, model_completion=True))

        names = tuple(f"r{r + 1}" for r in range(self.structure.registers))
        return Program(names, (tuple(self._row(row, holds) for row in range(self.structure.rows)),))

    def _row(self, row: int, holds: Callable[[Any], bool]) -> Row:
        places: dict[int, int] = {}
        operations: list[Operation] = []

        def value(wire: Wire) -> Value:
            # z3 was once seen to leave a wire without a source. Such a program is run like any other.
            number = next((source for source, chosen in wire.items() if holds(chosen)), 0)
            if number < CONSTANTS:
                return Constant(number)
            if number < self.first_output:
                return Register(number - CONSTANTS)
            return Output(places[number - self.first_output])

        for k, name in enumerate(self.structure.sequence):
            if holds(self.used[row][k]):
                places[k] = len(operations)
                operations.append(Operation(name, tuple(map(value, self.arguments[row][k]))))
        when = tuple(bool(row >> r & 1) for r in range(self.structure.registers))
        return Row(when, tuple(operations), tuple(map(value, self.updates[row])), holds(self.halts[row]))


class Run:
    """The run of an example on the unknown table, as constraints that its result is right."""

    def __init__(self, table: Table, example: Instance, steps: int, name: str):
        self.table = table
        self.name = name
        self.bits = (len(example.input) - 1).bit_length()
        self.constraints: list[Any] = []
        self.names = 0
        self.memory: list[Any] = [self._known(value) for value in example.input]
        registers = [self._known(0)] * table.structure.registers
        running: Any = z3.BoolVal(True)
        for _ in range(steps):
            registers, running = self._step(registers, running)
        self.constraints.append(z3.Not(running))
        self.constraints += [self.memory[cell] == example.output[cell] for cell in example.cells]

    def _step(self, registers: list[Any], running: Any) -> tuple[list[Any], Any]:
        table, structure = self.table, self.table.structure
        rows = range(structure.rows)
        zero = [z3.simplify(register == 0) for register in registers]
        here = [
            self._named(z3.And(running, *(flag if row >> r & 1 else z3.Not(flag) for r, flag in enumerate(zero))))
            for row in rows
        ]
        values = {number: self._known(number) for number in range(CONSTANTS)}
        values |= {CONSTANTS + r: register for r, register in enumerate(registers)}
        for k, name in enumerate(structure.sequence):
            given = [
                self._chosen(here, [table.arguments[row][k][which] for row in rows], values)
                for which in range(MODULES[structure.sequence[k]].arity)
            ]
            if name == "WRITE":
                there = z3.Or(*(z3.And(at, table.used[row][k]) for row, at in enumerate(here)))
                self._write_if(self._named(there), *given)
            else:
                wide = MODULES[name].emit(self, *(z3.ZeroExt(1, value) for value in given))
                values[table.first_output + k] = self._fresh(z3.Extract(self.bits - 1, 0, wide))
        new = [self._chosen(here, [table.updates[row][r] for row in rows], values) for r in range(structure.registers)]
        ends = z3.Or(*(z3.And(at, table.halts[row]) for row, at in enumerate(here)))
        return new, self._named(z3.And(running, z3.Not(ends)))

    def _chosen(self, here: list[Any], wires: list[Wire], values: dict[int, Any]) -> Any:
        """The value at the source of the current row's wire."""
        found = self._variable()
        for source in wires[0]:
            selected = z3.Or(*(z3.And(at, wire[source]) for at, wire in zip(here, wires, strict=True)))
            self.constraints.append(z3.Implies(selected, found == values[source]))
        if len(self.memory) < 1 << self.bits:
            self.constraints.append(z3.ULE(found, len(self.memory) - 1))
        return found

    def _write_if(self, there: Any, pointer: Any, value: Any) -> None:
        self.memory = [
            self._fresh(z3.If(z3.And(there, pointer == address), value, cell))
            for address, cell in enumerate(self.memory)
        ]

    def _known(self, value: int) -> Any:
        return z3.BitVecVal(value, self.bits)

    def _variable(self) -> Any:
        self.names += 1
        return z3.BitVec(f"{self.name}_{self.names}", self.bits)

    def _fresh(self, term: Any) -> Any:
        variable = self._variable()
        self.constraints.append(variable == term)
        return variable

    def _named(self, condition: Any) -> Any:
        self.names += 1
        name = z3.Bool(f"{self.name}_{self.names}")
        self.constraints.append(name == condition)
        return name

    # ---- the builder for the table of modules; numbers have one bit more, for sums below 2 M

    @property
    def size(self) -> Any:
        return self.number(len(self.memory))

    def number(self, literal: int) -> Any:
        return z3.BitVecVal(literal, self.bits + 1)

    def add(self, a: Any, b: Any) -> Any:
        return a + b

    def sub(self, a: Any, b: Any) -> Any:
        return a - b

    def less(self, a: Any, b: Any) -> Any:
        return z3.ULT(a, b)

    def equal(self, a: Any, b: Any) -> Any:
        return a == b

    def choose(self, condition: Any, yes: Any, no: Any) -> Any:
        return z3.If(condition, yes, no)

    def read(self, pointer: Any) -> Any:
        found = self.memory[-1]
        for address, cell in enumerate(self.memory[:-1]):
            found = z3.If(pointer == address, cell, found)
        return z3.ZeroExt(1, found)

    def write(self, pointer: Any, value: Any) -> None:
        raise NotImplementedError("WRITE may be absent from a row, so a step writes by itself")


def main() -> None:
    parser = argparse.ArgumentParser(description="Ask z3 for a program that solves a task.")
    parser.add_argument("task")
    parser.add_argument("registers", type=int)
    parser.add_argument("repeats", type=int)
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    structure = Structure(arguments.registers, arguments.repeats)
    done = synthesise(get_task(arguments.task), structure, arguments.seed, arguments.timeout)
    summary = f"{done.questions} questions, {done.examples} examples, {done.seconds:.1f} s"
    if done.program is None:
        raise SystemExit(f"none found: {summary}")
    print(table_to_text(simplify(done.program)))
    print(summary)


if __name__ == "__main__":
    main()
