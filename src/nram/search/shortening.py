"""The shortest of several programs that fit the pool, all reached from one table by changes that keep the fit."""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from nram.errors import NramError
from nram.programs.execute import execute
from nram.programs.ir import Program
from nram.programs.simplify import simplify
from nram.programs.simplify.specialise import visited_situations
from nram.search.chains import anneal, blocks_of
from nram.search.filling import filled
from nram.search.instances import Pool, exact
from nram.search.kernel import STOP, Annealing
from nram.search.structure import Structure
from nram.tasks.base import Instance

CHAINS = 6
ENOUGH = 3  # so many equally short ends of chains, and no shorter one: further chains would hardly be shorter
BUDGET = 150_000
MOST_RUNS = 45_000_000  # of instances, by a chain
HOT, COLD, LENGTH_COST = 0.03, 0.005, 0.02


def shortened(structure: Structure, genes: np.ndarray, pool: Pool, seed: int, monitor: np.ndarray) -> Program:
    """The shorter program that fits: that of the table itself, or of the end of one chain."""
    end = _end_of_chain(structure, genes, pool, seed, monitor, 1)
    return _shortest([simplified(structure, genes, pool), *([] if end is None else [end])], pool)


def shortest(
    program: Program, structure: Structure, genes: np.ndarray, pool: Pool, seed: int, monitor: np.ndarray, workers: int
) -> Program:
    """The shortest program that fits: what `shortened` gave, or the end of one of several further chains.

    As many chains run at once as there are workers. Their ends are used in order, so the number does not matter.
    """
    programs, index = [program], 2
    with ThreadPoolExecutor(workers) as executor:
        while index <= CHAINS and not monitor[STOP]:
            futures = [
                executor.submit(_end_of_chain, structure, genes, pool, seed, monitor, at)
                for at in range(index, min(index + workers, CHAINS + 1))
            ]
            for end in [future.result() for future in futures]:
                if end is not None and not _are_enough(programs):
                    programs.append(end)
            index = CHAINS + 1 if _are_enough(programs) else index + workers
    return _shortest(programs, pool)


def _end_of_chain(
    structure: Structure, genes: np.ndarray, pool: Pool, seed: int, monitor: np.ndarray, index: int
) -> Program | None:
    """The program at which a chain ends; None: it was out of time."""
    other = genes.copy()
    budget = min(BUDGET, MOST_RUNS // len(pool))
    settings = Annealing(seed + 7919 * index, budget, HOT, COLD, LENGTH_COST, len(pool), must_fit=True)
    anneal(structure, other, blocks_of(pool), len(pool), settings, monitor)
    return None if monitor[STOP] else simplified(structure, other, pool)


def _are_enough(programs: list[Program]) -> bool:
    lengths = [program.operations + program.rows for program in programs]
    return lengths.count(min(lengths)) >= ENOUGH


def _shortest(programs: list[Program], pool: Pool) -> Program:
    """The shortest of those that fit, and of these the one with the fewest steps."""
    fitting = []
    for program in programs:
        steps = _steps_if_it_fits(program, pool)
        if steps is not None:
            fitting.append((program.operations + program.rows, steps, str(program), program))
    if not fitting:
        raise NramError("simplifying changed what a program does: please report the command that led here")
    return min(fitting, key=lambda entry: entry[:3])[3]


def simplified(structure: Structure, genes: np.ndarray, pool: Pool) -> Program:
    """A table's program for the inputs of the pool: rows that none of them leads to are left out.

    What is written in a sketch stays as it is. A sketch in which nothing is written is searched like any structure.
    """
    template = structure.template
    if template is not None and not template.sketch.is_open:
        return filled(template, genes, pool)
    program = structure.program(genes, origin="searched")
    visited = set().union(*(visited_situations(program, instance, instance.steps) for instance in pool.instances))
    return simplify(program, visited=visited)


def _steps_if_it_fits(program: Program, pool: Pool) -> int | None:
    """The sum of a program's steps on the pool, or None if it gets an instance wrong or does not halt."""
    groups: defaultdict[tuple[int, int], list[Instance]] = defaultdict(list)
    for instance in pool.instances:
        groups[len(instance.input), instance.steps].append(instance)
    total = 0
    for (_, limit), instances in groups.items():
        result = execute(program, [instance.input for instance in instances], limit)
        if not (all(result.halted) and all(exact(instances, result.memory))):
            return None
        total += int(np.sum(result.steps))
    return total
