"""The trial function: what its budget counts, and when a trial has not ended."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from nram.cluster.plan import Trial
from nram.cluster.trial import Place, Progress, TrialStopped, run_trial
from nram.search.engine import Search

BUDGET = 1000.0
MERGE = Trial("merge-0", "search", "merge", 0, budget=BUDGET)


@pytest.fixture
def skipped(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds by which the clock has been set forward. Compiling a search takes longer than its budget."""
    skips: list[float] = []
    monotonic, compiled = time.monotonic, Search._compile

    def compiled_slowly(search: Search) -> None:
        compiled(search)
        skips.append(2 * BUDGET)

    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + sum(skips))
    monkeypatch.setattr(Search, "_compile", compiled_slowly)
    return skips


def place_in(tmp_path: Path) -> Place:
    (tmp_path / "trials").mkdir()
    return Place(tmp_path)


def test_a_search_that_is_stopped_has_not_ended_however_long_it_compiled(tmp_path: Path, skipped: list[float]):
    place = place_in(tmp_path)
    for _ in range(2):  # the second one goes on from the first
        told: list[Progress] = []
        with pytest.raises(TrialStopped):
            run_trial(MERGE, place, told.append, lambda told=told: any(" 0.0M" not in one.words for one in told))
        assert place.read_outcome(MERGE.name) is None
        assert 0 < float(place.time(MERGE.name).read_text()) < BUDGET / 2


def test_a_search_whose_budget_is_over_has_ended(tmp_path: Path, skipped: list[float]):
    told = []

    def stopping() -> bool:
        """It is asked to stop when its budget is over already."""
        if told and len(skipped) < 2:
            skipped.append(2 * BUDGET)
        return bool(told)

    outcome = run_trial(MERGE, place_in(tmp_path), told.append, stopping)
    assert (outcome.ended, outcome.learned) == ("budget", False)
    assert 2 * BUDGET <= outcome.seconds < 3 * BUDGET
