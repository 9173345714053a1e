"""The kernel judges as the interpreter does, and its chains keep what they promise."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from nram.programs import interpret
from nram.programs.library import zoo_entries
from nram.search.instances import Pool, task_pool
from nram.search.kernel import NOT_HALTING, judge, random_genes, run_chain
from nram.search.structure import Structure, embed
from nram.tasks import get_task
from nram.tasks.base import Instance

STRUCTURES = (Structure(1), Structure(2), Structure(3, 2), Structure(2, 1, states=3), Structure(4, 3))


def _genes(structure: Structure, seed: int) -> np.ndarray:
    genes = np.zeros((structure.rows, structure.width), np.int16)
    random_genes(seed, structure.codes, structure.registers, structure.states, genes)
    return genes


def _costs(structure: Structure, genes: np.ndarray, pool: Pool) -> np.ndarray:
    costs = np.zeros(len(pool))
    judge(structure.codes, structure.arity, structure.registers, genes, *pool.arrays, costs)
    return costs


def _chain(structure: Structure, genes: np.ndarray, pool: Pool, *, seed: int, budget: int, must_fit: bool = False):
    hot, cold, length_cost = (0.03, 0.005, 0.02) if must_fit else (0.3, 0.1, 0.0)
    return run_chain(
        seed,
        structure.codes,
        structure.arity,
        structure.registers,
        structure.states,
        genes,
        *pool.arrays,
        budget,
        hot,
        cold,
        length_cost,
        must_fit,
        np.zeros(4),
    )


def _any_pool(rng: Random, count: int) -> Pool:
    """Instances of no task: any memory, any cells, any wishes."""
    instances = []
    for _ in range(count):
        size = rng.randint(3, 9)
        memory, wish = ([rng.randrange(size) for _ in range(size)] for _ in range(2))
        cells = rng.sample(range(size), rng.randint(1, size))
        instances.append(Instance(memory, wish, cells, cells, rng.choice([1, 2, 5, 20])))
    return Pool(tuple(instances))


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
def test_costs_are_those_of_the_interpreter(structure):
    rng = Random(1)
    pool = _any_pool(rng, 25)
    for seed in range(12):
        genes = _genes(structure, seed)
        program = structure.program(genes)
        for instance, cost in zip(pool.instances, _costs(structure, genes, pool), strict=True):
            ending = interpret(program, instance.input, instance.steps)
            wrong = sum(ending.memory[cell] != instance.output[cell] for cell in instance.cells)
            expected = wrong / len(instance.cells) + (0 if ending.halted else NOT_HALTING)
            assert cost == pytest.approx(expected)


def test_a_chain_that_fits_leaves_a_table_that_fits():
    task = get_task("access")
    pool = task_pool(task, 0)
    structure = Structure(2)
    genes = _genes(structure, 3)
    fits, candidates, runs, best, active = _chain(structure, genes, pool, seed=3, budget=400_000)
    assert fits and best == 0 and candidates > 0 and runs > 0 and active <= len(pool)
    assert not _costs(structure, genes, pool).any()
    program = structure.program(genes)
    for instance in task.sample(30, 20, seed=9):
        ending = interpret(program, instance.input, instance.steps)
        assert ending.halted and ending.memory[0] == instance.output[0]


def test_the_same_seed_gives_the_same_table_and_another_seed_another():
    pool, structure = task_pool(get_task("merge"), 0), Structure(3, 2)
    tables = []
    for seed in (5, 5, 6):
        genes = _genes(structure, 1)
        _chain(structure, genes, pool, seed=seed, budget=3000)
        tables.append(genes)
    assert (tables[0] == tables[1]).all() and (tables[0] != tables[2]).any()


def test_shortening_keeps_the_fit_and_never_makes_it_longer():
    pool, structure = task_pool(get_task("access"), 0), Structure(2)
    genes = _genes(structure, 3)
    assert _chain(structure, genes, pool, seed=3, budget=400_000)[0]
    for seed in range(3):
        shorter = genes.copy()
        _chain(structure, shorter, pool, seed=seed, budget=20_000, must_fit=True)
        assert not _costs(structure, shorter, pool).any()


def test_a_chain_stops_when_it_is_told_to():
    pool, structure = task_pool(get_task("merge"), 0), Structure(3, 3)
    watch = np.array([1.0, 0, 0, 0])
    fits, candidates, *_ = run_chain(
        0,
        structure.codes,
        structure.arity,
        3,
        1,
        _genes(structure, 0),
        *pool.arrays,
        10**9,
        0.3,
        0.1,
        0.0,
        False,
        watch,
    )
    assert not fits and candidates < 10_000


@pytest.mark.parametrize("entry", zoo_entries(), ids=lambda entry: entry.title)
def test_a_program_put_into_a_table_and_back_does_the_same(entry):
    structure, genes = embed(entry.program)
    again = structure.program(genes)
    task = get_task(entry.program.task or "")
    for n in (2, 5, 9):
        for instance in task.sample(n, 20, seed=n, memory_size=task.least_memory(n) + 3):
            one, other = (interpret(program, instance.input, 200) for program in (entry.program, again))
            assert (one.memory, one.steps, one.halted) == (other.memory, other.steps, other.halted)
    pool = task_pool(task, 0)
    fine = [interpret(entry.program, instance.input, instance.steps).halted for instance in pool.instances]
    assert [cost == 0 for cost in _costs(structure, genes, pool)] == fine
