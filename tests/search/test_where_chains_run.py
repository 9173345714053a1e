"""Chains that run elsewhere give the same search, and `--any` takes what the first of them finds."""

from __future__ import annotations

import json
import pickle
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from nram import find_program
from nram.cli import main
from nram.errors import NramError
from nram.extensions import get_task
from nram.programs.files import read_program
from nram.programs.library import load_sketch
from nram.search import shortening
from nram.search.counterexamples import find_counterexamples
from nram.search.engine import Search, run_here
from nram.search.instances import Pool, task_pool
from nram.search.kernel import STOP, ChainEnd
from nram.search.schedule import Chain
from nram.search.state import Outcome
from nram.search.structure import Structure, sketched

ACCESS = get_task("access")
SMALL = (Structure(2), Structure(3))
SKETCH = """nram sketch 1
name: access
registers: here

when ?:
    a = READ(0)
    b = ?(a, 1)
    here := b
else:
    a = READ(?)
    WRITE(0, ?)
    halt
"""


def _search(pool: Pool | None = None, judge=lambda program: [], **settings) -> Search:
    return Search(pool or task_pool(ACCESS, 0), judge, structures=settings.pop("structures", SMALL), **settings)


def _reached(outcome: Outcome) -> tuple:
    """Everything that a search has found out, with the tables, which a comparison of states leaves out."""
    state = outcome.state
    tables = [(one.structure, one.cost, one.genes.tolist()) for one in (*state.left, *state.near)]
    best = None if state.best_genes is None else state.best_genes.tolist()
    return outcome.program, outcome.best, state, tables, best


def _far_away(chain: Chain, genes: np.ndarray, pool: Pool, monitor: np.ndarray) -> ChainEnd:
    """Run a chain on copies, as another machine does. It is begun twice: once in vain."""
    lost = pickle.loads(pickle.dumps(genes))
    run_here(chain._replace(budget=1000), lost, pool, monitor)
    there, table, there_pool = pickle.loads(pickle.dumps((chain, genes, pool)))
    end = run_here(there, table, there_pool, monitor)
    genes[:] = table
    return end


@pytest.mark.parametrize("structures", [SMALL, (sketched(load_sketch(SKETCH)),) * 2], ids=["tables", "a sketch"])
def test_chains_that_run_elsewhere_and_are_lost_once_give_the_same_search(structures):
    here, far = (
        _search(structures=structures, seed=7, workers=workers, run_chain=run).run()
        for workers, run in ((1, run_here), (3, _far_away))
    )
    assert here.program is not None and _reached(here) == _reached(far)


def test_a_pickled_structure_holds_names_and_no_modules():
    structure = sketched(load_sketch(SKETCH), 2)
    assert structure.kinds and structure.template is not None
    again = pickle.loads(pickle.dumps(structure))
    assert again == structure and again.kinds == structure.kinds
    assert set(structure.__getstate__()) == {"registers", "repeats", "states", "modules", "sketch"}


def test_an_error_of_a_chain_ends_the_search_and_the_other_chains():
    stopped = threading.Event()

    def fail(chain: Chain, genes: np.ndarray, pool: Pool, monitor: np.ndarray) -> ChainEnd:
        if chain.structure == SMALL[0] and chain.strategy.small_first:
            raise NramError("the cluster is gone")
        while not monitor[STOP]:
            time.sleep(0.01)
        stopped.set()
        return ChainEnd(False, 0, 0, 0.0, 0)

    with pytest.raises(NramError, match="the cluster is gone"):
        _search(workers=2, run_chain=fail).run()
    assert stopped.is_set()


def test_any_takes_a_program_although_an_earlier_chain_still_runs():
    begun: list[Chain] = []

    def first_is_endless(chain: Chain, genes: np.ndarray, pool: Pool, monitor: np.ndarray) -> ChainEnd:
        """Run a chain; but the first one ends only when it is stopped."""
        begun.append(chain)
        end = run_here(chain, genes, pool, monitor)
        while chain is begun[0] and not monitor[STOP]:
            time.sleep(0.01)
        return end

    settings = {"workers": 2, "run_chain": first_is_endless, "seconds": 60}
    outcome = _search(judge=lambda program: find_counterexamples(program, ACCESS, 1), take_any=True, **settings).run()
    assert outcome.program is not None and not find_counterexamples(outcome.program, ACCESS, 2)
    assert outcome.seconds < 60 and outcome.state.found[0].candidates == outcome.state.candidates > 0


def test_whole_rounds_are_the_same_with_any(monkeypatch):
    """Programs that are refused, or that have counterexamples, are counted in their turn."""
    monkeypatch.setattr(shortening, "CHAINS", 1)  # programs need not be short
    tiny = Pool(tuple(ACCESS.sample(1, 3, seed=0)))

    def run(take_any: bool) -> Outcome:
        def judge(program):
            drawn = int(program.fingerprint[:4], 16)
            return find_counterexamples(program, ACCESS, drawn)[:1] or None if drawn % 2 else None

        return _search(tiny, judge, workers=2, done=lambda state: state.round == 2, take_any=take_any).run()

    in_order, as_they_come = run(False), run(True)
    assert in_order.state.counterexamples and in_order.state.refused
    assert _reached(in_order) == _reached(as_they_come)


def test_the_card_and_json_say_that_any_is_not_reproducible(tmp_path: Path, capsys):
    words = ["search", "access", "--registers", "2", "--verify-budget", "0", "--json", "--out"]
    for more, reproducible in (([], True), (["--any"], False)):
        out = tmp_path / f"{reproducible}.nram"
        assert main([*words, str(out), *more]) == 0
        assert json.loads(capsys.readouterr().out)["reproducible"] is reproducible
        card = dict(read_program(out).made)
        assert ("--any" in card["command"]) is ("reproducible" in card) is not reproducible
    program = find_program("access", registers=2, take_any=True).program
    assert program is not None and dict(program.made)["reproducible"].startswith("no")
