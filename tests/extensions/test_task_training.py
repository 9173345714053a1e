"""Training on a task that has no sampler inside JAX, and its instances inside compiled code."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nram.extensions import get_task
from nram.training.config import StageConfig, TrainConfig
from nram.training.mapping import mapped
from nram.training.settings import config_from_dict, config_to_dict, load_config

EXAMPLE = Path(__file__).parents[2] / "src/nram/examples" / "tasks" / "maximum.py"
SMALL = (
    "groups=[]",
    "batch=4",
    "validation=8",
    "check_every=3",
    "hidden=4",
    "registers=2",
    'modules=["READ","MAX","WRITE"]',
)
SIZE = 9
COMPLEXITIES = np.array([1, 3, 5, 2, 7, 4], np.int32)


def batch(keys, complexities):
    return jax.vmap(lambda key, n: get_task(EXAMPLE).draw_traced(key, n, SIZE))(keys, complexities)


@pytest.fixture(scope="module")
def keys():
    return jax.random.split(jax.random.key(4), len(COMPLEXITIES))


def test_instances_are_those_of_the_plain_sampler(keys):
    drawn = batch(keys, COMPLEXITIES)
    assert [array.dtype.name for array in drawn] == ["int32", "int32", "bool", "bool"]
    for n, start, output, cells, scored in zip(COMPLEXITIES, *map(np.asarray, drawn), strict=True):
        assert np.count_nonzero(start) == n and not start[n + 1 :].any()
        assert output.tolist() == [max(start), *start[1:]]
        assert np.flatnonzero(cells).tolist() == np.flatnonzero(scored).tolist() == [0]
    assert len({tuple(start) for start in np.asarray(drawn.input)}) == len(COMPLEXITIES)


def test_the_same_key_gives_the_same_instance_however_it_is_mapped(keys):
    expected = np.asarray(batch(keys, COMPLEXITIES).input)
    assert np.array_equal(jax.jit(batch)(keys, COMPLEXITIES).input, expected)

    def one(key, n):
        return get_task(EXAMPLE).draw_traced(key, n, SIZE).input

    assert np.array_equal(jax.lax.map(lambda pair: one(*pair), (keys, COMPLEXITIES)), expected)
    devices = jax.devices()
    assert np.array_equal(mapped(one, devices, len(COMPLEXITIES))(keys, COMPLEXITIES), expected)
    twice = jax.vmap(jax.vmap(one, (None, 0)), (0, None))(keys, jnp.asarray(COMPLEXITIES))
    assert np.array_equal(np.diagonal(twice, axis1=0, axis2=1).T, expected)
    assert not np.array_equal(one(jax.random.key(1), 5), one(jax.random.key(2), 5))


def test_a_configuration_finds_the_task_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(EXAMPLE.parent)
    config = load_config("maximum.py")
    monkeypatch.chdir(tmp_path)
    assert (config.task, config.task_name) == (str(EXAMPLE), "maximum")
    stage = StageConfig(4, 1, 1)
    again = config_from_dict(config_to_dict(dataclasses.replace(config, stages=(stage,))))
    assert again.memory_size(stage) == 6
    assert again.step_limit(4) == TrainConfig(str(EXAMPLE)).step_limit(4) == 14


@pytest.mark.slow
def test_a_run_goes_all_the_way_and_says_so_when_its_task_is_gone(tmp_path):
    task = tmp_path / "my tasks" / "mine.py"
    task.parent.mkdir()
    task.write_text(EXAMPLE.read_text())

    def nram(*words: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
        command = [sys.executable, "-m", "nram", *words]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    settings = [word for setting in (*SMALL, "steps=6", "population=2") for word in ("--set", setting)]
    trained = nram("train", "my tasks/mine.py", "--json", *settings)
    assert trained.returncode == 1, trained.stderr  # six steps are too few to learn it
    result = json.loads(trained.stdout)
    assert (result["task"], result["run"]) == ("maximum", "runs/maximum-0")
    extracted = nram("extract", "runs/maximum-0", "--task", "my tasks/mine.py")
    assert extracted.returncode == 0, extracted.stderr
    assert f"Next: nram verify runs/maximum-0/program.json --task '{task}'" in extracted.stdout
    assert json.loads((tmp_path / "runs/maximum-0/program.json").read_text())["task"] == "maximum"
    assert nram("eval", "runs/maximum-0", "--solve", "3", "--trust").returncode in (0, 1)
    task.unlink()
    gone = nram("eval", "runs/maximum-0")
    assert gone.returncode == 1
    assert f"there is no file {task}" in gone.stderr and "Traceback" not in gone.stderr


def test_a_task_that_fails_while_it_trains_is_told_without_a_stack_of_calls(tmp_path):
    # Right on every size that is tried when the file is loaded.
    text = EXAMPLE.read_text().replace(
        "    return [max(memory), *memory[1:]], [0]\n",
        "    return [max(memory), *memory[1:]], [0] if len(memory) != 63 else []\n",
    )
    task = tmp_path / "mine.py"
    task.write_text(text)
    words = ["train", str(task), "--out", str(tmp_path / "run")]
    for setting in (*SMALL, "steps=2", "population=1", "stages.0.extra_memory=58"):
        words += ["--set", setting]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-m", "nram", *words], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "names no output cell" in done.stderr and "Traceback" not in done.stderr
