"""Chains that start at known programs: their tables, who is left out, and what the user sees of it."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest

from nram.cli import main
from nram.errors import UsageError
from nram.extensions import get_task
from nram.programs.files import read_program
from nram.programs.interpret import interpret
from nram.programs.library import load_program, zoo_entries
from nram.search.chains import random_table
from nram.search.engine import Search
from nram.search.instances import task_pool
from nram.search.job import NONE, ZOO, Library, SearchJob, Space
from nram.search.known import tables_of
from nram.search.schedule import FLOW, STRUCTURES
from nram.search.state import SearchState
from nram.search.structure import Structure, table_of

ROOMY = Structure(5, 2, states=2, modules=FLOW)
ZOO_PROGRAMS = [entry.program for entry in zoo_entries() if entry.origin == "searched"]


@pytest.mark.parametrize("program", ZOO_PROGRAMS, ids=lambda program: program.name)
def test_a_program_does_the_same_in_a_larger_table_whatever_else_stands_there(program):
    genes = table_of(program, ROOMY, random_table(ROOMY, 5))
    assert genes is not None and ROOMY.holds(genes)
    table, rng = ROOMY.program(genes), Random(1)
    for _ in range(50):
        memory = [rng.randrange(9) for _ in range(9)]
        one, other = interpret(program, memory, 30), interpret(table, memory, 30)
        assert (one.memory, one.steps, one.halted) == (other.memory, other.steps, other.halted)


def test_a_structure_that_lacks_an_operation_has_no_room():
    assert table_of(load_program("merge@searched"), Structure(4, modules=("READ", "INC", "WRITE"))) is None


def test_a_program_that_solves_the_problem_is_left_out():
    pool = task_pool(get_task("reverse"), 0)
    library = (load_program("reverse@searched"), load_program("copy@searched"))
    tables = tables_of(library, STRUCTURES[3], pool, 7)
    assert len(tables) == 1
    copy = table_of(library[1], STRUCTURES[3], random_table(STRUCTURES[3], 7))
    assert copy is not None and np.array_equal(tables[0], copy)


def test_some_chains_of_a_late_round_start_at_known_programs():
    pool = task_pool(get_task("merge"), 0)
    library = Library.named(ZOO).programs
    search = Search(pool, lambda program: [], library=library, state=SearchState(round=3))
    chains = [chain for chain in search._chains(False, ()) if chain.strategy.known]
    assert chains
    chain = next(chain for chain in chains if chain.structure == STRUCTURES[4])
    first = search._first_table(chain)
    assert any(np.array_equal(first, table) for table in tables_of(library, chain.structure, pool, chain.seed))
    without = Search(pool, lambda program: [])._first_table(chain)
    assert np.array_equal(without, random_table(chain.structure, chain.seed))


def test_the_card_names_the_library(tmp_path: Path):
    out = tmp_path / "access.nram"
    options = ["--library", "copy,reverse@searched", "--verify-budget", "0", "--out", str(out), "--json"]
    assert main(["search", "access", *options]) == 0
    made = dict(read_program(out).made)
    assert (
        made["library"].startswith("copy,reverse@searched; ") and "--library copy,reverse@searched" in made["command"]
    )
    assert Library.named(NONE).programs == () and Library.named("copy").digest != Library.named("reverse").digest


def test_a_search_does_not_go_on_with_another_library(tmp_path: Path):
    out = tmp_path / "merge.nram"
    with SearchJob.open("merge", Space(), library=NONE).saved_beside(out, resume=False) as job:
        assert job.run(60, candidates=1).program is None
    other = SearchJob.open("merge", Space())
    with other.saved_beside(out, resume=True) as job, pytest.raises(UsageError, match="another library"):
        job.run(60, candidates=1)


def test_a_program_of_the_library_that_is_not_there_is_refused(capsys):
    assert main(["search", "access", "--library", "copi"]) == 2
    assert "copi" in capsys.readouterr().err


def test_a_library_beside_a_program_to_start_from_is_refused(capsys):
    assert main(["search", "access", "--from", "access", "--library", "copy"]) == 2
    assert "leave --library out" in capsys.readouterr().err
