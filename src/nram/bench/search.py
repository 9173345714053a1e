"""Measuring the search: candidates a second on one core, beside plain loops over the same candidates, in one run.

A candidate is one proposed change of one row of the table. The chain recognises about a quarter of its candidates as
programs that do just what the one before did (the change concerns what is not used) and runs nothing for them; the
others are evaluated. The plain loops propose changes in the same way, and run every candidate on as many instances as
a chain starts with: by the annealer's evaluator without its tricks, all of them in one block, called from Python; or as
a `Program`, by machine code compiled for it or by the reference interpreter.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np
from llvmlite import binding

from nram.extensions import known_task
from nram.programs.interpret import interpret
from nram.programs.ir import Program
from nram.programs.native.jit import CompiledProgram
from nram.programs.simplify.specialise import visited_situations
from nram.search.chains import anneal, blocks_of, random_table, shape_of
from nram.search.instances import Pool, task_pool
from nram.search.kernel import NOT_HALTING, Annealing, ChainEnd, Shape, Table, costs_of, mutate, new_table
from nram.search.structure import Structure
from nram.tasks.base import Instance

HOT, COLD, LENGTH_COST = 0.3, 0.1, 0.03
AT_FIRST = 16  # instances in play when a chain begins: a full block
CHAIN = 1_000_000  # candidates of a chain, unless it finds a program earlier
HALF_WAY = 0.17  # the temperature
ON_THE_WAY = 50_000  # candidates until a table is like those of a chain at some temperature
SAMPLES = 2_000  # changes of such a table, to see how many leave the program as it is

WORKLOAD = (("copy", Structure(3, 1)), ("permutation", Structure(3, 2)))

CostOf = Callable[[np.ndarray], float]
"""A table's cost on all instances of a pool."""
CostFor = Callable[[Structure, Pool], CostOf]


class ChainSpeed(NamedTuple):
    candidates: int
    runs: int
    seconds: float


def measure(seconds: float, progress: Callable[[str], None]) -> dict[str, Any]:
    """Every task of the workload, each way for so many seconds."""
    workload = []
    for task, structure in WORKLOAD:
        progress(f"{task}, {structure}")
        workload.append(measure_task(task, structure, seconds))
    return {"processor": binding.get_host_cpu_name(), "instances_of_plain_loops": AT_FIRST, "tasks": workload}


def measure_task(task: str, structure: Structure, seconds: float) -> dict[str, Any]:
    pool = task_pool(known_task(task), 0)
    chain = time_chains(structure, pool, seconds)
    rate = chain.candidates / chain.seconds
    unchanged = unchanged_share(structure, pool)
    result: dict[str, Any] = {
        "task": task,
        "structure": str(structure),
        "candidates_per_s": rate,
        "unchanged": unchanged,
        "evaluated_per_s": rate * (1 - unchanged),
        "runs_per_s": chain.runs / chain.seconds,
    }
    for name, cost_for in PLAIN_LOOPS.items():
        plain = time_plain_loop(structure, pool, cost_for, seconds)
        result[f"{name}_per_s"] = plain
        result[f"times_{name}"] = rate / plain
    return result


# ---- the chain


def run_chain(
    structure: Structure, pool: Pool, genes: np.ndarray, seed: int, budget: int, hot: float = HOT, cold: float = COLD
) -> ChainEnd:
    """A chain as the search runs it, but on instances of all sizes from the start. It changes `genes` in place."""
    blocks = blocks_of(pool, Random(seed).sample(range(len(pool)), len(pool)))
    return anneal(structure, genes, blocks, len(pool), Annealing(seed, budget, hot, cold, LENGTH_COST, AT_FIRST))


def table_on_the_way(structure: Structure, pool: Pool, seed: int, temperature: float) -> np.ndarray:
    genes = random_table(structure, seed)
    run_chain(structure, pool, genes, seed, ON_THE_WAY, temperature, temperature)
    return genes


def time_chains(structure: Structure, pool: Pool, seconds: float) -> ChainSpeed:
    """Chains from seeds 1, 2, 3 and so on, until the time is over."""
    run_chain(structure, pool, random_table(structure, 1), 1, 1)  # compiled, or loaded, before the clock starts
    candidates = runs = seed = 0
    passed = 0.0
    while passed < seconds:
        seed += 1
        genes = random_table(structure, seed)
        began = time.process_time()
        end = run_chain(structure, pool, genes, seed, CHAIN)
        passed += time.process_time() - began
        candidates, runs = candidates + end.candidates, runs + end.runs
    return ChainSpeed(candidates, runs, passed)


