"""Files that older releases wrote are read as docs/compatibility.md promises.

Folder 0.1 was written by nram 0.1.0, folder 0.2 by nram 0.2.0.
"""

import json
import shutil
from pathlib import Path

import pytest

import nram
from nram.cli import main
from nram.programs import text
from nram.search import state
from nram.training import checkpoint, run_folder

HERE = Path(__file__).parent


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A copy of the files of 0.1: what is opened may be written to."""
    return shutil.copytree(HERE / "0.1", tmp_path / "0.1")


def test_the_files_are_of_the_version_before():
    versions = json.loads((HERE / "0.1" / "finished" / "run.json").read_text())["versions"]
    assert versions["nram"] == "0.1.0"


def test_the_page_names_the_versions_that_are_written():
    page = (HERE.parents[1] / "docs" / "compatibility.md").read_text()
    assert f'`"format": {run_folder.FORMAT}`' in page
    assert f'`"nram_search": {state.VERSION}`' in page
    assert f'weights, `best/K.safetensors` and those of the zoo | `"format": {checkpoint.FORMAT}`' in page
    assert f"`nram program {text.VERSION}`" in page


def test_a_finished_run_is_extracted_and_evaluated(old: Path, capsys: pytest.CaptureFixture[str]):
    program = nram.extract(old / "finished")
    assert (program.task, program.origin) == ("access", "trained")
    assert dict(program.made)["command"].startswith("nram train access --seed 5")
    assert nram.extract(old / "finished", member=1).rows
    main(["eval", str(old / "finished"), "--solve", "3", "--json"])
    assert len(json.loads(capsys.readouterr().out)["memory"]) == 5


def test_a_finished_run_is_found_finished(old: Path):
    run = nram.train("access", old / "finished", resume=True, device="cpu")
    assert run.result == json.loads((HERE / "0.1" / "finished" / "result.json").read_text())


@pytest.mark.filterwarnings("ignore:.*the result may differ")
def test_an_unfinished_run_with_culling_is_resumed(old: Path):
    run = nram.train("access", old / "unfinished", resume=True, device="cpu")
    assert (run.result["seed"], run.result["stages"], run.result["kept_members"]) == (5, 2, 2)
    rows = [json.loads(line) for line in (old / "unfinished" / "metrics.jsonl").read_text().splitlines()]
    assert [(row["stage"], row["step"]) for row in rows][:3] == [(0, 20), (0, 40), (0, 60)]


@pytest.mark.filterwarnings("ignore:.*the result may differ")
def test_an_unfinished_run_of_0_2_is_resumed(tmp_path: Path):
    """Its checkpoint has neither groups nor the step limits of members."""
    folder = shutil.copytree(HERE / "0.2" / "unfinished", tmp_path / "unfinished")
    assert json.loads((folder / "run.json").read_text())["versions"]["nram"] == "0.2.0"
    before = (folder / "metrics.jsonl").read_text().splitlines()
    run = nram.train("access", folder, resume=True, device="cpu")
    assert (run.result["seed"], run.result["stages"], run.result["kept_members"]) == (5, 2, 8)
    rows = (folder / "metrics.jsonl").read_text().splitlines()
    steps = [(row["stage"], row["step"]) for row in map(json.loads, rows)]
    assert rows[:4] == before and steps == [(stage, step) for stage in (0, 1) for step in (20, 40, 60)]
    program = nram.extract(folder)
    assert (program.task, program.origin) == ("access", "trained")


def test_its_configuration_starts_another_run(old: Path, tmp_path: Path):
    record = json.loads((old / "finished" / "run.json").read_text())["config"]
    (tmp_path / "old.json").write_text(json.dumps(record))
    words = ["train", "access", "--config", str(tmp_path / "old.json"), "--set", "help", "--json"]
    assert main(words) == 0


def test_a_program_and_the_state_of_a_search_are_read(old: Path, capsys: pytest.CaptureFixture[str]):
    assert nram.load_program(old / "merge.nram").origin == "searched"
    words = ["search", "merge", "--registers", "2", "--seed", "1", "--budget", "2", "--resume", "--json"]
    assert main([*words, "--out", str(old / "merge.nram")]) == 1  # nobody finds merge with two registers
    found = json.loads(capsys.readouterr().out)
    before = json.loads((HERE / "0.1" / "merge.nram.search").read_text())
    assert found["candidates"] > before["candidates"]
