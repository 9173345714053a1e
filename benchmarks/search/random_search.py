"""Random search: tables drawn one after another, by the search's own evaluator, until one fits and generalises."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from nram.programs.ir import Program
from nram.search.for_task import find_counterexamples
from nram.search.instances import task_pool
from nram.search.kernel import CONSTANTS, compile_row, random_row, run_instance
from nram.search.structure import Structure
from nram.tasks.base import Task

AT_ONCE = 200_000  # tables between two looks at the clock

_compiled: Any = njit(cache=True, nogil=True, boundscheck=False)


@dataclass(frozen=True)
class Drawn:
    """How it ended. Without a program the time was over."""

    program: Program | None
    seconds: float
    candidates: int


def draw(task: Task, structure: Structure, seed: int, timeout: float) -> Drawn:
    """A program that fits the pool and generalises, as the search has it, or the end of the time."""
    pool = task_pool(task, seed)
    genes = np.zeros((structure.rows, structure.width), np.int16)
    state = np.array([2 * seed + 1], np.uint64)
    order = np.random.default_rng(seed).permutation(len(pool))
    shape = structure.codes, structure.arity, structure.registers, structure.states
    draw_tables(state, *shape, genes, *pool.arrays, order, 0)  # compiled, or loaded, before the clock starts
    began = time.monotonic()
    candidates = 0
    while time.monotonic() - began < timeout:
        fits, drawn = draw_tables(state, *shape, genes, *pool.arrays, order, AT_ONCE)
        candidates += drawn
        if fits:
            program = structure.program(genes)
            wrong = find_counterexamples(program, task, seed)
            if not wrong:
                return Drawn(program, time.monotonic() - began, candidates)
            pool = pool.joined(wrong)
            order = np.arange(len(pool))[::-1].copy()
    return Drawn(None, time.monotonic() - began, candidates)


@_compiled
def draw_tables(
    state,
    modules,
    arity,
    registers,
    states,
    genes,
    starts,
    sizes,
    limits,
    cells,
    wanted,
    cell_counts,
    order,
    budget,
):
    """Fill `genes` at random until it fits every instance: whether it does, and how many tables were drawn.

    A table is given up at the first instance that it gets wrong; that one is tried earlier with the next.
    """
    rows, count = len(genes), len(modules)
    code = np.zeros((rows, count, 4), np.int16)
    lengths = np.zeros(rows, np.int64)
    live = np.zeros(count, np.bool_)
    memory = np.zeros(starts.shape[1], np.int32)
    values = np.zeros(CONSTANTS + registers + count, np.int32)
    held = np.zeros(registers, np.int32)
    for drawn in range(budget):
        for row in range(rows):
            random_row(state, modules, registers, states, genes[row])
            lengths[row] = compile_row(modules, arity, registers, genes[row], code[row], live)
        fits = True
        for q in range(len(order)):
            i = order[q]
            cost, _ = run_instance(
                registers,
                genes,
                code,
                lengths,
                starts[i],
                sizes[i],
                limits[i],
                cells[i],
                wanted[i],
                cell_counts[i],
                memory,
                values,
                held,
            )
            if cost > 0:
                if q > 0:
                    order[q], order[q - 1] = order[q - 1], order[q]
                fits = False
                break
        if fits:
            return True, drawn + 1
    return False, budget
