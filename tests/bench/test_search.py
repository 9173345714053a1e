"""The measurements of the search: what they compare is the same work, and the command prints figures."""

import json

import numpy as np
import pytest

from nram.bench.search import (
    PLAIN_LOOPS,
    PlainLoop,
    by_evaluator,
    by_interpreter,
    row_meaning,
    unchanged_share,
    visited_rows,
)
from nram.cli import main
from nram.extensions import get_task
from nram.search.chains import random_table, shape_of
from nram.search.instances import Pool, task_pool
from nram.search.structure import Structure


@pytest.fixture(scope="module")
def copy_pool() -> Pool:
    return task_pool(get_task("copy"), 3)


@pytest.mark.parametrize("structure", [Structure(3), Structure(2, 1, states=2), Structure(4, 2)], ids=str)
def test_all_ways_of_scoring_a_table_give_the_same_cost(structure, copy_pool):
    pool = Pool(copy_pool.instances[::40])
    costs_of = {name: cost_for(structure, pool) for name, cost_for in PLAIN_LOOPS.items()}
    for seed in range(2):
        genes = random_table(structure, seed)
        costs = {name: cost(genes) for name, cost in costs_of.items()}
        assert costs == pytest.approx(dict.fromkeys(PLAIN_LOOPS, costs["evaluator"]))


def test_plain_loops_go_the_same_way_with_every_way_of_scoring(copy_pool):
    structure = Structure(3)
    loops = [PlainLoop(structure, copy_pool, cost_for) for cost_for in (by_evaluator, by_interpreter)]
    before = loops[0].table.genes.copy()
    for _ in range(40):
        for loop in loops:
            loop.step()
    assert np.array_equal(loops[0].table.genes, loops[1].table.genes)
    assert not np.array_equal(loops[0].table.genes, before)


def test_a_row_means_the_same_until_something_it_uses_is_changed():
    structure = Structure(2)
    width, write = structure.width, structure.sequence.index("WRITE")
    assert structure.operations[write].memory == "writes"
    row = np.zeros(width, np.int16)  # uses no operation: both registers become 0
    shape = shape_of(structure)
    meaning = row_meaning(shape, row)
    unused = row.copy()
    unused[0] = 4  # READ's argument
    assert row_meaning(shape, unused) == meaning
    written = row.copy()
    written[3 * write + 2] = 1
    assert row_meaning(shape, written) != meaning
    assert row_meaning(shape, _with(row, -4, 1)) != meaning
    halting = _with(row, -2, 1)
    assert row_meaning(shape, halting) != meaning
    assert row_meaning(shape, _with(halting, -4, 1)) == row_meaning(shape, halting)


def _with(genes: np.ndarray, place: int, value: int) -> np.ndarray:
    changed = genes.copy()
    changed[place] = value
    return changed


def test_runs_begin_in_the_row_where_all_registers_are_zero(copy_pool):
    structure = Structure(3)
    for seed in range(5):
        assert structure.rows - 1 in visited_rows(
            structure.program(random_table(structure, seed)), copy_pool.instances[:3]
        )


def test_some_changes_leave_the_program_as_it_is_and_some_do_not(copy_pool):
    assert 0.1 < unchanged_share(Structure(3), copy_pool, samples=300) < 0.9


@pytest.mark.slow
def test_the_command_prints_rates_and_ratios_for_both_tasks(capsys):
    assert main(["bench", "search", "--seconds", "1", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["tasks"]
    assert [row["task"] for row in rows] == ["copy", "permutation"]
    for row in rows:
        assert row["evaluated_per_s"] == pytest.approx(row["candidates_per_s"] * (1 - row["unchanged"]))
        for name in PLAIN_LOOPS:
            assert row[f"times_{name}"] == pytest.approx(row["candidates_per_s"] / row[f"{name}_per_s"])
