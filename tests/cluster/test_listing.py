"""`nram runs`: what it lists, and what it removes."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from nram.cli import main
from nram.cluster.listing import entries, removable, remove
from nram.cluster.trial import training_seconds
from nram.errors import NramError
from nram.files import locked
from nram.programs.files import save_program
from nram.programs.library import load_program
from nram.search.job import lock_of

RUNS = Path(__file__).parents[1] / "compatibility" / "0.1"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    for name in ("finished", "unfinished"):
        shutil.copytree(RUNS / name, folder / name)
    (folder / "finished" / "checkpoint.safetensors").write_bytes(b"x" * 2000)
    (folder / "finished" / ".12345678-12345678.part").write_bytes(b"y")
    (folder / "new").mkdir()
    shutil.copy(folder / "finished" / "run.json", folder / "new")
    (folder / "new" / "checkpoint.safetensors").write_bytes(b"z")
    (folder / "broken").mkdir()
    (folder / "broken" / "run.json").write_text("{")
    (folder / "other").mkdir()
    return folder


def test_the_list_says_what_was_reached_and_how_to_go_on(runs: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["runs", str(runs), "--json"]) == 0
    found = {Path(line["path"]).name: line for line in json.loads(capsys.readouterr().out)}
    assert "other" not in found
    assert found["finished"]["status"] == "finished" and "nram " in found["finished"]["next"]
    assert found["new"]["status"] == "new" and "--resume" in found["new"]["next"]
    assert found["broken"]["status"] == "damaged"
    assert main(["runs", str(runs)]) == 0
    assert "LEARNED" in capsys.readouterr().out


def test_clean_removes_only_what_is_needed_no_more(runs: Path, capsys: pytest.CaptureFixture[str]):
    before = {path for path in runs.rglob("*") if path.is_file()}
    assert main(["runs", "clean", str(runs)]) == 1  # nobody can answer
    assert {path for path in runs.rglob("*") if path.is_file()} == before
    assert "--yes" in capsys.readouterr().err
    assert main(["runs", "clean", str(runs), "--yes"]) == 0
    gone = before - {path for path in runs.rglob("*") if path.is_file()}
    assert gone == {runs / "finished" / "checkpoint.safetensors", runs / "finished" / ".12345678-12345678.part"}
    assert main(["runs", "clean", str(runs), "--yes"]) == 0
    assert "nothing to remove" in capsys.readouterr().out


OUTCOMES = {"seed": 0, "label": "", "settings": {}, "command": "nram", "budget": 9.0, "device": "CPU", "versions": {}}


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Trials that their budget ended, that was stopped early, and that have no outcome, or a damaged one."""
    study = tmp_path / "study"
    (study / "trials").mkdir(parents=True)
    names = ("budget", "early", "by-hand", "open", "damaged", "of-another", "learned", "learned-by-hand")
    kinds = {name: "learn" if name.startswith("learned") else "train" for name in names}
    trials = [{"name": name, "verb": kind, "subject": "access", "seed": 0} for name, kind in kinds.items()]
    (study / "study.json").write_text(json.dumps({"format": 1, "spec": {}, "trials": trials}))
    for name, kind in kinds.items():
        run = study / "runs" / name if kind == "train" else study / "runs" / name / "training" / "0"
        shutil.copytree(RUNS / "unfinished", run)
        seconds = training_seconds(run) - (1 if name == "by-hand" else 0)
        outcome = {"trial": name, "verb": kind, "subject": "access", "learned": False, "seconds": round(seconds, 2)}
        outcome |= {"ended": "stopped early" if name == "early" else "budget", "run": f"runs/{name}"} | OUTCOMES
        outcome |= {"trial": "budget"} if name == "of-another" else {}
        if name != "open":
            text = json.dumps(outcome)
            (study / "trials" / f"{name}.json").write_text(text[:20] if name == "damaged" else text)
        later = 2_000_000_000 if name == "learned-by-hand" else 1_000_000_000
        os.utime(run / "checkpoint.safetensors", (later, later))
    return study


def test_clean_removes_the_only_weights_of_a_trial_if_it_is_asked_to(study: Path, capsys: pytest.CaptureFixture[str]):
    before = {path for path in study.rglob("*") if path.is_file()}
    assert main(["runs", "clean", str(study), "--yes"]) == 0
    assert {path for path in study.rglob("*") if path.is_file()} == before
    assert main(["runs", str(study), "--unlearned"]) == 2
    assert main(["runs", "clean", str(study), "--yes", "--unlearned"]) == 0
    assert "of a trial that ended unlearned: its only weights" in capsys.readouterr().out
    gone = before - {path for path in study.rglob("*") if path.is_file()}
    folders = ("budget", "early", "learned/training/0")
    assert gone == {study / "runs" / folder / "checkpoint.safetensors" for folder in folders}


