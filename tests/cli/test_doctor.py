"""`nram doctor`: what it says about runs that were learned, stopped, or not learned."""

import json
import shutil
from pathlib import Path

import jax
import numpy as np
import pytest

from nram.training.run_folder import RunFolder
from nram.training.settings import load_config


def test_a_finished_run_is_explained_and_left_alone(trained, call, bytes_of):
    before = bytes_of(trained.path)
    outcome = call("doctor", trained.path)
    assert outcome.status == 0, outcome.err
    assert "LEARNED. " in outcome.out and f"Next: nram extract {trained.path}" in outcome.out
    found = call("doctor", trained.path, "--json").value
    assert (found["task"], found["seed"], found["status"], found["learned"]) == ("access", 1, "finished", True)
    assert [stage["steps"] for stage in found["stages"]][0] == 150
    assert found["stages"][1]["best_hard"] == 1.0 and found["cures"] == []
    (fact,) = (line for line in outcome.out.splitlines() if line.startswith("Solved: "))
    assert fact.startswith("Solved: at best ") and fact.endswith(" of the members at a time, hard.")
    assert "soft" not in outcome.out.split("error", 1)[1]  # it was examined, and 0% in a report would contradict that
    assert "stops by itself on" in outcome.out and "GiB of main memory" in outcome.out
    assert bytes_of(trained.path) == before


def test_a_stopped_run_names_the_command_that_continues_it(interrupted, call):
    outcome = call("doctor", interrupted.path)
    assert outcome.status == 0, outcome.err
    assert "STOPPED before the end, at step 25 of stage 0, of 2 stages" in outcome.out
    assert f"Next: nram train access --out '{interrupted.path}' --resume" in outcome.out


@pytest.fixture
def not_learned(trained, tmp_path) -> Path:
    """The trained run, as if all members had solved the validation set and none had passed its examination.

    The metrics are written here, so that the cause does not depend on how the run went. The weights of member 0 are
    zeros.
    """
    path = tmp_path / "run"
    shutil.copytree(trained.path, path)
    failed = [{"part": "far", "limit": "T", "members": 4}]
    result = json.loads((path / "result.json").read_text())
    result |= {"perfect_members": 0, "examined_members": 4, "failed_examinations": failed}
    (path / "result.json").write_text(json.dumps(result))
    run = RunFolder.open(path)
    solved = {"levels": {"3": 8}, "solved_soft": 1.0, "solved_hard": 1.0, "best_hard": 1.0, "skipped": 0}
    rows = run.read_metrics()
    run.cut_metrics(0)
    for row in rows:
        run.append_metrics({**row, **solved})
    _, controller, description = run.load_member(0)
    run.save_member(0, jax.tree.map(np.zeros_like, controller), description)
    return path


def test_a_run_that_was_not_learned_is_explained_with_cures(not_learned, call):
    outcome = call("doctor", not_learned)
    assert outcome.status == 0  # it could be read
    words = " ".join(outcome.out.split())  # a long path changes where lines end
    assert "NOT LEARNED. " in words and "wrong on other or longer inputs" in words
    assert "  1. Find the smallest input that fails" in outcome.out
    for line in outcome.out.splitlines():
        assert len(line) <= 120 or line.startswith("     nram ")  # a command stays in one piece


@pytest.mark.slow
def test_the_evaluation_of_such_a_run_ends_with_the_first_cures(not_learned, call):
    outcome = call("eval", not_learned, "--count", "8")
    assert outcome.status == 0
    assert "What happened: The best members are right on the validation set" in outcome.out
    assert outcome.out.count("     nram ") == 3
    assert outcome.out.endswith(f"More: nram doctor {not_learned}\n")


def test_the_groups_of_a_run_have_a_row_for_each_stage(call, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    run = RunFolder.create(tmp_path / "run", load_config("copy", seed=1), ["train", "copy", "--seed", "1"], "a CPU")
    for group, stage, seconds in ((0, 0, 60.0), (1, 0, 100.0), (0, 1, 130.0)):
        row = {"group": group, "stage": stage, "step": 50, "max_complexity": 5, "seconds": seconds, "restarts": 3}
        run.append_metrics({**row, "median_error": 0.5, "best_error": 0.125, "best_hard": 0.75, "population": 512})
    outcome = call("doctor", run.path)
    assert outcome.status == 0, outcome.err
    lines = outcome.out.splitlines()
    start = lines.index("group  n     steps     time  restarts  error  hard  best")
    assert [line.split()[0] for line in lines[start + 1 : start + 4]] == ["soft", "soft", "hard"]
    assert lines[start + 1].split() == ["soft", "<=", "5", "50/40000", "1:00", "3", "0.125", "-", "75%"]
    assert "level" not in outcome.out and "Progress: the best member of hard last got better at 1:40" in outcome.out
    assert all(len(line) <= 80 or line.startswith(("Next: ", "     nram ")) for line in lines)
    found = call("doctor", run.path, "--json").value
    assert [(one["group_name"], one["stage"]) for one in found["stages"]] == [("soft", 0), ("soft", 1), ("hard", 0)]


def test_what_is_no_run_is_refused(call, tmp_path):
    refused = call("doctor", tmp_path)
    assert (refused.status, refused.out) == (2, "")
    assert "it has no run.json" in refused.err
