"""Chains end as recorded: the same table, costs and counts, to the bit, for the same seed.

A change of the kernel that means to change what chains do records them again, by: python
tests/search/test_recorded_chains.py
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from nram.extensions import get_task
from nram.search.chains import anneal, blocks_of, new_monitor, random_table, table_costs
from nram.search.instances import task_pool
from nram.search.kernel import Annealing, Blocks
from nram.search.structure import Structure

FILE = Path(__file__).parent / "recorded_chains.json"
CASES = json.loads(FILE.read_text())
SHORTENING = {"budget": 30_000, "hot": 0.03, "cold": 0.005, "length_cost": 0.02, "must_fit": True}


def _digest(*arrays: np.ndarray) -> str:
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()[:16]


def _chain(structure: Structure, genes: np.ndarray, blocks: Blocks, instances: int, **settings: Any) -> dict[str, Any]:
    monitor = new_monitor()
    end = anneal(structure, genes, blocks, instances, Annealing(**settings), monitor)
    return {**end._asdict(), "monitor": monitor.tolist(), "genes": _digest(genes), "blocks": _digest(*blocks)}


def _run(case: dict[str, Any]) -> dict[str, Any]:
    """A case with all that comes out of it."""
    settings = case["settings"]
    structure, pool = Structure(*case["structure"]), task_pool(get_task(case["task"]), settings["seed"])
    genes = random_table(structure, settings["seed"])
    start = _digest(genes)
    order = Random(settings["seed"]).sample(range(len(pool)), len(pool))
    result = _chain(structure, genes, blocks_of(pool, order), len(pool), **settings)
    ran = {key: case[key] for key in ("task", "structure", "settings")} | {"start": start, "result": result}
    ran["costs"] = float(table_costs(structure, genes, blocks_of(pool), len(pool)).sum())
    if result["fits"]:
        ran["shortened"] = _chain(structure, genes, blocks_of(pool), len(pool), **settings | SHORTENING)
    return ran


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['task']}-{case['settings']['seed']}")
def test_a_chain_ends_as_recorded(case):
    assert _run(case) == case


def test_the_recorded_chains_cover_fits_shortening_and_instances_that_join():
    assert sum(case["result"]["fits"] for case in CASES) >= 2
    assert any(case["result"]["active"] > case["settings"]["at_first"] for case in CASES)
    assert {case["settings"]["weigh"] for case in CASES} == {False, True}


if __name__ == "__main__":
    FILE.write_text(json.dumps([_run(case) for case in CASES], indent=1) + "\n")
