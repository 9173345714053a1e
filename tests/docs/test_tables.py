"""The tables of the docs are what the raw results say."""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from nram import load_program

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "benchmarks"
RUN = {"subject": "copy", "seed": 0, "command": "nram train copy", "seconds": 10.0, "learned": True}
ROW = "| copy | 4 | 3 | 30..95% | 1 | 25 s | 30 s |"  # the run that failed counts as the longest


def tables(scripts: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(scripts / "tables.py"), *words], capture_output=True, text=True)


def test_the_tables_are_up_to_date():
    found = tables(SCRIPTS, "--check")
    assert found.returncode == 0, found.stderr


def test_the_plots_are_of_the_raw_results(tmp_path: Path):
    words = [sys.executable, str(SCRIPTS / "plots.py"), "--check"]
    found = subprocess.run(words, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    for folder in ("benchmarks", "results"):  # a copy without the plot
        shutil.copytree(ROOT / folder, tmp_path / folder)
    found = subprocess.run([sys.executable, str(tmp_path / "benchmarks" / "plots.py"), "--check"], capture_output=True)
    assert found.returncode == 1 and b"run python benchmarks/plots.py" in found.stderr


def test_every_raw_result_is_a_line_with_its_origin():
    for file in (ROOT / "results").glob("*.jsonl"):
        for words in file.read_text().splitlines():
            line = json.loads(words)
            assert {"subject", "seed", "command", "versions", "device", "seconds"} <= line.keys(), file


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A small copy of the project: the scripts, results of four runs, and a page with their table."""
    for folder in ("benchmarks", "docs", "results"):
        (tmp_path / folder).mkdir()
    for name in ("tables.py", "convergence.py"):
        (tmp_path / "benchmarks" / name).write_text((SCRIPTS / name).read_text())
    lines = [RUN | {"halting_members": 2}, RUN | {"seed": 1, "learned": False, "seconds": 9.0}]
    lines += [RUN | {"seed": 2, "seconds": 20.0}, RUN | {"seed": 3, "seconds": 30.0}]
    (tmp_path / "results" / "runs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "README.md").write_text("# Nothing\n")
    page = "# Page\n\n<!-- table: runs results/runs.jsonl -->\n<!-- end of table -->\n\nMore.\n"
    (tmp_path / "docs" / "page.md").write_text(page)
    return tmp_path


def test_a_table_is_made_from_the_runs_and_nothing_else_changes(copied: Path):
    scripts, page = copied / "benchmarks", copied / "docs" / "page.md"
    assert tables(scripts, "--check").returncode == 1
    assert tables(scripts).stdout == "docs/page.md\n"
    assert ROW in page.read_text()
    assert page.read_text().endswith("<!-- end of table -->\n\nMore.\n")
    assert tables(scripts, "--check").returncode == 0


def lines_of(path: Path, *lines: Mapping[str, object]) -> Path:
    path.write_text("".join(json.dumps({**RUN, **line}) + "\n" for line in lines))
    return path


def test_arms_are_compared_by_task(tmp_path: Path):
    file = lines_of(tmp_path / "arms.jsonl", {"arm": "all"}, {"arm": "culling", "learned": False}, {"arm": "culling"})
    assert tables(SCRIPTS, "arms", str(file)).stdout.splitlines() == [
        "| without | copy |",
        "| --- | --- |",
        "| nothing | 1 of 1: 21..100% |",
        "| culling | 1 of 2: 9..91% |",
    ]


def test_populations_of_one_arm_are_added(tmp_path: Path):
    counts = {"members": 500, "soft": 50, "hard": 5, "both": 4, "updates": 30000}
    lines = [{"arm": "noise", "converged": counts}] * 2 + [{"arm": "noise"}]  # the last one was stopped
    found = tables(SCRIPTS, "converged", str(lines_of(tmp_path / "some.jsonl", *lines))).stdout
    assert "| copy | noise | 1,000 | 30,000 | 100: 10% (8.3..12) | 10: 1% (0.54..1.8) | 8: 0.8% (0.41..1.6) |" in found


def test_a_stopped_population_counts_as_it_was_at_its_last_check(tmp_path: Path):
    line = {"arm": "all", "members": 500, "curve": [[1000, 1, 0], [2000, 50, 5]]}
    found = tables(SCRIPTS, "converged", str(lines_of(tmp_path / "some.jsonl", line))).stdout
    assert "| copy | nothing | 500 | 2,000 | 50: 10% (7.7..13) | 5: 1% (0.43..2.3) | not counted |" in found


def test_the_papers_table_stands_beside_its_protocol_and_ours(tmp_path: Path):
    paper = {"paper: train error": "0", "paper: generalisation": "weak", "paper: discretisation": "perfect"}
    cells = paper | {"ours: train error": "0", "ours: at n = 50": "perfect", "ours: discretisation": "perfect"}
    errors = {"soft_trained": 0.0, "soft_far": 0.0123, "hard_trained": 0.5, "hard_far": 1.0}
    lines = [{"cells": cells}, {"arm": "noise", "first": {}}, {"arm": "all", "first": {"errors": errors}}]
    found = tables(SCRIPTS, "three-times", str(lines_of(tmp_path / "some.jsonl", *lines))).stdout
    assert "| copy | 0 | 0 | 0 | weak | 1.2% | perfect | perfect | 50%; at n = 50: 100% | perfect |" in found


def test_populations_are_counted_by_controller(tmp_path: Path):
    parts = [{"controller": name, "members": 100, "soft": 10, "hard": 0} for name in ("lstm", "mlp", "mlp")]
    line = {"arm": "all", "structures": parts}
    found = tables(SCRIPTS, "structures", str(lines_of(tmp_path / "some.jsonl", line))).stdout
    assert "| copy | nothing | mlp | 200 | 20: 10% (6.6..15) | 0: 0% (0..1.9) |" in found


def test_first_members_are_counted(tmp_path: Path):
    lines = [{"first": {"errors": {"soft_far": error, "hard_far": 0.0}, "halts": True}} for error in (0.0, 0.1)]
    stopped: dict[str, object] = {}
    found = tables(SCRIPTS, "first-members", str(lines_of(tmp_path / "some.jsonl", *lines, stopped))).stdout
    assert "| copy | 2 | 1: 9..91% | 2: 34..100% | 2: 34..100% |" in found


def test_a_figure_changed_by_hand_is_noticed(copied: Path):
    scripts, page = copied / "benchmarks", copied / "docs" / "page.md"
    tables(scripts)
    page.write_text(page.read_text().replace("| 4 | 3 |", "| 4 | 4 |"))
    found = tables(scripts, "--check")
    assert found.returncode == 1
    assert "docs/page.md has a table that is out of date" in found.stderr


def test_a_table_can_be_printed(copied: Path):
    found = tables(copied / "benchmarks", "runs", str(copied / "results" / "runs.jsonl"))
    assert ROW in found.stdout
    assert tables(copied / "benchmarks", "rows", "x").returncode == 2


def test_the_program_in_the_readme_is_that_of_the_zoo():
    program = load_program("access@trained")
    made, listing = dict(program.made), str(program).partition("always:")[2].rstrip().splitlines()
    page = (ROOT / "README.md").read_text()
    assert f"$ {made['command']} && nram extract runs/access-{made['seed']}" in page
    assert f"    {made['simplified'].removeprefix('from ').partition(', for')[0]} -> 1 register, 1 state, 1 row" in page
    assert "    always:" + "\n".join(f"    {line}" if line else line for line in listing) in page


def test_the_tables_of_the_suite_count_exact_programs(copied: Path):
    """A program that is wrong on larger inputs was found, but it does not count for the time."""
    line = {"subject": "gcd", "problem": "gcd", "tier": 3, "found": True, "operations": 6, "rows": 3}
    runs = [
        line | {"exact": True, "seconds": 10.0, "candidates": 1_000_000},
        line | {"exact": True, "seconds": 20.0, "candidates": 3_000_000, "operations": 5},
        line | {"exact": False, "seconds": 1.0, "candidates": 1_000, "operations": 2},
    ]
    file = copied / "results" / "suite.jsonl"
    file.write_text("".join(json.dumps(run) + "\n" for run in runs))
    found = tables(copied / "benchmarks", "suite", str(file))
    assert found.stdout.splitlines()[2:] == ["| gcd | 3 | 3 | 3 | 2 | 21..94% | 20 s | 3.0 million | 5 + 3 |"], found
    found = tables(copied / "benchmarks", "suite-tiers", str(file))
    assert [row[:26] for row in found.stdout.splitlines()[2:]] == [
        "| 3 | 1 | 1 | 3 | 3 | 2 | ",
        "| all | 1 | 1 | 3 | 3 | 2 ",
    ]


def test_the_table_of_a_search_on_more_workers_has_medians(copied: Path):
    line = {"subject": "merge", "where": "threads", "workers": 2, "per_second": 500_000, "whole_process": 9.0}
    runs = [line | {"seconds": seconds} for seconds in (5.0, 7.0)] + [line | {"where": "ray", "seconds": 8.0}]
    file = copied / "results" / "scaling.jsonl"
    file.write_text("".join(json.dumps(run) + "\n" for run in runs))
    assert tables(copied / "benchmarks", "scaling", str(file)).stdout.splitlines()[2:] == [
        "| merge | threads | 2 | 2 | 6.0 s | 0.50 million | 9.0 s |",
        "| merge | ray | 2 | 1 | 8.0 s | 0.50 million | 9.0 s |",
    ]


def test_the_table_of_peers_has_a_column_for_each_method_and_one_for_training(copied: Path):
    """Runs without an exact program count as the longest, and a problem without peers has no row."""
    line = {"subject": "gcd", "method": "search", "exact": True, "seconds": 10.0}
    runs = [
        line,
        line | {"seconds": 30.0},
        line | {"exact": False},
        line | {"method": "cvc5", "exact": False},
        {"subject": "gcd.py", "learned": True, "seconds": 46.0},
        {"subject": "copy", "learned": True, "seconds": 46.0},
    ]
    file = copied / "results" / "peers.jsonl"
    file.write_text("".join(json.dumps(run) + "\n" for run in runs))
    found = tables(copied / "benchmarks", "peers", str(file))
    assert found.stdout.splitlines()[0] == "|  | search | cvc5 | training |", found
    assert found.stdout.splitlines()[2] == "| gcd | 2 of 3, 30 s | no | yes, 46 s |"
    assert found.stdout.splitlines()[3].startswith("| exact runs | 2 of 3: ")


def test_the_table_of_examples_has_a_row_with_and_without_questions(copied: Path):
    line = {"subject": "fill", "examples": 5, "ask": False, "exact": False}
    runs = [line, line | {"examples": 20, "exact": True}, line | {"ask": True, "exact": True}]
    file = copied / "results" / "examples.jsonl"
    file.write_text("".join(json.dumps(run) + "\n" for run in runs))
    found = tables(copied / "benchmarks", "suite-examples", str(file))
    assert found.stdout.splitlines()[2:4] == ["| fill | without | 0 of 1 | 1 of 1 |", "| fill | with | 1 of 1 |  |"], (
        found
    )