def test_a_checkpoint_stays_if_its_trial_goes_on_meanwhile(study: Path):
    (entry,) = entries([study])
    found = list(removable(entry, unlearned=True))
    (study / "trials" / "budget.json").unlink()
    with pytest.raises(NramError, match="budget/checkpoint.safetensors stays"):
        remove(found)
    assert (study / "runs" / "budget" / "checkpoint.safetensors").is_file()


def test_a_locked_run_is_refused(runs: Path, capsys: pytest.CaptureFixture[str]):
    with locked(runs / "finished" / ".lock", "busy"):
        (entry,) = (one for one in entries([runs]) if one.path.name == "finished")
        with pytest.raises(NramError, match="in use"):
            list(removable(entry))
        assert main(["runs", "clean", str(runs / "finished"), "--yes"]) == 2
        assert main(["runs", "clean", str(runs), "--yes"]) == 0
    assert (runs / "finished" / "checkpoint.safetensors").is_file()
    assert "left alone" in capsys.readouterr().err


def test_a_search_that_runs_is_seen_and_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    save_program(load_program("access@searched"), tmp_path / "program.nram")
    (tmp_path / "program.nram.search").touch()
    part = tmp_path / ".12345678-12345678.part"
    part.touch()
    (entry,) = entries([tmp_path])
    found = list(removable(entry))
    with locked(lock_of(tmp_path / "program.nram"), "busy"):
        assert entry.running
        with pytest.raises(NramError, match="in use"):
            list(removable(entry))
        with pytest.raises(NramError, match="in use"):  # it has begun in this moment
            remove(found)
        assert main(["runs", str(tmp_path), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)[0]["status"] == "running"
    remove(found)
    assert not part.exists()


@pytest.mark.parametrize("lock", ["trials/.a-0.lock", "runs/a-0/.program.nram.lock"])
def test_a_trial_that_runs_without_its_command_is_left_alone(tmp_path: Path, lock: str):
    (tmp_path / "runs" / "a-0").mkdir(parents=True)
    (tmp_path / "trials").mkdir()
    (tmp_path / "study.json").touch()
    (tmp_path / "runs" / "a-0" / ".12345678-12345678.part").touch()
    (entry,) = entries([tmp_path])
    assert len(list(removable(entry))) == 1
    with locked(tmp_path / lock, "busy"), pytest.raises(NramError, match="a-0"):
        list(removable(entry))


def test_a_folder_that_does_not_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["runs", str(tmp_path / "no")]) == 2
    assert "is not a folder" in capsys.readouterr().err


def test_a_study_that_was_stopped_before_a_trial_ended_is_not_new(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    study = tmp_path / "study"
    (study / "runs").mkdir(parents=True)
    record = {"format": 1, "spec": {}, "trials": [{"name": "a-0", "verb": "search", "subject": "access", "seed": 0}]}
    (study / "study.json").write_text(json.dumps(record))
    for status in ("new", "stopped"):
        assert main(["runs", str(study), "--json"]) == 0
        (line,) = json.loads(capsys.readouterr().out)
        assert (line["status"], line["words"]) == (status, "0 of 1 trial ended, 0 learned.")
        (study / "runs" / "a-0").mkdir(exist_ok=True)


def test_a_study_whose_only_trial_failed_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    study = tmp_path / "study"
    (study / "runs").mkdir(parents=True)
    record = {"format": 1, "spec": {}, "trials": [{"name": "a-0", "verb": "search", "subject": "access", "seed": 0}]}
    (study / "study.json").write_text(json.dumps(record))
    for summary, status, words in (
        ({"failed": {"a-0": "out of memory"}}, "stopped", " 1 failed, such as a-0: out of memory"),
        ({"failed": ["a-0"]}, "new", ""),
    ):
        (study / "summary.json").write_text(json.dumps(summary))
        assert main(["runs", str(study), "--json"]) == 0
        (line,) = json.loads(capsys.readouterr().out)
        assert (line["status"], line["words"]) == (status, "0 of 1 trial ended, 0 learned." + words)


def test_a_search_that_was_stopped_says_how_to_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    program = tmp_path / "program.nram"
    words = ["search", "merge", "--seed", "1", "--candidates", "2000", "--out", str(program), "--workers", "1"]
    assert main([*words, "--budget", "100"]) == 1
    capsys.readouterr()
    text = program.read_text()
    for command in ("nram search merge --seed 1 --candidates 2000", "rm -r nram", "nram search 'merge"):
        program.write_text(text.replace("nram search merge --seed 1 --candidates 2000", command))
        assert main(["runs", str(tmp_path), "--json"]) == 0
        (line,) = json.loads(capsys.readouterr().out)
        whole = "--seed" in command
        assert line["next"] == (f"{command} --out {program} --resume --budget SECONDS" if whole else None)
