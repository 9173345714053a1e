"""Scalars for TensorBoard, MLflow and W&B: every row of metrics.jsonl once, however often a run was stopped."""

from __future__ import annotations

import json
import shutil
import struct
import time
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from support.training_runs import ending, shared_compilation

from nram import train
from nram.errors import NramError, UsageError
from nram.training.callbacks import Interrupted, TrainingCallbacks
from nram.training.job import TrainingJob
from nram.training.run_folder import RunFolder
from nram.training.trackers import TrackerName
from nram.training.tracking import Points

SETTINGS = {
    "registers": 2,
    "hidden": 8,
    "modules": ["READ", "INC", "WRITE"],
    "batch": 4,
    "validation": 8,
    "check_every": 10,
    "stages": [
        {"max_complexity": 2, "steps": 20, "population": 4},
        {"max_complexity": 2, "steps": 20, "population": 2},
    ],
}
OVERRIDES = [f"{key}={json.dumps(value)}" for key, value in SETTINGS.items()]
TWO = ['groups=[{"name":"wide"},{"name":"narrow","machine":{"hidden":4}}]']


@pytest.fixture(scope="module", autouse=True)
def quick_runs():
    with shared_compilation():
        yield


def job_of(path: Path, *overrides: str) -> TrainingJob:
    return TrainingJob.for_task(
        "access", path, seed=1, overrides=[*(overrides or ["groups=[]"]), *OVERRIDES], resume=True
    )


def run_in_parts(path: Path, name: TrackerName, *overrides: str) -> None:
    """A run that is stopped twice, and then ends."""
    for reports in (2, 2, None):
        asked: list[int] = []

        class Counting(TrainingCallbacks):
            def report(self, report: Any, asked: list[int] = asked) -> None:
                asked.append(report.step)

        stopping = lambda asked=asked, reports=reports: reports is not None and len(asked) >= reports  # noqa: E731
        if name == "wandb" and path.exists():
            time.sleep(1.1)  # W&B names the folder of an offline process by the second; a real process takes longer
        try:
            job_of(path, *overrides).run("cpu", Counting(), stopping, track=[name])
        except Interrupted:
            continue


def expected(path: Path) -> dict[tuple[str, str], list[tuple[int, float]]]:
    """Group and scalar, and the points that follow from metrics.jsonl."""
    found: dict[tuple[str, str], list[tuple[int, float]]] = {}
    points = Points()
    for row in RunFolder(path).read_metrics():
        point = points.point(row)
        for name, value in point.values.items():
            found.setdefault((point.group, name), []).append((point.updates, value))
    assert found
    return found


def events_of(file: Path) -> list[Any]:
    """The events in a file, whose checksums are compared."""
    crc32c = import_module("tensorboardX.crc32c").crc32c
    event = import_module("tensorboardX.proto.event_pb2").Event

    def masked(data: bytes) -> int:
        crc = crc32c(data)
        return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF

    content, found = file.read_bytes(), []
    while content:
        (size,), (check,) = struct.unpack("<Q", content[:8]), struct.unpack("<I", content[8:12])
        body, (end,) = content[12 : 12 + size], struct.unpack("<I", content[12 + size : 16 + size])
        assert (check, end) == (masked(content[:8]), masked(body))
        found.append(event.FromString(body))
        content = content[16 + size :]
    return found


def drawn(path: Path) -> dict[tuple[str, str], list[tuple[int, float]]]:
    """What TensorBoard draws of a run: it forgets what it has when a file says that the run begins."""
    found: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for file in (path / "tensorboard").rglob("events.*"):
        group = str(file.parent.relative_to(path / "tensorboard")).removeprefix(".")
        for event in events_of(file):
            if event.HasField("session_log"):
                assert event.step == 0 and not [name for name in found if name[0] == group]
            for value in event.summary.value:
                found.setdefault((group, value.tag), []).append((event.step, value.simple_value))
    return found


def same(found: dict[Any, list[tuple[int, float]]], wanted: dict[Any, list[tuple[int, float]]]) -> None:
    assert found.keys() == wanted.keys()
    for name, points in wanted.items():
        assert [step for step, _ in found[name]] == [step for step, _ in points]
        assert [value for _, value in found[name]] == pytest.approx([value for _, value in points], rel=1e-6)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "stopped"
    run_in_parts(path, "tensorboard")
    return path


def test_a_run_that_was_stopped_has_every_point_once(stopped: Path):
    wanted = expected(stopped)
    assert [step for step, _ in wanted["", "program/right"]] == [10, 20, 30, 40]  # stages follow each other
    assert {"loss/median", "error/best", "error/median", "level/highest", "solved/soft", "solved/hard"} <= {
        name for _, name in wanted
    }
    same(drawn(stopped), wanted)


def test_tracking_changes_no_bit_of_a_run(stopped: Path, tmp_path: Path):
    job_of(tmp_path / "calm").run("cpu")
    assert ending(stopped) == ending(tmp_path / "calm")


def test_a_finished_run_can_be_sent_later(stopped: Path):
    file = next((stopped / "tensorboard").iterdir())
    file.write_bytes(file.read_bytes()[:100])  # as a kill leaves it
    job_of(stopped).run("cpu", track=["tensorboard"])
    same(drawn(stopped), expected(stopped))


