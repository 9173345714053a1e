"""The main promise: from examples alone to a machine that is perfect, soft and hard, at any length."""

import json
import os
import subprocess
import sys

import pytest

from nram.extensions import get_task


def nram(*arguments: str, statuses: tuple[int, ...] = (0,)) -> dict:
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-m", "nram", *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode in statuses, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "access"
    result = nram("train", "access", "--out", str(folder))
    assert result["perfect_members"] >= 1
    assert result["halting_members"] <= result["perfect_members"] <= result["examined_members"]
    return folder


def test_access_learned_with_the_default_recipe_is_perfect_on_unseen_instances(run):
    report = nram("eval", str(run), "--count", "500")
    assert report["perfect"] == {"soft": True, "hard": True, "far": True}
    assert [point["max_complexity"] for point in report["curve"]] == [10, 20, 30, 40, 50]
    assert all(point["hard"]["error"] == 0 for point in report["curve"])


def test_the_learned_machine_solves_an_instance_far_beyond_its_training(run):
    solved = nram("eval", str(run), "--solve", "200", "--seed", "3")
    memory, k = solved["memory"], solved["input"][0]
    assert len(memory) == get_task("access").least_memory(200)
    assert memory[0] == solved["input"][k + 1]
    assert solved["right"] is True


@pytest.mark.slow
@pytest.mark.parametrize("task", ["increment", "copy", "reverse", "swap"])
def test_the_recipe_of_an_easy_task_gives_a_perfect_member_within_three_seeds(task, tmp_path):
    runs = (("train", task, "--seed", str(seed), "--out", str(tmp_path / str(seed))) for seed in (1, 2, 3))
    assert any(nram(*words, statuses=(0, 1))["perfect_members"] for words in runs)


FILES = {
    "one size": [{"a": a, "b": b, "result": a + b} for a in range(1, 8) for b in range(1, 8)],
    "depends on M": [
        {"input": [x, *[0] * (m - 1)], "output": [m - 1 - x, *[0] * (m - 1)], "cells": [0]}
        for m in range(4, 13)
        for x in range(m)
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("rows", FILES.values(), ids=FILES)
def test_files_of_one_size_and_files_whose_answers_depend_on_the_memory_size_are_learned_by_training(rows, tmp_path):
    file = tmp_path / "examples.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    report = nram("learn", str(file), "--method", "train", "--budget", "240", "--out", str(tmp_path / "out"))
    assert report["found"] and report["trained"]["runs"] >= 1
