"""Genetic programming in the manner of PushGP, over our modules: a baseline of our own.

The public pyshgp does not import on Python 3.11. A genome has a list of instructions for every combination of flags:
the rows of a table. As in Push, an instruction takes its arguments from a stack and puts its result there, one without
enough arguments does nothing, and so every list is a program: push 0, 1, 2 or a register; a module; take a register's
new value from the stack; copy or exchange the top; halt. The stack is only notation: a list becomes operations of a
row, and dead ones are left out.

Parents are chosen by lexicase selection. A child gets every row from one of two parents or, mostly, all from one; then
instructions are added and deleted (UMAD). Every generation runs on a sample of the pool (down-sampled lexicase), with
the code that runs the search's candidates. Programs that fit it run on the whole pool, then on fresh instances, as in
the search. A run starts over after `GENERATIONS`, with the next number of registers.

    .venv/bin/python benchmarks/search/genetic.py TASK [--timeout SECONDS] [--seed S]
"""

from __future__ import annotations

import argparse
import itertools
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from nram.extensions import get_task
from nram.programs.ir import MODULES, Constant, Operation, Output, Program, Register, Row, Value
from nram.programs.simplify import simplify
from nram.programs.text import table_to_text
from nram.search.chains import blocks_of, shape_of
from nram.search.counterexamples import find_counterexamples
from nram.search.instances import Pool, task_pool
from nram.search.kernel import CODE_MODULE, CONSTANTS, END, Table, _new_runs, _write_costs
from nram.search.structure import Structure
from nram.tasks.base import Task

POPULATION = 1000
GENERATIONS = 300  # until a run starts over
REGISTERS = (2, 3, 4)  # of the runs, in turn
LONGEST = 40  # instructions of a row
AT_FIRST = 10  # the most instructions of a row of a first genome
SAMPLE = 64  # instances of a generation; counterexamples are always among them
ADDITION, CHANGED_ROWS = 0.09, 0.25  # UMAD's rate, and the share of rows that it may change
CROSSOVER = 0.2  # share of the children with two parents
OPERATIONS = [name for name in MODULES if MODULES[name].arity > 0]
CODES = {name: code for code, name in enumerate(OPERATIONS)}
ARITY = np.array([MODULES[name].arity for name in OPERATIONS])
WRITES = np.array([MODULES[name].memory == "writes" for name in OPERATIONS])
COPY, EXCHANGE, HALT = -3, -2, -1  # counted from the number of instructions

_compiled: Any = njit(cache=True, nogil=True, boundscheck=False)


@dataclass(frozen=True)
class Evolved:
    """The result. Without a program, the time ran out."""

    program: Program | None
    seconds: float
    candidates: int
    """Genomes that were run."""


class Genomes(NamedTuple):
    """The genomes of a population."""

    instructions: np.ndarray
    """int8 [genomes, rows, LONGEST]"""
    lengths: np.ndarray
    """int64 [genomes, rows]"""


