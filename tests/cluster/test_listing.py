"""`nram runs`: what it lists, and what it removes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from nram.cli import main
from nram.cluster.listing import entries, removable
from nram.errors import NramError
from nram.files import locked

RUNS = Path(__file__).parents[1] / "compatibility" / "0.1"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    for name in ("finished", "stopped"):
        if (RUNS / name).is_dir():
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


def test_a_locked_run_is_refused(runs: Path, capsys: pytest.CaptureFixture[str]):
    with locked(runs / "finished" / ".lock", "busy"):
        (entry,) = (one for one in entries([runs]) if one.path.name == "finished")
        with pytest.raises(NramError, match="in use"):
            list(removable(entry))
        assert main(["runs", "clean", str(runs / "finished"), "--yes"]) == 2
        assert main(["runs", "clean", str(runs), "--yes"]) == 0
    assert (runs / "finished" / "checkpoint.safetensors").is_file()
    assert "left alone" in capsys.readouterr().err


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
