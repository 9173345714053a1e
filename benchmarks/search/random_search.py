"""Random search: draws tables until one fits and generalises.

A table is the same as in the search: a row for every combination of flags, with all modules in their order. Each row is
compiled to its live operations when a run first reaches it. A table is dropped at the first instance it gets wrong.

    .venv/bin/python benchmarks/search/random_search.py TASK REGISTERS REPEATS [--timeout SECONDS] [--seed S]
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from nram.extensions import get_task
from nram.programs.ir import MODULES, Constant, Operation, Output, Program, Register, Row, Value
from nram.programs.simplify import simplify
from nram.programs.text import table_to_text
from nram.search.counterexamples import find_counterexamples
from nram.search.instances import Pool, task_pool
from nram.search.structure import Structure
from nram.tasks.base import Task

AT_ONCE = 200_000  # tables between two checks of the time
CONSTANTS = 3  # 0, 1 and 2 are values without a module
READ, INC, ADD, SUB, DEC, LESS, LESS_EQUAL, EQUAL, MIN, MAX, WRITE = range(11)
CODES = {name: code for code, name in enumerate(name for name in MODULES if MODULES[name].arity > 0)}

_compiled: Any = njit(cache=True, nogil=True, boundscheck=False)


@dataclass(frozen=True)
class Drawn:
    """The result. Without a program, the time ran out."""

    program: Program | None
    seconds: float
    candidates: int


def draw(task: Task, structure: Structure, seed: int, timeout: float) -> Drawn:
    """Find a program that fits the pool and generalises, by the same test as the search, until the timeout."""
    began = time.monotonic()
    pool = task_pool(task, seed)
    arrays = Arrays.of(pool)
    codes = np.array([CODES[name] for name in structure.sequence])
    arity = np.array([MODULES[name].arity for name in structure.sequence])
    genes = np.zeros((structure.rows, 3 * len(codes) + structure.registers + 1), np.int16)
    order = np.random.default_rng(seed).permutation(len(pool))
    start_random_numbers(seed)
    candidates = 0
    while time.monotonic() - began < timeout:
        fits, drawn = draw_tables(codes, arity, structure.registers, genes, *arrays, order, AT_ONCE)
        candidates += drawn
        if fits:
            program = program_of(structure, genes)
            wrong = find_counterexamples(program, task, seed)
            if not wrong:
                return Drawn(program, time.monotonic() - began, candidates)
            pool = pool.joined(wrong)
            arrays = Arrays.of(pool)
            order = np.arange(len(pool))[::-1].copy()
    return Drawn(None, time.monotonic() - began, candidates)


class Arrays(NamedTuple):
    """The pool as arrays for compiled code, padded with 0."""

    starts: np.ndarray
    sizes: np.ndarray
    limits: np.ndarray
    cells: np.ndarray
    wanted: np.ndarray
    cell_counts: np.ndarray

    @classmethod
    def of(cls, pool: Pool) -> Arrays:
        instances = pool.instances
        wanted = [[instance.output[cell] for cell in instance.cells] for instance in instances]
        return cls(
            starts=_rectangle([instance.input for instance in instances]),
            sizes=np.array([len(instance.input) for instance in instances]),
            limits=np.array([instance.steps for instance in instances]),
            cells=_rectangle([instance.cells for instance in instances]),
            wanted=_rectangle(wanted),
            cell_counts=np.array([len(instance.cells) for instance in instances]),
        )


def _rectangle(lists: list[list[int]]) -> np.ndarray:
    array = np.zeros((len(lists), max(map(len, lists))), np.int32)
    for row, values in zip(array, lists, strict=True):
        row[: len(values)] = values
    return array


def program_of(structure: Structure, genes: np.ndarray) -> Program:
    """The program of a table."""
    count, first_output = len(structure.sequence), CONSTANTS + structure.registers

    def row_of(flags: int) -> Row:
        numbers = genes[flags].tolist()
        places: dict[int, int] = {}
        operations: list[Operation] = []

        def value(number: int) -> Value:
            if number < CONSTANTS:
                return Constant(number)
            return Register(number - CONSTANTS) if number < first_output else Output(places[number - first_output])

        for k, name in enumerate(structure.sequence):
            if numbers[3 * k + 2]:
                places[k] = len(operations)
                operations.append(Operation(name, tuple(map(value, numbers[3 * k : 3 * k + MODULES[name].arity]))))
        when = tuple(bool(flags >> r & 1) for r in range(structure.registers))
        return Row(when, tuple(operations), tuple(map(value, numbers[3 * count : -1])), bool(numbers[-1]))

    names = tuple(f"r{r + 1}" for r in range(structure.registers))
    return Program(names, (tuple(map(row_of, range(structure.rows))),))


# ---- compiled


@_compiled
def start_random_numbers(seed):
    np.random.seed(seed)


@_compiled
def draw_value(codes, registers, operation):
    """A random value that this operation may use: a constant, a register, or an earlier output that is not WRITE's."""
    while True:
        value = np.random.randint(0, CONSTANTS + registers + operation)
        if value < CONSTANTS + registers or codes[value - CONSTANTS - registers] != WRITE:
            return value


