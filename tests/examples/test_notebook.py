"""The notebook: its cells run, but for the training, and it ships with what all of them gave."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "src/nram/examples" / "notebook"
NOTEBOOK = FOLDER / "whole_way.ipynb"


def outputs_of_running(folder: Path, *options: str) -> list[dict[str, Any]]:
    out = folder / "ran.ipynb"
    words = [sys.executable, str(FOLDER / "run.py"), str(NOTEBOOK), *options, "--out", str(out)]
    ran = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return [output for cell in json.loads(out.read_text())["cells"] for output in cell.get("outputs", ())]


def test_the_notebook_runs_and_shows_programs_and_traces_as_pictures(tmp_path: Path):
    outputs = outputs_of_running(tmp_path, "--quick")
    pictures = [output["data"]["image/svg+xml"] for output in outputs if "image/svg+xml" in output.get("data", {})]
    assert len(pictures) == 4 and all(picture.startswith("<svg") for picture in pictures)
    printed = "".join(output.get("text", "") for output in outputs)
    assert "halted with [7, 3, 1, 7, 5, 0, 0, 0]" in printed or "nram_largest" not in printed  # where there is no cc
    assert "FOUND, searched" in printed and "larger than anything it was learned from" in printed


@pytest.mark.slow
def test_the_whole_notebook_runs_and_trains_a_perfect_member(tmp_path: Path):
    printed = "".join(output.get("text", "") for output in outputs_of_running(tmp_path))
    assert "members are perfect" in printed


def test_the_notebook_ships_with_the_outputs_of_all_its_cells():
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    (trained,) = [cell for cell in cells if "nram.train(" in "".join(cell["source"])]
    assert "members are perfect" in trained["outputs"][0]["text"]
