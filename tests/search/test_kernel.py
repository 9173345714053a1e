"""The kernel scores tables as the interpreter does, and its chains keep what they promise."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import numpy as np
import pytest

from nram.bench.search import live_code, visited_rows
from nram.extensions import get_task
from nram.programs import ir
from nram.programs.interpret import interpret
from nram.programs.library import zoo_entries
from nram.search import kernel
from nram.search.chains import anneal, blocks_of, new_monitor, random_table, shape_of, table_costs
from nram.search.instances import Pool, task_pool
from nram.search.kernel import (
    CANDIDATES,
    COST,
    IN_PLAY,
    LANES,
    LOOK_UP,
    NOT_HALTING,
    ROW_LENGTH,
    STOP,
    Annealing,
    Blocks,
    ChainEnd,
)
from nram.search.structure import Structure, embed
from nram.tasks.base import Instance

STRUCTURES = (Structure(1), Structure(2), Structure(3, 2), Structure(2, 1, states=3), Structure(4, 3))
AT_FIRST = 16
# The same all the time: a shorter chain is then the beginning of a longer one.
WARM: dict[str, Any] = {"hot": 0.1, "cold": 0.1}


def _costs(structure: Structure, genes: np.ndarray, pool: Pool) -> np.ndarray:
    return table_costs(structure, genes, blocks_of(pool), len(pool))


def _chain(
    structure: Structure,
    genes: np.ndarray,
    pool: Pool,
    *,
    seed: int,
    budget: int,
    blocks: Blocks | None = None,
    hot: float = 0.3,
    cold: float = 0.1,
    length_cost: float = 0.0,
    at_first: int = AT_FIRST,
    must_fit: bool = False,
    monitor: np.ndarray | None = None,
) -> ChainEnd:
    settings = Annealing(seed, budget, hot, cold, length_cost, at_first, must_fit)
    return anneal(structure, genes, blocks_of(pool) if blocks is None else blocks, len(pool), settings, monitor)


def _any_pool(rng: Random, count: int) -> Pool:
    """Instances of no task: any memory, any cells, any wishes."""
    instances = []
    for _ in range(count):
        size = rng.randint(3, 9)
        memory, wish = ([rng.randrange(size) for _ in range(size)] for _ in range(2))
        cells = rng.sample(range(size), rng.randint(1, size))
        instances.append(Instance(memory, wish, cells, cells, rng.choice([1, 2, 5, 20])))
    return Pool(tuple(instances))


def _in_place(blocks: Blocks, place: int) -> tuple[Any, ...]:
    """The instance that stands in a place, as far as blocks hold it."""
    block, lane = divmod(place, LANES)
    return tuple(array[block, ..., lane].tolist() for array in blocks)


def _length(structure: Structure, genes: np.ndarray, pool: Pool) -> int:
    """What a chain with `must_fit` makes small."""
    rows = visited_rows(structure.program(genes), pool.instances)
    return sum(len(live_code(shape_of(structure), genes[row])[0]) + ROW_LENGTH for row in rows)


@pytest.fixture(scope="module")
def access() -> tuple[Structure, Pool, np.ndarray]:
    """A structure, a pool and a table that fits it."""
    structure, pool = Structure(2), task_pool(get_task("access"), 0)
    genes = random_table(structure, 3)
    assert _chain(structure, genes, pool, seed=3, budget=400_000).fits
    return structure, pool, genes


# ---- scores


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
def test_costs_are_those_of_the_interpreter(structure):
    rng = Random(1)
    pool = _any_pool(rng, 25)
    for seed in range(12):
        genes = random_table(structure, seed)
        program = structure.program(genes)
        for instance, cost in zip(pool.instances, _costs(structure, genes, pool), strict=True):
            ending = interpret(program, instance.input, instance.steps)
            wrong = sum(ending.memory[cell] != instance.output[cell] for cell in instance.cells)
            expected = wrong / len(instance.cells) + (0 if ending.halted else NOT_HALTING)
            assert cost == pytest.approx(expected)


# ---- chains


def test_rows_that_no_run_visits_follow_rows_that_runs_visit():
    structure, pool = Structure(3), task_pool(get_task("copy"), 0)
    shape = shape_of(structure)
    alike = 0
    for seed in range(8):
        genes = random_table(structure, seed)
        _chain(structure, genes, pool, seed=seed, budget=20_000)
        visited = visited_rows(structure.program(genes), pool.instances)
        others = set(range(structure.rows)) - set(visited)
        codes = [live_code(shape, genes[row]) for row in range(structure.rows)]
        alike += sum(str(codes[other]) == str(codes[row]) for other in others for row in visited)
    assert alike > 5  # of 26; without following, 2 of 33


def test_a_chain_that_fits_leaves_a_table_that_fits():
    task = get_task("access")
    pool = task_pool(task, 0)
    structure = Structure(2)
    genes = random_table(structure, 3)
    fits, candidates, runs, best, active = _chain(structure, genes, pool, seed=3, budget=400_000)
    assert fits and best == 0 and candidates > 0 and runs > 0 and AT_FIRST <= active <= len(pool)
    assert not _costs(structure, genes, pool).any()
    program = structure.program(genes)
    for instance in task.sample(30, 20, seed=9):
        ending = interpret(program, instance.input, instance.steps)
        assert ending.halted and ending.memory[0] == instance.output[0]


@pytest.mark.parametrize("length_cost", [0.0, 0.03])
def test_the_same_seed_gives_the_same_table_and_another_seed_another(length_cost):
    pool, structure = task_pool(get_task("merge"), 0), Structure(3, 2)
    endings, tables = [], []
    for seed in (5, 5, 6):
        genes = random_table(structure, 1)
        endings.append(_chain(structure, genes, pool, seed=seed, budget=3000, length_cost=length_cost))
        tables.append(genes)
    assert endings[0] == endings[1] and endings[0] != endings[2]
    assert (tables[0] == tables[1]).all() and (tables[0] != tables[2]).any()


@pytest.mark.parametrize(
    ("task", "structure", "at_first", "length_cost"),
    [("copy", Structure(2), 2, 0.0), ("permutation", Structure(2, 2), 3, 0.03), ("merge", Structure(4, 2), 37, 0.03)],
)
def test_the_cost_that_a_chain_keeps_is_that_of_its_table_on_what_is_in_play(task, structure, at_first, length_cost):
    pool = task_pool(get_task(task), 0)
    for looks in (1, 5):
        genes, blocks, monitor = random_table(structure, 8), blocks_of(pool), new_monitor()
        same: dict[str, Any] = {"seed": 8, "at_first": at_first, "length_cost": length_cost, **WARM}
        fits, *_, active = _chain(structure, genes, pool, budget=looks * LOOK_UP, blocks=blocks, **same)
        assert not fits
        _chain(structure, random_table(structure, 8), pool, budget=looks * LOOK_UP + 1, monitor=monitor, **same)
        costs = table_costs(structure, genes, blocks, len(pool))
        assert monitor.tolist() == pytest.approx([0, looks * LOOK_UP, costs[:active].sum(), active])


def test_instances_that_join_stay_in_play_and_none_is_lost():
    structure, pool, at_first = Structure(2), task_pool(get_task("copy"), 0), 2
    most = 0
    for seed in range(3):
        order = pool.shortest_first(Random(seed))
        before = blocks_of(pool, order)
        everything = sorted(_in_place(before, place) for place in range(len(pool)))
        in_play = [_in_place(before, place) for place in range(at_first)]
        for budget in (100, 1_000, 10_000, 100_000):
            genes, blocks = random_table(structure, seed), blocks_of(pool, order)
            *_, active = _chain(
                structure, genes, pool, seed=seed, budget=budget, blocks=blocks, at_first=at_first, **WARM
            )
            assert [_in_place(blocks, place) for place in range(len(in_play))] == in_play
            assert sorted(_in_place(blocks, place) for place in range(len(pool))) == everything
            in_play = [_in_place(blocks, place) for place in range(active)]
        most = max(most, len(in_play))
    assert most > LANES


def test_instances_join_when_a_table_fits_all_in_play_and_gets_them_wrong():
    structure, pool, at_first = Structure(2), task_pool(get_task("copy"), 0), 4
    moved = 0
    for seed in range(3):
        order = pool.shortest_first(Random(seed))

        def begun(budget: int, seed: int = seed, order: Sequence[int] = order) -> tuple[np.ndarray, Blocks, int]:
            """The beginning of a chain: its table, the instances in their places, and how many are in play."""
            genes, blocks = random_table(structure, seed), blocks_of(pool, order)
            *_, active = _chain(
                structure, genes, pool, seed=seed, budget=budget, blocks=blocks, at_first=at_first, **WARM
            )
            return genes, blocks, active

        without, joined = 0, 1 << 17
        while joined - without > 1:
            middle = (without + joined) // 2
            without, joined = (middle, joined) if begun(middle)[-1] == at_first else (without, middle)
        genes, blocks, active = begun(joined)
        costs = table_costs(structure, genes, blocks, len(pool))
        assert active > at_first and not costs[:at_first].any() and costs[at_first:active].all()
        moved += sum(_in_place(blocks, place) != _in_place(blocks_of(pool, order), place) for place in range(active))
    assert moved > 0


def test_a_chain_has_all_in_play_if_there_are_fewer_than_it_begins_with():
    structure, pool = Structure(2), _any_pool(Random(3), 5)
    *_, active = _chain(structure, random_table(structure, 0), pool, seed=0, budget=2000)
    assert active == 5


# ---- chains from a table that fits


def test_shortening_keeps_the_fit_and_never_makes_it_longer(access):
    structure, pool, genes = access
    before = _length(structure, genes, pool)
    lengths = []
    for seed in range(4):
        shorter = genes.copy()
        settings: dict[str, Any] = (
            {"hot": 0.03, "cold": 0.005, "length_cost": 0.02} if seed % 2 else {"length_cost": 0.1}
        )
        fits, candidates, _, _, active = _chain(
            structure, shorter, pool, seed=seed, budget=20_000, must_fit=True, **settings
        )
        assert fits and candidates == 20_000 and active == len(pool)
        assert not _costs(structure, shorter, pool).any()
        lengths.append(_length(structure, shorter, pool))
    assert max(lengths) <= before and min(lengths) < before


def test_shortening_that_is_stopped_leaves_a_table_that_fits_however_hot_it_is(access):
    structure, pool, genes = access
    table, monitor = genes.copy(), new_monitor()
    settings: dict[str, Any] = {"budget": 10**9, "must_fit": True, "hot": 100.0, "cold": 100.0, "length_cost": 0.02}
    with ThreadPoolExecutor(1) as executor:
        chain = executor.submit(lambda: _chain(structure, table, pool, seed=1, monitor=monitor, **settings))
        _stop_on_the_way(monitor)
        assert 0 < chain.result().candidates < 10**9
    assert (table != genes).any() and not _costs(structure, table, pool).any()


# ---- being told to stop


def _stop_on_the_way(monitor: np.ndarray) -> None:
    while monitor[CANDIDATES] == 0:
        time.sleep(0.001)
    monitor[STOP] = 1


def test_a_chain_that_is_told_to_stop_before_it_begins_leaves_its_table_as_it_was():
    pool, structure = task_pool(get_task("merge"), 0), Structure(3, 3)
    genes = random_table(structure, 0)
    fits, candidates, *_ = _chain(structure, genes, pool, seed=0, budget=10**9, monitor=np.array([1.0, 0, 0, 0]))
    assert not fits and candidates == 0 and (genes == random_table(structure, 0)).all()


def test_a_chain_stops_when_it_is_told_to_on_the_way():
    pool, structure, monitor = task_pool(get_task("merge"), 0), Structure(3, 1), new_monitor()
    with ThreadPoolExecutor(1) as executor:
        chain = executor.submit(
            lambda: _chain(structure, random_table(structure, 0), pool, seed=0, budget=10**9, monitor=monitor)
        )
        _stop_on_the_way(monitor)
        fits, candidates, _, best, active = chain.result()
    assert not fits and 0 < candidates < 10**9 and candidates % LOOK_UP == 0
    assert 0 < best <= monitor[COST] and monitor[IN_PLAY] == active


# ---- programs as tables


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


# ---- the cache


def test_the_kernel_knows_as_many_constants_as_programs_have():
    """The number is written in the kernel's own file, which is all that the cache looks at."""
    assert len(ir.CONSTANTS) == kernel.CONSTANTS
