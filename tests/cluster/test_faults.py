"""Faults of the disk, of other commands and of the clock: a study resumes, or says what is wrong. No trial is lost."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kills.trouble import FullDisk, can_mount, obey_permissions
from support.studies import SEARCH, TRAIN, Sweep, lines_of, processes_of
from support.training_runs import ending


def sweep_with(folder: Path, *words: str | Path, before: Callable[[], None] | None = None, **environment: str):
    """`nram sweep` in a process, in which `before` is called first."""
    return subprocess.run(
        [sys.executable, "-m", "nram", "sweep", *map(str, words)],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "JAX_PLATFORMS": "cpu", **environment},
        preexec_fn=before,
        timeout=500,
    )


def limit_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))  # study.json is smaller, a checkpoint is not


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished study of two training runs. Tests take copies."""
    sweep = Sweep(tmp_path_factory.mktemp("trained"))
    sweep.run(sweep.spec(TRAIN), "--out", "study")
    return sweep.folder / "study"


@pytest.fixture
def study(trained: Path, tmp_path: Path) -> Path:
    """A copy in which the second trial goes on from its last checkpoint."""
    shutil.copytree(trained, tmp_path / "study")
    (tmp_path / "study" / "trials" / "access-2.json").unlink()
    (tmp_path / "study" / "runs" / "access-2" / "result.json").unlink()
    return tmp_path / "study"


def timeless(study: Path) -> list[dict[str, Any]]:
    return sorted((dict(line, seconds=0) for line in lines_of(study)), key=lambda line: line["trial"])


def assert_same(study: Path, calm: Path) -> None:
    assert timeless(study) == timeless(calm)
    for trial in ("access-1", "access-2"):
        assert ending(study / "runs" / trial) == ending(calm / "runs" / trial)


@pytest.mark.slow
def test_files_that_cannot_grow_end_a_trial_with_a_message(sweep: Sweep, trained: Path):
    """As on a full disk: small files can be written, checkpoints cannot."""
    done = sweep_with(sweep.folder, sweep.spec(TRAIN), "--out", "study", before=limit_files)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "cannot write" in done.stderr and "File too large" in done.stderr
    assert "2 of 2 trials have not ended" in done.stderr and lines_of(sweep.folder / "study") == []
    sweep.run("study", "--resume")
    assert_same(sweep.folder / "study", trained)


@pytest.mark.slow
def test_a_read_only_folder_is_named(study: Path, trained: Path):
    folders = [study, *(path for path in study.rglob("*") if path.is_dir())]
    before = {path: path.read_bytes() for path in (study / "study.json", study / "trials" / "access-1.json")}
    for some in (folders, [study / "trials"], [study / "runs" / "access-2"]):
        for folder in some:
            folder.chmod(0o555)
        done = sweep_with(study.parent, study, "--resume", before=obey_permissions)
        for folder in some:
            folder.chmod(0o755)
        assert done.returncode in (1, 2) and "Traceback" not in done.stderr
        assert "cannot write" in done.stderr and "Permission denied" in done.stderr, done.stderr
        assert {path: path.read_bytes() for path in before} == before
    Sweep(study.parent).run(study, "--resume")
    assert_same(study, trained)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["run.json", "checkpoint.safetensors"])
def test_a_damaged_run_is_named_and_starts_anew_when_it_is_removed(study: Path, trained: Path, name: str):
    file = study / "runs" / "access-2" / name
    file.write_bytes(file.read_bytes()[:200])
    _, err = Sweep(study.parent).run(study, "--resume", status=1)
    assert str(file) in err and "access-2 FAILED" in err and "Traceback" not in err
    assert "starts anew when its folder in" in err and [line["trial"] for line in lines_of(study)] == ["access-1"]
    shutil.rmtree(file.parent)
    Sweep(study.parent).run(study, "--resume")
    assert_same(study, trained)


@pytest.mark.slow
def test_lost_metrics_are_said(study: Path, trained: Path):
    """The lines that are left are the first ones. What follows the checkpoint is added to them."""
    run = study / "runs" / "access-2"
    rows = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run / "metrics.jsonl").write_text("".join(rows[:2]) + rows[2][:40])
    Sweep(study.parent).run(study, "--resume")
    (outcome,) = (line for line in lines_of(study) if line["trial"] == "access-2")
    assert "has lost" in outcome["result"].pop("warnings")[0]
    members = {file.name: file.read_bytes() for file in (run / "best").iterdir()}
    assert members == ending(trained / "runs" / "access-2")[0]
    assert (run / "metrics.jsonl").read_text().splitlines(keepends=True)[:2] == rows[:2]