@_compiled
def draw_row(codes, registers, genes):
    """For each operation two arguments and whether it is there; then the registers' values; then whether it halts."""
    count = len(codes)
    for k in range(count):
        genes[3 * k] = draw_value(codes, registers, k)
        genes[3 * k + 1] = draw_value(codes, registers, k)
        genes[3 * k + 2] = np.random.randint(0, 2) if codes[k] == WRITE else 1
    for r in range(registers):
        genes[3 * count + r] = draw_value(codes, registers, count)
    genes[3 * count + registers] = np.random.randint(0, 5) == 0


@_compiled
def compile_row(codes, arity, registers, genes, code, live):
    """The operations of a row that matter, as (module, first, second, output); returns how many."""
    count, first_output = len(codes), CONSTANTS + registers
    live[:] = False
    if not genes[3 * count + registers]:
        for r in range(registers):
            live[max(genes[3 * count + r] - first_output, -1)] = True
    for k in range(count - 1, -1, -1):
        live[k] = genes[3 * k + 2] == 1 if codes[k] == WRITE else live[k]
        if live[k]:
            for which in range(arity[k]):
                live[max(genes[3 * k + which] - first_output, -1)] = True
    length = 0
    for k in range(count):
        if live[k]:
            code[length, 0] = codes[k]
            code[length, 1] = genes[3 * k]
            code[length, 2] = genes[3 * k + arity[k] - 1]
            code[length, 3] = first_output + k
            length += 1
    return length


@_compiled
def operate(module, x, y, size, memory):
    if module == READ:
        return memory[x]
    if module == INC:
        return x + 1 if x + 1 < size else 0
    if module == ADD:
        return x + y if x + y < size else x + y - size
    if module == SUB:
        return x - y if x >= y else x - y + size
    if module == DEC:
        return x - 1 if x > 0 else size - 1
    if module == LESS:
        return 1 if x < y else 0
    if module == LESS_EQUAL:
        return 1 if x <= y else 0
    if module == EQUAL:
        return 1 if x == y else 0
    if module == MIN:
        return min(x, y)
    if module == MAX:
        return max(x, y)
    memory[x] = y
    return 0


@_compiled
def draw_tables(codes, arity, registers, genes, starts, sizes, limits, cells, wanted, cell_counts, order, budget):
    """Fill `genes` at random until it fits every instance: whether it does, and how many tables were drawn.

    A row is drawn when a run first comes to it. An instance that refused a table is tried earlier with the next.
    """
    rows, count = len(genes), len(codes)
    code = np.zeros((rows, count, 4), np.int16)
    lengths = np.zeros(rows, np.int64)
    live = np.zeros(count + 1, np.bool_)  # the last entry is for sources that are not outputs
    memory = np.zeros(starts.shape[1], np.int32)
    values = np.zeros(CONSTANTS + registers + count, np.int32)
    values[:CONSTANTS] = np.arange(CONSTANTS)
    held = np.zeros(registers, np.int32)
    for drawn in range(budget):
        lengths[:] = -1
        fits = True
        for q in range(len(order)):
            i = order[q]
            size = sizes[i]
            memory[:size] = starts[i, :size]
            values[CONSTANTS : CONSTANTS + registers] = 0
            row = rows - 1
            fits = False
            for _ in range(limits[i]):
                if lengths[row] < 0:
                    draw_row(codes, registers, genes[row])
                    lengths[row] = compile_row(codes, arity, registers, genes[row], code[row], live)
                for j in range(lengths[row]):
                    x, y = values[code[row, j, 1]], values[code[row, j, 2]]
                    values[code[row, j, 3]] = operate(code[row, j, 0], x, y, size, memory)
                if genes[row, 3 * count + registers]:
                    fits = True
                    break
                for r in range(registers):
                    held[r] = values[genes[row, 3 * count + r]]
                row = 0
                for r in range(registers):
                    values[CONSTANTS + r] = held[r]
                    row |= (held[r] == 0) << r
            for c in range(cell_counts[i]):
                fits = fits and memory[cells[i, c]] == wanted[i, c]
            if not fits:
                if q > 0:
                    order[q], order[q - 1] = order[q - 1], order[q]
                break
        if fits:
            for row in range(rows):
                if lengths[row] < 0:
                    draw_row(codes, registers, genes[row])
            return True, drawn + 1
    return False, budget


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw programs at random until one solves a task.")
    parser.add_argument("task")
    parser.add_argument("registers", type=int)
    parser.add_argument("repeats", type=int)
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    structure = Structure(arguments.registers, arguments.repeats)
    done = draw(get_task(arguments.task), structure, arguments.seed, arguments.timeout)
    summary = f"{done.candidates:,} tables, {done.seconds:.1f} s with compiling"
    if done.program is None:
        raise SystemExit(f"none found: {summary}")
    print(table_to_text(simplify(done.program)))
    print(summary)


if __name__ == "__main__":
    main()