def unchanged_share(structure: Structure, pool: Pool, samples: int = SAMPLES) -> float:
    """How many of the changes proposed to tables on a chain's way leave the program as it is."""
    generator = np.random.default_rng(0)
    same, shape = 0, shape_of(structure)
    temperatures = (HOT, HALF_WAY, COLD)
    for seed, temperature in enumerate(temperatures, 1):
        table = new_table(shape, table_on_the_way(structure, pool, seed, temperature))
        visited = visited_rows(structure.program(table.genes), spread(pool))
        state = np.array([seed], np.uint64)
        for _ in range(samples):
            # One change in sixteen may concern a row that no run visits, as in the chain.
            rows = visited if generator.integers(16) else range(structure.rows)
            row = int(generator.choice(rows))
            changed = changed_genes(shape, table, row, state)
            same += row_meaning(shape, changed[row]) == row_meaning(shape, table.genes[row])
    return same / (samples * len(temperatures))


def changed_genes(shape: Shape, table: Table, row: int, state: np.ndarray) -> np.ndarray:
    """A copy with one change to a row, proposed as a chain does; `state` is that of the random numbers."""
    changed = table.genes.copy()
    mutate(state, shape, changed, row, table.live[row])
    return changed


def live_code(shape: Shape, genes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The operations of a row that matter, and which of all they are."""
    table = new_table(shape, genes[None])
    return table.code[0, : table.lengths[0]], table.live[0]


def row_meaning(shape: Shape, genes: np.ndarray) -> tuple[bytes, bool, bytes]:
    """What a row does: its live operations, whether it halts, and if not what it leaves behind."""
    code, _ = live_code(shape, genes)
    halts = bool(genes[-2])
    return code.tobytes(), halts, b"" if halts else genes[-2 - shape.registers :].tobytes()


def visited_rows(program: Program, instances: Sequence[Instance]) -> list[int]:
    """The numbers of the table's rows through which the runs go."""
    situations = set().union(*(visited_situations(program, instance, instance.steps) for instance in instances))
    registers = len(program.registers)
    return sorted((state << registers) + sum(zero << r for r, zero in enumerate(flags)) for state, flags in situations)


def spread(pool: Pool) -> Sequence[Instance]:
    """As many instances as a chain has in play at first, of all sizes."""
    return pool.instances[:: max(1, len(pool) // AT_FIRST)][:AT_FIRST]


# ---- plain loops


def time_plain_loop(structure: Structure, pool: Pool, cost_for: CostFor, seconds: float) -> float:
    """Candidates a second of annealing written down plainly."""
    loop = PlainLoop(structure, pool, cost_for)
    loop.step()
    began = time.process_time()
    tried = 0
    while time.process_time() - began < seconds:
        loop.step()
        tried += 1
    return tried / (time.process_time() - began)


class PlainLoop:
    """Change a row, run the program on all instances, take it or leave it. It begins half-way."""

    def __init__(self, structure: Structure, pool: Pool, cost_for: CostFor, seed: int = 1):
        self.shape = shape_of(structure)
        self.cost = cost_for(structure, Pool(tuple(spread(pool))))
        self.table = new_table(self.shape, table_on_the_way(structure, pool, seed, HALF_WAY))
        self.total = self.cost(self.table.genes)
        self.generator = np.random.default_rng(seed)
        self.state = np.array([seed], np.uint64)

    def step(self) -> None:
        row = int(self.generator.integers(len(self.table.genes)))
        changed = changed_genes(self.shape, self.table, row, self.state)
        total = self.cost(changed)
        if total <= self.total - HALF_WAY * math.log(1 - self.generator.random()):
            self.table, self.total = new_table(self.shape, changed), total


def by_evaluator(structure: Structure, pool: Pool) -> CostOf:
    """The cost by the annealer's own evaluator, with every row compiled and every instance run."""
    blocks, costs = blocks_of(pool), np.zeros(len(pool))
    shape = shape_of(structure, blocks)

    def cost(genes: np.ndarray) -> float:
        costs_of(shape, genes, blocks, costs)
        return float(costs.sum())

    return cost


def by_native_code(structure: Structure, pool: Pool) -> CostOf:
    """The cost by machine code made for this program."""

    def cost(genes: np.ndarray) -> float:
        code = CompiledProgram(structure.program(genes))
        total = 0.0
        for instance in pool.instances:
            batch = np.array([instance.input], np.int32)
            _, _, halted = code.run_batch(batch, instance.steps)
            total += _cost(instance, batch[0], bool(halted[0]))
        return total

    return cost


def by_interpreter(structure: Structure, pool: Pool) -> CostOf:
    """The cost by the reference interpreter."""

    def cost(genes: np.ndarray) -> float:
        program = structure.program(genes)
        total = 0.0
        for instance in pool.instances:
            ending = interpret(program, instance.input, instance.steps)
            total += _cost(instance, ending.memory, ending.halted)
        return total

    return cost


PLAIN_LOOPS: dict[str, CostFor] = {
    "evaluator": by_evaluator,
    "native": by_native_code,
    "interpreter": by_interpreter,
}


def _cost(instance: Instance, memory: Any, halted: bool) -> float:
    wrong = sum(memory[cell] != instance.output[cell] for cell in instance.cells)
    return wrong / len(instance.cells) + (0 if halted else NOT_HALTING)