@pytest.mark.slow
def test_what_a_search_has_left_that_is_damaged(sweep: Sweep):
    """A program or a time that was cut off is made again. A state that was cut off is named."""
    sweep.run(sweep.spec(SEARCH, "[3]"), "--out", "study")
    study, run = sweep.folder / "study", sweep.folder / "study" / "runs" / "access-3"
    program = (run / "program.nram").read_text()
    (study / "trials" / "access-3.json").unlink()
    (study / "trials" / "access-3.time").write_text("12.")
    (run / "program.nram").write_text(program[:50])
    sweep.run(study, "--resume")
    lines = [line for line in (run / "program.nram").read_text().splitlines() if "date" not in line]
    assert lines == [line for line in program.splitlines() if "date" not in line]
    (study / "trials" / "access-3.json").unlink()
    (run / "program.nram.search").write_text('{"format": 1, "see')
    _, err = sweep.run(study, "--resume", status=1)
    assert "program.nram.search" in err and "Traceback" not in err and lines_of(study) == []
    (run / "program.nram.search").unlink()
    sweep.run(study, "--resume")
    assert [line["trial"] for line in lines_of(study)] == ["access-3"]


def test_of_two_drivers_one_is_refused(sweep: Sweep):
    """They start together: one runs the study, the other says so and changes nothing."""
    spec = sweep.spec(SEARCH)
    both = [sweep.start(spec, "--out", "study", "--resume") for _ in range(2)]
    ends = [(*process.communicate(timeout=300), process.returncode) for process in both]
    assert sorted(status for _, _, status in ends) in ([0, 2], [0, 0])  # the second may come when the first is done
    for _, err, status in ends:
        assert status == 0 or "another process works on the study" in err or "holds a study already" in err, err
    assert sorted(line["trial"] for line in lines_of(sweep.folder / "study")) == ["access-1", "access-2"]


def test_a_clock_that_jumps_changes_no_trial(sweep: Sweep, tmp_path: Path):
    """In all processes the clock goes back or forward by years at every look; only the monotonic one may count."""
    (tmp_path / "clock").mkdir()
    (tmp_path / "clock" / "sitecustomize.py").write_text(
        "import itertools, time\n"
        "jumps, real = itertools.cycle([0, 3e8, -3e8, 7e7]), time.time\n"
        "time.time = lambda: real() + next(jumps)\n"
    )
    path = os.pathsep.join([str(tmp_path / "clock"), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = sweep_with(sweep.folder, sweep.spec("seconds = 300" + SEARCH), "--out", "study", PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    lines = lines_of(sweep.folder / "study")
    assert [line["ended"] for line in lines] == ["finished"] * 2 and all(0 < line["seconds"] < 100 for line in lines)


def test_ctrl_c_twice_ends_at_once_and_nothing_is_lost(sweep: Sweep):
    spec = sweep.spec(SEARCH.replace("access", "merge"), "[1, 2]")
    process = sweep.start(spec, "--out", "study")
    study = sweep.folder / "study"
    end = time.monotonic() + 100
    while not list(processes_of(study)):
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    time.sleep(1)
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode != 0 and "Traceback" not in err
    end = time.monotonic() + 30
    while list(processes_of(study)):
        assert time.monotonic() < end, "a trial outlives its study"
        time.sleep(0.05)
    assert lines_of(study) == []


def test_a_signal_to_a_trial_that_its_study_did_not_send_starts_it_again(sweep: Sweep):
    study = sweep.folder / "study"
    process = sweep.start(sweep.spec(SEARCH.replace("access", "merge"), "[0]"), "--out", study)
    before: set[int] = set()
    for number in (signal.SIGTERM, signal.SIGINT, None):
        end = time.monotonic() + 60
        while not (now := {one for one, _ in processes_of(study)} - before):
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.05)
        before |= now
        if number is not None:
            os.kill(now.pop(), number)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1 and "not in the table: it was stopped" in err and "seconds are over" not in err


@pytest.mark.slow
def test_a_disk_that_becomes_full(sweep: Sweep, trained: Path, tmp_path: Path):
    """A real small disk, full while the trials run, and with room again."""
    if not can_mount(tmp_path):
        pytest.skip("no small disk can be mounted here")
    spec = sweep.spec(TRAIN)
    with FullDisk(tmp_path / "disk") as disk:
        study = disk.place / "study"
        process = sweep.start(spec, "--out", study)
        while not list(study.glob("runs/*/run.json")):
            assert process.poll() is None
            time.sleep(0.05)
        disk.begin()
        _, err = process.communicate(timeout=300)
        assert process.returncode == 1 and "No space left on device" in err and "Traceback" not in err
        assert all(json.loads(path.read_text()) for path in study.glob("trials/*.json"))
        disk.end()
        sweep.run(study, "--resume")
        assert_same(study, trained)
