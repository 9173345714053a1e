"""A trial on a worker of a Ray cluster, without the cluster: what it does when its storage fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from nram.cluster.plan import Trial
from nram.cluster.process import Ended
from nram.cluster.trial import Place
from nram.errors import NramError

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: pip install 'nram[cluster]'")

TRIAL = Trial("x-1", "search", "access", 0, budget=9.0)


class Runner:
    """A process that saves something before every look at it, and ends at the fourth."""

    def __init__(self, trial: Trial, place: Place, environment: dict[str, str]):
        self.state, self.looks, self.progress = place.run(trial.name) / "report.json", 0, None
        self.state.parent.mkdir(parents=True, exist_ok=True)

    def wait(self, seconds: float) -> Ended | None:
        self.looks += 1
        self.state.write_text("x" * self.looks)
        return Ended("ended") if self.looks >= 4 else None

    def stop(self) -> None: ...

    def kill(self) -> None: ...


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """Makes the trial on the worker. Each step looks at the process at most once, and a snapshot is always due."""
    from nram.cluster import on_ray

    clock = iter(range(1_000_000))
    for name, value in (("REPORT_SECONDS", 1.5), ("SNAPSHOT_SECONDS", 0.0), ("TrialRunner", Runner)):
        monkeypatch.setattr(on_ray, name, value)
    monkeypatch.setattr(on_ray.time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(on_ray.time, "sleep", lambda seconds: None)
    return lambda: on_ray._StudyTrial(
        {"trial": json.dumps(asdict(TRIAL)), "storage": str(tmp_path), "study": "/nowhere"}
    )


def failing(monkeypatch: pytest.MonkeyPatch, times: int) -> list[str]:
    """Let so many snapshots fail. Returns what each came to."""
    from nram.cluster.storage import Storage

    tried: list[str] = []

    def save(storage: Storage, place: Place, trial: str) -> None:
        tried.append("failed" if len(tried) < times else "saved")
        if tried[-1] == "failed":
            raise NramError("cannot write to the storage")

    monkeypatch.setattr(Storage, "save", save)
    return tried


def steps_of(trial: Any) -> list[dict[str, Any]]:
    steps = [trial.step()]
    while not steps[-1].get("done"):
        assert len(steps) < 100
        steps.append(trial.step())
    return steps


@pytest.mark.parametrize("times", [1, 2, 6])
def test_a_write_that_fails_is_tried_again(started, monkeypatch: pytest.MonkeyPatch, times: int):
    """Also where the process ends meanwhile: its end is told when its last state is kept."""
    tried, trial = failing(monkeypatch, times), started()
    assert [step["kind"] for step in steps_of(trial)][-1] == "ended"
    assert tried.count("failed") == times and tried[-1] == "saved"
    assert trial.place.log("x-1").read_text() == "cannot write to the storage; it is tried again\n" * times
    trial.cleanup()
    assert not Path(trial.own).exists()


def test_a_storage_that_stays_away_ends_the_trial(started, monkeypatch: pytest.MonkeyPatch):
    tried, trial = failing(monkeypatch, 1000), started()
    last = steps_of(trial)[-1]
    assert (last["kind"], last["message"], len(tried)) == ("failed", "cannot write to the storage", 10)
    trial.cleanup()


@pytest.mark.parametrize("place", ["_begin", "_kept"])
def test_an_unexpected_error_ends_the_trial_with_a_message(started, monkeypatch: pytest.MonkeyPatch, place: str):
    from nram.cluster import on_ray

    def broken(*values: Any, **named: Any) -> None:
        raise ValueError("bad credentials")

    monkeypatch.setattr(on_ray._StudyTrial, place, broken)
    trial = started()
    assert steps_of(trial)[-1]["message"] == "ValueError: bad credentials"
    trial.cleanup()