def test_groups_have_curves_of_their_own(tmp_path: Path):
    run_in_parts(tmp_path / "run", "tensorboard", *TWO)
    assert {group for group, _ in expected(tmp_path / "run")} == {"wide", "narrow"}
    same(drawn(tmp_path / "run"), expected(tmp_path / "run"))


def test_another_try_goes_on_counting_updates():
    points = Points()
    steps = [(0, 0, 10), (0, 0, 20), (0, 1, 10), (1, 0, 10)]
    rows = [{"attempt": a, "stage": stage, "step": step, "seconds": 1.0} for a, stage, step in steps]
    assert [points.point(row).updates for row in rows] == [10, 20, 30, 40]


def test_a_tracker_that_fails_does_not_end_the_run(tmp_path: Path):
    said: list[str] = []

    class Told(TrainingCallbacks):
        def report(self, report: Any) -> None:
            with open(tmp_path / "run/tensorboard/wide", "w"):
                pass  # where the folder of a group should be

        def warning(self, text: str) -> None:
            said.append(text)

    job_of(tmp_path / "run", *TWO).run("cpu", Told(), track=["tensorboard"])
    (warning,) = said
    assert "tracking by tensorboard ended: " in warning
    assert "nram.train('access', out=" in warning and "resume=True, track='tensorboard')" in warning


def test_metrics_that_cannot_be_read_are_said(stopped: Path, tmp_path: Path):
    said: list[str] = []

    class Told(TrainingCallbacks):
        def warning(self, text: str) -> None:
            said.append(text)

    shutil.copytree(stopped, tmp_path / "run")
    with open(tmp_path / "run" / "metrics.jsonl", "a") as file:
        file.write("{\n")
    job_of(tmp_path / "run").run("cpu", Told(), track=["tensorboard"])
    (warning,) = said
    assert "the run is not tracked: " in warning and "metrics.jsonl, line 5, cannot be read" in warning


def test_a_tracker_that_cannot_begin_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    job = job_of(tmp_path / "run")
    mkdir = Path.mkdir

    def refuse(path: Path, *words: Any, **options: Any) -> None:
        if path.name == "tensorboard":
            raise PermissionError(13, "Permission denied", str(path))
        mkdir(path, *words, **options)

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(NramError, match="cannot track the run by tensorboard: .*Permission denied"):
        job.run("cpu", track=["tensorboard"])


def test_python_tracks_too(stopped: Path, tmp_path: Path):
    for file in (stopped / "tensorboard").iterdir():
        file.unlink()
    train("access", stopped, resume=True, progress=False, track="tensorboard")
    same(drawn(stopped), expected(stopped))
    with pytest.raises(UsageError, match=r"track names 'tensorbord': give some of tensorboard, mlflow, wandb"):
        train("access", tmp_path / "other", track=["tensorbord"])  # type: ignore[list-item]


@pytest.mark.slow  # `make test-slow` installs MLflow
def test_mlflow_has_every_point_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "store").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    path = tmp_path / "run"
    run_in_parts(path, "mlflow", *TWO)
    client = mlflow.MlflowClient()
    experiment = client.get_experiment_by_name("nram")
    (run,) = client.search_runs([experiment.experiment_id])
    assert (run.info.run_name, run.info.status) == ("run", "FINISHED")
    assert run.data.params["groups.0.machine.registers"] == "2"
    for (group, name), points in expected(path).items():
        history = client.get_metric_history(run.info.run_id, f"{group}/{name}")
        assert sorted((one.step, one.value) for one in history) == points
    job_of(path, *TWO).run("cpu", track=["mlflow"])  # finished, and sent already
    (name,) = islice(((group, name) for group, name in expected(path)), 1)
    assert len(client.get_metric_history(run.info.run_id, "/".join(name))) == len(expected(path)[name])


@pytest.mark.slow  # `make test-slow` installs W&B
def test_wandb_has_every_point_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    path = tmp_path / "run"
    run_in_parts(path, "wandb", *TWO)
    wandb.teardown()  # its own process may still write the last file
    found: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for file in sorted(path.glob("wandb/offline-run-*/*.wandb")):
        for row in wandb_rows(file):
            group = next(name for name in row if name.endswith("/updates")).partition("/")[0]
            for name, value in row.items():
                if name.startswith(f"{group}/") and not name.endswith(("/updates", "/seconds")):
                    found.setdefault((group, name.partition("/")[2]), []).append((row[f"{group}/updates"], value))
    same(found, expected(path))


def wandb_rows(file: Path) -> list[dict[str, Any]]:
    """The rows that an offline file of W&B holds: a log of LevelDB, in blocks of 32 KiB, after seven bytes."""
    records = import_module("wandb.proto.wandb_internal_pb2")
    content, at, found, data = file.read_bytes(), 7, [], b""
    while at + 7 <= len(content):
        if (at % 32768) > 32768 - 7:
            at += 32768 - at % 32768
            continue
        size, kind = struct.unpack("<HB", content[at + 4 : at + 7])
        data += content[at + 7 : at + 7 + size]
        at += 7 + size
        if kind not in (1, 4):  # a record goes on in the next block
            continue
        record, data = records.Record.FromString(data), b""
        if record.HasField("history"):
            items = record.history.item
            found.append({one.key or "/".join(one.nested_key): json.loads(one.value_json) for one in items})
    return found
