"""Programs by a solver: the wires of the table are unknown, and z3 is asked for values with which the examples come out.

This is what one would try without the search: constraint-based synthesis, guided by counterexamples (CEGIS). The
program is the same as in the search, a row for every combination of flags with all modules in their order, and its
structure is given. Each wire of each row is one of as many booleans as it has possible sources. An example is carried
out for T(n) steps on bit vectors from its concrete memory; it must have halted by then, with the output cells right.
z3 begins with a few of the smallest examples. A table that it finds is run on the whole pool, and then on fresh and
larger instances; the smallest that fails joins the examples.

    .venv/bin/python benchmarks/search/z3_synthesis.py TASK REGISTERS REPEATS [--timeout SECONDS] [--seed S]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import z3

from nram.modules import PAPER_MODULES
from nram.programs.ir import Program
from nram.search.for_task import find_counterexamples
from nram.search.instances import task_pool
from nram.search.kernel import CONSTANTS, judge
from nram.search.structure import Structure
from nram.tasks import get_task
from nram.tasks.base import Instance, Task

FIRST_EXAMPLES = 3
MODULES = {module.name: module for module in PAPER_MODULES}


@dataclass(frozen=True)
class Synthesised:
    """How it ended. Without a program the time was over."""

    program: Program | None
    seconds: float
    questions: int
    """Asked of the solver."""
    examples: int
    """Known to the solver at the end."""


class OutOfTime(Exception):
    pass


def synthesise(task: Task, structure: Structure, seed: int, timeout: float) -> Synthesised:
    """A program that fits the pool and generalises, as the search has it, or the end of the time."""
    began = time.monotonic()
    pool = task_pool(task, seed)
    by_size = sorted(range(len(pool)), key=lambda i: effort(pool.instances[i]))
    examples = [pool.instances[i] for i in by_size[:FIRST_EXAMPLES]]
    questions = 0
    program = None
    try:
        while program is None:
            genes = Table(structure).solve(examples, began + timeout, seed)
            questions += 1
            costs = np.zeros(len(pool))
            judge(structure.codes, structure.arity, structure.registers, genes, *pool.arrays, costs)
            wrong = [pool.instances[i] for i in by_size if costs[i] > 0]
            if not wrong:
                candidate = structure.program(genes)
                wrong = sorted(find_counterexamples(candidate, task, seed), key=effort)
                if not wrong:
                    program = candidate
            examples += wrong[:1]
    except OutOfTime:
        pass
    return Synthesised(program, time.monotonic() - began, questions, len(examples))


def effort(instance: Instance) -> int:
    """How much an example adds to the formula."""
    return instance.steps * len(instance.input)


class Table:
    """The unknowns: for every row and wire, which source it has; which operations are used; whether the row halts."""

    def __init__(self, structure: Structure):
        self.structure = structure
        self.first_output = CONSTANTS + structure.registers
        self.constraints: list[Any] = []
        self.arguments: list[list[list[dict[int, Any]]]] = []
        self.updates: list[list[dict[int, Any]]] = []
        self.used: list[list[Any]] = []
        self.halts: list[Any] = []
        for row in range(structure.rows):
            self._add_row(f"row{row}")

    def _add_row(self, name: str) -> None:
        shape = self.structure
        count = len(shape.sequence)
        used = [z3.Bool(f"{name}_used{k}") for k in range(count)]
        halts = z3.Bool(f"{name}_halts")
        arguments = [[self._wire(f"{name}_op{k}_{which}", k) for which in range(shape.arity[k])] for k in range(count)]
        updates = [self._wire(f"{name}_r{r}", count) for r in range(shape.registers)]
        readers = [(used[k], wire) for k in range(count) for wire in arguments[k]]
        readers += [(z3.Not(halts), wire) for wire in updates]
        for matters, wire in readers:
            # What does not matter is 0: one way to write a program down instead of very many.
            self.constraints.append(z3.Or(matters, wire[0]))
            for source, chosen in wire.items():
                if source >= self.first_output:
                    self.constraints.append(z3.Implies(chosen, used[source - self.first_output]))
        self.arguments.append(arguments)
        self.updates.append(updates)
        self.used.append(used)
        self.halts.append(halts)

    def _wire(self, name: str, place: int) -> dict[int, Any]:
        """One of the values known to operation `place`."""
        outputs = [k for k in range(place) if self.structure.sequence[k] != "WRITE"]
        sources = [*range(self.first_output), *(self.first_output + k for k in outputs)]
        choice = {source: z3.Bool(f"{name}_from{source}") for source in sources}
        self.constraints.append(z3.PbEq([(one, 1) for one in choice.values()], 1))
        return choice

    def solve(self, examples: Sequence[Instance], operations: int, deadline: float, seed: int) -> np.ndarray:
        """A table with which all examples come out right; OutOfTime if none was found by then."""
        solver = z3.Then("simplify", "propagate-values", "card2bv", "solve-eqs", "bit-blast", "sat").solver()
        solver.set("random_seed", seed)
        solver.add(*self.constraints)
        for number, example in enumerate(examples):
            solver.add(*Run(self, example, f"e{number}").constraints)
            if time.monotonic() > deadline:
                raise OutOfTime
        solver.set("timeout", max(1, int(1000 * (deadline - time.monotonic()))))
        answer = solver.check()
        if answer != z3.sat:
            if answer == z3.unsat:
                raise SystemExit(f"no program of {self.structure} fits {len(examples)} examples, says z3")
            raise OutOfTime
        return self._genes(solver.model())

    def _genes(self, model: Any) -> np.ndarray:
        shape = self.structure
        genes = np.zeros((shape.rows, shape.width), np.int16)

        def source(wire: dict[int, Any]) -> int:
            return next(number for number, chosen in wire.items() if z3.is_true(model.eval(chosen, True)))

        for row in range(shape.rows):
            for k in range(len(shape.sequence)):
                for a, wire in enumerate(self.arguments[row][k]):
                    genes[row, 3 * k + a] = source(wire)
                genes[row, 3 * k + 2] = z3.is_true(model.eval(self.used[row][k], True))
            for r, wire in enumerate(self.updates[row]):
                genes[row, 3 * len(shape.sequence) + r] = source(wire)
            genes[row, -2] = z3.is_true(model.eval(self.halts[row], True))
        return genes


class Run:
    """An example carried out on the unknown table: constraints that say that it comes out right."""

    def __init__(self, table: Table, example: Instance, name: str):
        self.table = table
        self.name = name
        size = len(example.input)
        self.bits = (size - 1).bit_length()
        self.constraints: list[Any] = []
        self.memory: list[Any] = [self._known(value) for value in example.input]
        self.count = 0
        structure = table.structure
        registers = [self._known(0)] * structure.registers
        running: Any = z3.BoolVal(True)
        for _ in range(example.steps):
            registers, running = self._step(registers, running)
        self.constraints.append(z3.Not(running))
        self.constraints += [self.memory[cell] == example.output[cell] for cell in example.cells]

    def _step(self, registers: list[Any], running: Any) -> tuple[list[Any], Any]:
        table, structure = self.table, self.table.structure
        zero = [register == 0 for register in registers]
        here = [
            self._named(
                z3.And(running, *(z3.simplify(flag if row >> r & 1 else z3.Not(flag)) for r, flag in enumerate(zero)))
            )
            for row in range(structure.rows)
        ]
        values = {number: self._known(number) for number in range(CONSTANTS)}
        values |= {CONSTANTS + r: register for r, register in enumerate(registers)}
        for k, name in enumerate(structure.sequence):
            wires = [[table.arguments[row][k][a] for row in range(structure.rows)] for a in range(structure.arity[k])]
            given = [self._chosen(here, wire, values) for wire in wires]
            if name == "WRITE":
                there = z3.Or(*(z3.And(at, table.used[row][k]) for row, at in enumerate(here)))
                self._write(self._named(there), *given)
            else:
                wider = [z3.ZeroExt(1, value) for value in given]
                values[table.first_output + k] = self._fresh(
                    z3.Extract(self.bits - 1, 0, MODULES[name].emit(self, *wider))
                )
        new = [
            self._chosen(here, [table.updates[row][r] for row in range(structure.rows)], values)
            for r in range(structure.registers)
        ]
        ends = z3.Or(*(z3.And(at, table.halts[row]) for row, at in enumerate(here)))
        return new, self._named(z3.And(running, z3.Not(ends)))

    def _chosen(self, here: list[Any], wires: list[dict[int, Any]], values: dict[int, Any]) -> Any:
        """The value of the source that the present row's wire has."""
        found = self._variable()
        for source in wires[0]:
            selected = z3.Or(*(z3.And(at, wire[source]) for at, wire in zip(here, wires, strict=True)))
            self.constraints.append(z3.Implies(selected, found == values[source]))
        if len(self.memory) < 1 << self.bits:
            self.constraints.append(z3.ULE(found, len(self.memory) - 1))
        return found

    def _write(self, there: Any, pointer: Any, value: Any) -> None:
        self.memory = [
            self._fresh(z3.If(z3.And(there, pointer == address), value, cell))
            for address, cell in enumerate(self.memory)
        ]

    def _known(self, value: int) -> Any:
        return z3.BitVecVal(value, self.bits)

    def _variable(self) -> Any:
        self.count += 1
        return z3.BitVec(f"{self.name}_{self.count}", self.bits)

    def _fresh(self, term: Any) -> Any:
        variable = self._variable()
        self.constraints.append(variable == term)
        return variable

    def _named(self, condition: Any) -> Any:
        self.count += 1
        name = z3.Bool(f"{self.name}_{self.count}")
        self.constraints.append(name == condition)
        return name

    # ---- the modules' builder protocol

    def number(self, literal: int) -> Any:
        return z3.BitVecVal(literal, self.bits + 1)

    @property
    def size(self) -> Any:
        return self.number(len(self.memory))

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
        raise NotImplementedError("WRITE may be absent, so a step writes by itself")


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
    said = f"{done.questions} questions, {done.examples} examples, {done.seconds:.1f} s"
    if done.program is None:
        raise SystemExit(f"none found: {said}")
    print(done.program)
    print(said)


if __name__ == "__main__":
    main()
