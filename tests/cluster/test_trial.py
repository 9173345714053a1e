"""The trial function: what its budget counts, and when a trial has not ended."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from nram.cluster.checks import with_digests
from nram.cluster.clock import Clock
from nram.cluster.plan import Trial
from nram.cluster.process import progress_of
from nram.cluster.trial import Place, Progress, TrialStopped, run_trial
from nram.errors import NramError
from nram.search.engine import Search
from nram.search.job import SearchJob

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


ACCESS = Trial("access-0", "search", "access", 0, settings={"registers": 2}, budget=BUDGET)


def test_a_search_that_is_killed_before_its_state_is_removed_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    place = place_in(tmp_path)
    monkeypatch.setattr(SearchJob, "remove_state", killed)
    with pytest.raises(KeyboardInterrupt):
        run_trial(ACCESS, place)
    outcome = place.read_outcome(ACCESS.name)
    assert outcome is not None and outcome.learned and run_trial(ACCESS, place) == outcome


def test_a_search_that_begins_anew_is_not_charged_for_the_time_before(tmp_path: Path):
    place = place_in(tmp_path)
    assert run_trial(ACCESS, place).learned
    place.outcome(ACCESS.name).unlink()
    place.time(ACCESS.name).write_text(str(BUDGET - 0.01))
    outcome = run_trial(ACCESS, place)
    assert outcome.learned and outcome.seconds < BUDGET / 2


TASK = """from nram.tasks import StepLimit, Task

TASK = Task(
    name="first",
    summary="Copy the first element.",
    layout="0, A[0..n-1]",
    min_complexity=1,
    step_limit=StepLimit(0, 4),
    least_memory=lambda n: n + 2,
    sample_input=lambda rng, n, m: [0] + [rng.randrange(1, m) for _ in range(n)] + [0] * (m - n - 1),
    oracle=lambda memory: ([memory[1], *memory[1:]], [0]),
)
"""


@pytest.mark.parametrize("when", ["before", "while it is read"])
def test_a_trial_refuses_a_file_that_has_changed_since_the_study_began(
    when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    place, file = place_in(tmp_path), tmp_path / "mine.py"
    file.write_text(TASK)
    (trial,) = with_digests([Trial("mine-0", "search", str(file), 0, budget=BUDGET)])
    opened = SearchJob.open

    def change() -> None:
        file.write_text(TASK.replace("memory[1], *", "memory[2], *"))

    def opened_and_changed(*words: object, **more: object) -> SearchJob:
        job = opened(*words, **more)  # pyright: ignore
        change()
        return job

    if when == "before":
        change()
    else:
        monkeypatch.setattr(SearchJob, "open", opened_and_changed)
    with pytest.raises(NramError, match="mine.py has changed since the study began: restore it"):
        run_trial(trial, place)
    assert place.read_outcome(trial.name) is None


def test_what_training_saves_within_learning_is_charged_and_counts_as_progress(tmp_path: Path):
    place, trial = place_in(tmp_path), Trial("mine-0", "learn", "/mine.jsonl", 0, budget=BUDGET)
    checkpoint = place.run(trial.name) / "training" / "0" / "checkpoint.safetensors"
    checkpoint.parent.mkdir(parents=True)
    before, used = progress_of(trial, place), 7.0
    with Clock(place.time(trial.name), place.run(trial.name), lambda: used):
        checkpoint.write_bytes(b"weights")
    assert place.time(trial.name).read_text() == "7.0"
    assert progress_of(trial, place) != before
    assert Clock(place.time(trial.name), place.run(trial.name)).before == 7.0


def test_a_study_of_an_earlier_version_has_the_digests_of_its_files_in_one_place(tmp_path: Path):
    file = str(tmp_path / "mine.py")
    (trial,) = with_digests([Trial("mine-0", "search", file, 0, budget=BUDGET)], {file: "0" * 64, "other.py": "1" * 64})
    assert trial.files == {file: "0" * 64}
    (trial,) = with_digests([Trial("mine-0", "search", file, 0, budget=BUDGET)], {})
    assert trial.files == {}
