"""Every number of the README has a command that makes it, and every study of the benchmarks can be run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from support.studies import Sweep

from nram.cluster.checks import check_trials
from nram.cluster.plan import trials_of
from nram.cluster.spec_file import read_spec

ROOT = Path(__file__).parents[2]
RESULTS = tomllib.loads((ROOT / "benchmarks" / "reproduce.toml").read_text())["results"]
STUDIES = sorted((ROOT / "benchmarks" / "studies").glob("*.toml"))
OTHERS = ("what it adds", "libraries", "paper:")  # columns whose figures are nobody's measurement, or the paper's
WITHOUT = ("- [docs/", "Licensed under")  # after the results


def blocks_of(page: str) -> list[str]:
    """Paragraphs, list items, tables, pictures and examples of a page."""
    text = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    found = re.split(r"\n\s*\n|\n(?=- |!\[)", text)
    return [block.strip() for block in found if block.strip()]


def unexplained(page: str, results: list[dict[str, object]]) -> list[str]:
    """Tables, pictures, examples and measured claims of the README that no result shows."""
    words = [word for one in results if one.get("page", "README.md") == "README.md" for word in one["shows"]]  # type: ignore[union-attr]
    missing, measured = [], False
    for block in blocks_of(page):
        measured = block == "## Results" or (measured and not block.startswith("## "))
        if block.startswith("|"):
            head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]
            for number, name in enumerate(head[1:], 1):
                has_figures = any(re.search(r"\d", row[number]) for row in rows)
                if has_figures and not name.startswith(OTHERS) and name not in words:
                    missing.append(f"column {name!r}")
        elif block.startswith(("![", "$ ")) or (measured and _has_figure(block)):
            named = [word for word in words if block.removeprefix("- ").startswith(str(word))]
            missing += [] if named else [block[:80]]
    return missing


def _has_figure(block: str) -> bool:
    """Whether a paragraph or list item has a number, outside of links, code and headings."""
    if block.startswith(("#", "<!--", *WITHOUT)):
        return False
    return re.search(r"\d", re.sub(r"\]\([^)]*\)|`[^`]*`", "", block)) is not None


def test_every_number_of_the_readme_has_a_command():
    assert unexplained((ROOT / "README.md").read_text(), RESULTS) == []


@pytest.mark.parametrize(
    "added, wanted",
    [
        ("## Results\n\nA new claim of 17%.\n", "A new claim of 17%."),
        ("## Results\n\n- First.\n- It takes 3 s.\n", "- It takes 3 s."),
        ("![A new figure](docs/images/new.svg)\n", "![A new figure](docs/images/new.svg)"),
        ("| task | speed |\n| --- | --- |\n| copy | 3 s |\n", "column 'speed'"),
    ],
)
def test_a_number_without_a_command_is_noticed(added: str, wanted: str):
    assert unexplained(added, RESULTS) == [wanted]


def test_every_entry_is_about_its_page_and_can_be_run():
    files = {str(path.relative_to(ROOT)) for path in (*STUDIES, *(ROOT / "benchmarks").rglob("*.py"))}
    files |= {"docs/make_screenshots.py"}
    for one in RESULTS:
        page = (ROOT / one.get("page", "README.md")).read_text()
        assert [word for word in one["shows"] if word not in page] == [], one["name"]
        for command in one["commands"]:
            named = re.findall(r"(?:benchmarks|docs)/[\w/.-]+\.(?:py|toml)", command)
            assert set(named) <= files, command
        assert one.get("lines") is None or (ROOT / one["lines"]).is_file()
    assert len({one["name"] for one in RESULTS}) == len(RESULTS)
    used = " ".join(command for one in RESULTS for command in one["commands"])
    assert [path.name for path in STUDIES if f"studies/{path.name}" not in used] == []


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_the_studies_can_be_run(path: Path):
    spec = read_spec(path)
    check_trials(spec, trials_of(spec), trust=True)


def test_the_ablation_switches_off_each_technique_for_three_tasks():
    spec = read_spec(ROOT / "benchmarks" / "studies" / "ablation.toml")
    assert set(spec.tasks) == {"listk", "permutation", "merge"}
    papers = {"noise", "entropy_bonus", "curriculum", "clip_activations", "clip_gradient", "renormalise"}
    ours = {"culling", "islands", "lexicase", "hard_stages", "module_order", "gradients"}
    assert {f"paper-{name}" for name in papers} | ours | {"all", "paper"} <= spec.arms.keys()
    assert {trial.protocol for trial in trials_of(spec) if trial.label.startswith("paper")} == {"paper"}
    assert {trial.protocol for trial in trials_of(spec) if not trial.label.startswith("paper")} == {None}


@pytest.mark.parametrize("one", [one for one in RESULTS if "table" in one], ids=lambda one: one["name"])
def test_a_result_that_is_compared_has_the_lines_of_its_table(one: dict[str, Any]):
    """The commands make a file with the name of the raw results."""
    assert f"runs/reproduce/{Path(one['lines']).name}" in " ".join(one["commands"])
    words = [sys.executable, str(ROOT / "benchmarks" / "tables.py"), one["table"], str(ROOT / one["lines"])]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout.count("\n| ") > 2


def test_the_list_says_what_fits_and_nothing_runs():
    words = [sys.executable, str(ROOT / "benchmarks" / "reproduce.py")]
    found = subprocess.run([*words, "--list"], capture_output=True, text=True, check=True).stdout
    assert [line.split()[0] for line in found.splitlines()[1:]] != [] and "recipe-two-cores" in found
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})  # the process that is started inherits it
    try:
        found = subprocess.run([*words, "--list"], capture_output=True, text=True, check=True).stdout
    finally:
        os.sched_setaffinity(0, cores)
    fits = {line.split()[0]: line.split()[-1] for line in found.splitlines()[1:]}
    assert (fits["recipe-two-cores"], fits["proofs"]) == ("no", "yes")
    found = subprocess.run([*words, "recipes"], capture_output=True, text=True)
    assert found.returncode == 2 and "unknown: recipes; choose from recipe-gpu" in found.stderr


SMALL = """
tasks = ["access"]
[settings]
"machine.registers" = 2
"machine.hidden" = 8
modules = ["READ", "INC", "WRITE"]
batch = 8
validation = 16
check_every = 40
[arms.all]
groups = []
stages = [{{max_complexity = 3, steps = 80, population = 8}}]
[arms.paper-noise]
protocol = "paper"
noise = 0
copies = 1
controller = "mlp"
repeats = 1
steps = 80
population = 8
max_complexity = 3
"""


def test_lines_have_the_recipe_with_which_their_study_began(tmp_path: Path):
    record = {"spec": {"resources": {"cores": 2, "gpus": 0}}, "recipe": "abc"}
    (tmp_path / "study.json").write_text(json.dumps(record))
    outcome = {"verb": "train", "subject": "copy", "label": "", "command": "nram train copy", "run": "runs/copy-0"}
    outcome |= {"seed": 0, "learned": True, "ended": "finished", "seconds": 1.0, "device": "CPU", "versions": {}}
    (tmp_path / "results.jsonl").write_text(json.dumps(outcome | {"budget": 9.0, "result": {}}) + "\n")
    script, out = str(ROOT / "benchmarks" / "lines.py"), tmp_path / "lines.jsonl"
    subprocess.run([sys.executable, script, str(tmp_path), "--out", str(out)], check=True)
    assert json.loads(out.read_text())["recipe"] == "abc"


@pytest.mark.slow
def test_a_study_becomes_lines_and_tables(tmp_path: Path):
    sweep, out = Sweep(tmp_path), tmp_path / "lines.jsonl"
    sweep.run(sweep.spec(SMALL), "--out", "study")
    script = str(ROOT / "benchmarks" / "lines.py")
    subprocess.run([sys.executable, script, str(tmp_path / "study"), "--out", str(out)], check=True)
    lines = {line["arm"]: line for line in map(json.loads, out.read_text().splitlines())}
    assert lines.keys() == {"all", "paper-noise"}
    for line in lines.values():
        assert {"subject", "seed", "command", "versions", "device", "seconds", "learned"} <= line.keys()
    assert lines["paper-noise"]["command"].startswith("nram train access --seed 0 --protocol paper")
    assert [step for step, _, _ in lines["paper-noise"]["curve"]] == [40, 80]
    tables = str(ROOT / "benchmarks" / "tables.py")
    found = subprocess.run([sys.executable, tables, "arms", str(out)], capture_output=True, text=True, check=True)
    assert "| nothing | " in found.stdout and "| noise, the paper's protocol | " in found.stdout
