"""The mutants of which results/ tells can be made again, so that anyone can look at one of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def proofs(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    yield __import__("proofs")
    sys.modules.pop("proofs")


def test_every_mutant_can_be_made_again(proofs):
    lines = [json.loads(words) for words in (ROOT / "results" / "proofs-mutants.jsonl").read_text().splitlines()]
    mutants = [line for line in lines if line["kind"] != "control"]
    assert len(mutants) > 1300
    for line in mutants[::7]:
        assert proofs.mutant_of(line).fingerprint == line["fingerprint"]