def evolve(task: Task, seed: int, timeout: float) -> Evolved:
    """Find a program that fits the pool and generalises, by the same test as the search, until the timeout."""
    began = time.monotonic()
    pool = task_pool(task, seed)
    first = len(pool)  # counterexamples come after these
    rng = np.random.default_rng(seed)
    start_random_numbers(seed)
    candidates = 0
    for run in itertools.count():
        machine = Machine(REGISTERS[run % len(REGISTERS)])
        genomes = machine.new_genomes()
        fill(genomes.instructions, genomes.lengths, machine.kinds, AT_FIRST)
        for _ in range(GENERATIONS):
            known = np.arange(first, len(pool))[-SAMPLE // 2 :]
            sample = [*known, *rng.permutation(first)[: SAMPLE - len(known)]]
            costs = np.zeros((POPULATION, len(sample)))
            fitting = machine.run(genomes, pool, sample, costs, began + timeout)
            candidates += POPULATION
            wrong = []
            for index in fitting:
                program = machine.program_if_it_fits(genomes, index, pool)
                counterexamples = find_counterexamples(program, task, seed) if program is not None else ()
                if program is not None and not counterexamples:
                    return Evolved(program, time.monotonic() - began, candidates)
                wrong += counterexamples
                if wrong:
                    break
            if time.monotonic() - began > timeout:
                return Evolved(None, time.monotonic() - began, candidates)
            pool = pool.joined(wrong)
            children = machine.new_genomes()
            breed(*genomes, costs, *children, machine.kinds, ADDITION, CHANGED_ROWS, CROSSOVER)
            genomes = children
    raise AssertionError("a run always comes to its end")


class Machine:
    """Programs with so many registers: translates genomes, and runs them."""

    def __init__(self, registers: int):
        self.registers, self.rows = registers, 1 << registers
        self.kinds = CONSTANTS + registers + len(OPERATIONS) + registers - COPY
        structure = Structure(registers, 1, 1, tuple(OPERATIONS))
        shape = shape_of(structure)
        # The code numbers modules by their place in the structure; a row has room for LONGEST operations.
        numbers = np.array([[module.name for module in structure.kinds].index(name) for name in OPERATIONS])
        self.shape = shape._replace(operations=np.zeros((LONGEST, 3), np.int64))
        self.numbers, self.names = numbers, [module.name for module in structure.kinds]
        self.table = Table(
            np.zeros((self.rows, registers + 2), np.int16),
            np.zeros((self.rows, LONGEST + 1, 4), np.int16),
            np.zeros(self.rows, np.int64),
            np.zeros((self.rows, LONGEST), np.bool_),
        )

    def new_genomes(self) -> Genomes:
        shape = (POPULATION, self.rows, LONGEST)
        return Genomes(np.zeros(shape, np.int8), np.zeros(shape[:2], np.int64))

    def run(self, genomes: Genomes, pool: Pool, sample: list[int], costs: np.ndarray, deadline: float) -> list[int]:
        """Write the cost of every genome on every instance of the sample. Returns the genomes that fit it."""
        order = sorted(sample, key=lambda i: pool.instances[i].steps)  # a block runs until its longest instance is done
        blocks = blocks_of(pool, order)  # has a name, so that it lives: the runs hold its plain addresses
        runs = _new_runs(self.shape, self.table, blocks)
        for index in range(len(costs)):
            if index % 64 == 0 and time.monotonic() > deadline:
                costs[index:] = np.inf
                break
            self._translate(genomes, index)
            _write_costs(runs, costs[index])
        return np.flatnonzero(costs.sum(axis=1) == 0).tolist()

    def _translate(self, genomes: Genomes, index: int) -> None:
        table = self.table
        translate(
            genomes.instructions[index],
            genomes.lengths[index],
            self.registers,
            self.kinds,
            self.numbers,
            ARITY,
            WRITES,
            table.genes,
            table.code,
            table.lengths,
            table.live,
        )
        table.code[np.arange(self.rows), table.lengths, CODE_MODULE] = END

    def program_if_it_fits(self, genomes: Genomes, index: int, pool: Pool) -> Program | None:
        self._translate(genomes, index)
        costs, blocks = np.zeros(len(pool)), blocks_of(pool)
        _write_costs(_new_runs(self.shape, self.table, blocks), costs)
        return None if costs.any() else self.program(genomes, index)

    def program(self, genomes: Genomes, index: int) -> Program:
        self._translate(genomes, index)
        names = tuple(f"r{r + 1}" for r in range(self.registers))
        return Program(names, (tuple(self._row(row) for row in range(self.rows)),), origin="searched")

    def _row(self, row: int) -> Row:
        table, first_output = self.table, CONSTANTS + self.registers
        places: dict[int, int] = {}
        operations: list[Operation] = []

        def value(number: int) -> Value:
            if number < CONSTANTS:
                return Constant(number)
            return Register(number - CONSTANTS) if number < first_output else Output(places[number])

        for module, *given, output in table.code[row, : table.lengths[row]].tolist():
            name = self.names[module]
            places[output] = len(operations)
            operations.append(Operation(name, tuple(map(value, given[: MODULES[name].arity]))))
        *new, halts, _ = table.genes[row].tolist()
        when = tuple(bool(row >> r & 1) for r in range(self.registers))
        updates = tuple(Register(r) for r in range(self.registers)) if halts else tuple(map(value, new))
        return Row(when, tuple(operations), updates, bool(halts))


# ---- compiled


@_compiled
def start_random_numbers(seed):
    np.random.seed(seed)


@_compiled
def fill(instructions, lengths, kinds, longest):
    """Random genomes."""
    for genome in range(len(lengths)):
        for row in range(lengths.shape[1]):
            lengths[genome, row] = np.random.randint(1, longest + 1)
            for place in range(lengths[genome, row]):
                instructions[genome, row, place] = np.random.randint(0, kinds)


@_compiled
def translate(instructions, lengths, registers, kinds, numbers, arity, writes, genes, code, code_lengths, live):
    """Write the operations of a genome to a table, as the search's tables have them."""
    first_output = CONSTANTS + registers
    stack = np.zeros(2 * instructions.shape[1], np.int16)
    for row in range(len(lengths)):
        top = count = 0
        for r in range(registers):
            genes[row, r] = CONSTANTS + r
        genes[row, registers : registers + 2] = 0
        for place in range(lengths[row]):
            kind = instructions[row, place]
            module = kind - first_output
            if kind < first_output:
                stack[top] = kind
                top += 1
            elif module < len(numbers):
                given = arity[module]
                if top >= given:
                    code[row, count, 0] = module
                    code[row, count, 1] = stack[top - given]
                    code[row, count, 2] = stack[top - 1] if given == 2 else 0
                    code[row, count, 3] = first_output + count
                    top -= given
                    if not writes[module]:
                        stack[top] = first_output + count
                        top += 1
                    count += 1
            elif kind < kinds + COPY:
                if top > 0:
                    top -= 1
                    genes[row, module - len(numbers)] = stack[top]
            elif kind == kinds + COPY:
                if top > 0:
                    stack[top] = stack[top - 1]
                    top += 1
            elif kind == kinds + EXCHANGE:
                if top > 1:
                    stack[top - 1], stack[top - 2] = stack[top - 2], stack[top - 1]
            else:
                genes[row, registers] = 1
        live[row] = False
        if genes[row, registers] == 0:
            for r in range(registers):
                if genes[row, r] >= first_output:
                    live[row, genes[row, r] - first_output] = True
        for k in range(count - 1, -1, -1):
            live[row, k] |= writes[code[row, k, 0]]
            if live[row, k]:
                for part in range(1, 1 + arity[code[row, k, 0]]):
                    if code[row, k, part] >= first_output:
                        live[row, code[row, k, part] - first_output] = True
        length = 0
        for k in range(count):
            if live[row, k]:
                code[row, length] = code[row, k]
                code[row, length, 0] = numbers[code[row, k, 0]]
                length += 1
        code_lengths[row] = length


@_compiled
def select(costs, candidates, cases):
    """A parent by lexicase selection: the best on one random case after another."""
    count = len(costs)
    for index in range(count):
        candidates[index] = index
    for done in range(len(cases)):
        other = np.random.randint(done, len(cases))
        cases[done], cases[other] = cases[other], cases[done]
        best = np.inf
        for place in range(count):
            best = min(best, costs[candidates[place], cases[done]])
        left = 0
        for place in range(count):
            if costs[candidates[place], cases[done]] == best:
                candidates[left] = candidates[place]
                left += 1
        count = left
        if count == 1:
            break
    return candidates[np.random.randint(0, count)]


@_compiled
def breed(instructions, lengths, costs, new_instructions, new_lengths, kinds, addition, changed_rows, crossover):
    """The next generation: rows of one or two parents, then uniform mutation by addition and deletion."""
    candidates, cases = np.zeros(len(costs), np.int64), np.arange(costs.shape[1])
    deletion = addition / (1 + addition)
    rows, longest = instructions.shape[1:]
    for child in range(len(costs)):
        one = select(costs, candidates, cases)
        other = select(costs, candidates, cases) if np.random.random() < crossover else one
        for row in range(rows):
            parent = one if np.random.random() < 0.5 else other
            rate = addition if np.random.random() < changed_rows else 0.0
            count = 0
            for place in range(lengths[parent, row] + 1):
                if np.random.random() < rate and count < longest and np.random.random() >= deletion:
                    new_instructions[child, row, count] = np.random.randint(0, kinds)
                    count += 1
                kept = rate == 0 or np.random.random() >= deletion
                if place < lengths[parent, row] and kept and count < longest:
                    new_instructions[child, row, count] = instructions[parent, row, place]
                    count += 1
            new_lengths[child, row] = count


def main() -> None:
    parser = argparse.ArgumentParser(description="Evolve programs until one solves a task.")
    parser.add_argument("task")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    done = evolve(get_task(arguments.task), arguments.seed, arguments.timeout)
    summary = f"{done.candidates:,} programs, {done.seconds:.1f} s with compiling"
    if done.program is None:
        raise SystemExit(f"none found: {summary}")
    print(table_to_text(simplify(done.program)))
    print(summary)


if __name__ == "__main__":
    main()
