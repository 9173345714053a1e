"""A trial on a worker of a Ray cluster, without the cluster: what it does when its storage fails.

And what the driver does with what comes from there, and when no machine is left.
"""

from __future__ import annotations

import json
import resource
from collections.abc import Callable
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from nram.cluster.job import StudyJob
from nram.cluster.plan import Trial
from nram.cluster.pool import Event
from nram.cluster.process import Ended
from nram.cluster.spec import Resources
from nram.cluster.trial import Place, outcome_of
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


def test_a_mark_of_an_earlier_command_is_gone_before_the_trial_goes_on(started, tmp_path: Path):
    """A trial that is stopped early waits for a mark: it must be its own."""
    from nram.cluster.storage import Storage

    place = Place(tmp_path / "before")
    for path in (place.paused("x-1"), place.run("x-1") / "report.json"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    Storage(str(tmp_path)).save(place, "x-1")
    trial, study = started(), Place(tmp_path / "study")
    assert Storage(str(tmp_path)).restore(study, "x-1") and not study.paused("x-1").exists()
    trial.cleanup()


@pytest.mark.parametrize("times", [1, 2, 6])
def test_a_write_that_fails_is_tried_again(started, monkeypatch: pytest.MonkeyPatch, times: int):
    """Also where the process ends meanwhile: its end is told when its last state is kept."""
    tried, trial = failing(monkeypatch, times), started()
    assert [step["kind"] for step in steps_of(trial)][-1] == "ended"
    assert tried.count("failed") == times and tried[-1] == "saved"
    assert trial.place.log("x-1").read_text() == "cannot write to the storage; it is tried again\n" * times
    trial.cleanup()
    assert not Path(trial.own).exists()


def test_the_last_state_is_kept_after_the_disk_of_the_storage_was_full(
    started, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """The content of a trial that has ended never changes again: the retry must not take it for kept."""
    from nram.cluster import on_ray
    from nram.cluster.storage import Storage

    limits, waits = resource.getrlimit(resource.RLIMIT_FSIZE), Runner.wait

    def wait(runner: Runner, seconds: float) -> Ended | None:
        if ended := waits(runner, seconds):
            resource.setrlimit(resource.RLIMIT_FSIZE, (5000, limits[1]))  # a tar file has 10240 bytes or more
        return ended

    monkeypatch.setattr(Runner, "wait", wait)
    monkeypatch.setattr(on_ray.time, "sleep", lambda seconds: resource.setrlimit(resource.RLIMIT_FSIZE, limits))
    trial, study = started(), Place(tmp_path / "study")
    try:
        assert [step["kind"] for step in steps_of(trial)][-1] == "ended"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        monkeypatch.setattr(Runner, "wait", waits)
    assert "File too large; it is tried again" in trial.place.log("x-1").read_text()
    assert Storage(str(tmp_path)).restore(study, "x-1")
    assert (study.run("x-1") / "report.json").read_text() == "xxxx"
    trial.cleanup()


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


def test_a_trial_that_the_disk_of_the_study_cannot_take_is_not_counted(tmp_path: Path):
    """What the driver does with a trial that has ended: --resume brings it back when there is room."""
    from nram.cluster import on_ray
    from nram.cluster.storage import Storage

    spec = tmp_path / "study.toml"
    spec.write_text(f'verb = "search"\ntasks = ["access"]\nseeds = [1]\nbudget = 9\nstorage = "{tmp_path}/kept"\n')
    job = StudyJob.open(spec, tmp_path / "study", [])
    with job.study.held():
        job.study.create(job.spec, job.trials, [])
    trial, worker = job.trials[0], Place(tmp_path / "worker")
    worker.run(trial.name).mkdir(parents=True)
    (worker.run(trial.name) / "program.nram").write_bytes(bytes(100_000))
    worker.log(trial.name).parent.mkdir()
    worker.write_outcome(outcome_of(trial, worker, True, "finished", 3.0, "a CPU", {}))
    Storage(f"{tmp_path}/kept/study-{job.study.record.id}").save(worker, trial.name)
    ended, limits = Event(trial, ended=Ended("ended")), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))
    try:
        settled = on_ray._settled(ended, job.spec, job.study)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert settled.ended is not None and settled.ended.kind == "failed"
    assert "File too large" in settled.ended.message and job.study.outcomes(job.trials) == {}
    assert on_ray._settled(ended, job.spec, job.study) == ended
    assert list(job.study.outcomes(job.trials)) == [trial.name]
    assert (job.study.place.run(trial.name) / "program.nram").stat().st_size == 100_000


def test_a_cluster_without_machines_for_trials_is_noted_once(monkeypatch: pytest.MonkeyPatch):
    """And once more when there is one. An answer that fails says nothing."""
    from nram.cluster import on_ray

    def machine(cores: float, alive: bool = True) -> dict[str, Any]:
        return {"Alive": alive, "Resources": {"CPU": cores}}

    head, large, gone = machine(0), machine(2), machine(2, alive=False)
    clusters = iter([[head, large], [head, gone], [head, gone], None, [head], [head, large], [large]])
    notes: list[str] = []
    looks = []
    monkeypatch.setattr("ray.nodes", lambda: next(clusters))
    monkeypatch.setattr(on_ray, "ROOM_SECONDS", 0.0)
    room = on_ray.Room(Resources(cores=2), notes.append)
    for _ in range(8):
        room.look()
        looks.append(len(notes))
        assert room.thread is not None
        room.thread.join()
    assert looks == [0, 0, 1, 1, 1, 1, 2, 2]
    assert notes[0].startswith("no machine of the cluster can run a trial now: waiting for one")
    assert notes[1] == "a machine of the cluster can run a trial again: the study goes on"
