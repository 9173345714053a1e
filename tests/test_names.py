"""Nothing depends on the name of a task: a renamed copy of it is trained and searched to the same bits.

The runs are small, but whole: groups take turns, members are culled and cloned, islands restart with another T(n), the
best go on to a second stage, members are examined, and a group that fails begins again.
"""

import json
import threading
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from support.training_runs import ending

from nram.extensions import get_task, register_task, task_names
from nram.learning.task import training_tasks
from nram.limits import StepLimit
from nram.runtime import quick_options
from nram.search.job import SearchJob, Space
from nram.search.structure import Structure
from nram.tasks.base import Task
from nram.tasks.example_files import read_examples
from nram.training import culling, mapping, population, trainer
from nram.training.callbacks import Report, TrainingCallbacks
from nram.training.checkpoint import read_description
from nram.training.config import CullConfig, CurriculumConfig, GroupConfig, MachineConfig, StageConfig, TrainConfig
from nram.training.evaluation import Trial, draw_trial
from nram.training.job import TrainingJob
from nram.training.ranges import Range
from nram.training.run_folder import RunFolder
from nram.training.settings import config_to_dict, load_config

PLAIN, FILE = "listk, plain sampler", "a file of examples"


def cases(*quick: str) -> list[Any]:
    """All of them. Those that are not quick take minutes together."""
    names = *task_names(), PLAIN, FILE
    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.fixture(scope="module", autouse=True)
def quickly_compiled():
    """A checkpoint at every chance, and code that compiles five times faster, because it runs for a few steps only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer, "CHECKPOINT_SECONDS", 0)
        patch.setattr(mapping, "quick_options", partial(quick_options, 0))
        for module in (population, culling):
            patch.setattr(module, "mapped", partial(mapping.mapped, quick=True))
        yield


def pair(case: str, folder: Path) -> tuple[Task, Task]:
    """A task and its renamed copy."""
    if case == FILE:
        rows = [([0, a, *rest, 0], a) for a in (1, 2) for rest in ([], [1], [2], [1, 2], [2, 1])]
        lines = ({"input": m, "output": [a, *m[1:]], "cells": [0], "steps": 12} for m, a in rows)
        (folder / "examples.jsonl").write_text("\n".join(map(json.dumps, lines)))
        examples = read_examples(folder / "examples.jsonl").examples
        return training_tasks(examples, "one")[0], training_tasks(examples, "other")[0]
    if case == PLAIN:
        task = register_task(replace(get_task("listk"), name="plain-listk", sample_traced=None))
    else:
        task = get_task(case)
    return task, register_task(replace(task, name=f"renamed-{task.name}"))


# ---- training


def small_config(task: Task) -> TrainConfig:
    """A soft group, and one with straight-through gradients and lexicase selection. A check follows every step.

    The soft stages have the same shapes, so that JAX finds what it has compiled in its cache.
    """
    cull = CullConfig(share=0.5, islands=2, patience=Range((1.0,)))
    soft = StageConfig(task.min_complexity + 1, 12, 8, step_slack=1, keep=4, cull=cull)
    hard = replace(soft, straight_through=True, cull=replace(cull, lexicase=True, soften=0.5))
    machine = MachineConfig(registers=2, modules=("READ", "INC", "WRITE"), hidden=4)
    group = GroupConfig("soft", 0, machine, batch=4, steps_per_item=1, steps_constant=2, check_every=1, validation=8)
    groups = replace(group, stages=(soft,)), replace(group, name="hard", stages=(hard, soft))
    return TrainConfig(task.name, 3, groups, draw_steps=True, curriculum=CurriculumConfig(enabled=False))


class Trail(TrainingCallbacks):
    """The checkpoints of a run, one for each report and the last."""

    def __init__(self, folder: RunFolder):
        self.folder = folder
        self.turns: list[int] = []
        self.states: list[dict[str, Any]] = []
        self.arrays: list[dict[str, np.ndarray]] = []

    def report(self, report: Report) -> None:
        self.turns.append(report.group)
        self.look()

    def look(self) -> None:
        state = read_description(self.folder.checkpoint)["state"]
        self.states.append({name: value for name, value in state.items() if name not in ("seconds", "notices")})
        self.arrays.append(load_file(self.folder.checkpoint))

    def largest(self, name: str) -> float:
        """The largest number of this name that any member ever had."""
        return max(float(array.max()) for one in self.arrays for key, array in one.items() if key.endswith(name))


def trained(config: TrainConfig, path: Path) -> tuple[Trail, list[Any]]:
    """The trail of a run, and everything in its checkpoints and files, without times and the name of the task."""
    job = TrainingJob.open(path, config, [])
    trail = Trail(job.folder)
    job.run("cpu", trail)
    trail.look()
    best = sorted((path / "best").iterdir())
    _, _, metrics, result = ending(path)
    words = json.dumps([trail.states, [read_description(file) for file in best], metrics, result])
    arrays = [*trail.arrays, *map(load_file, best)]
    numbers = [{name: array.tobytes() for name, array in one.items()} for one in arrays]
    return trail, [*json.loads(words.replace(json.dumps(config.task), '"the task"')), numbers]


def same_training(config: TrainConfig, copy: Task, folder: Path) -> Trail:
    """The trail of a run. The renamed copy has the same."""
    trail, one = trained(config, folder / "one")
    _, other = trained(replace(config, task=copy.name), folder / "other")
    for left, right in zip(one, other, strict=True):
        assert left == right
    return trail


@pytest.mark.parametrize("case", cases())
def test_a_renamed_copy_trains_to_the_same_bits(case, tmp_path):
    task, copy = pair(case, tmp_path)
    trail = same_training(small_config(task), copy, tmp_path)
    # Nothing is left out.
    groups = trail.states[-1]["groups"]
    assert [group["stage"] for group in groups] == [0, 1] and all(group["restarts"] for group in groups)
    assert {(0, 1), (1, 0)} <= set(pairwise(trail.turns))
    assert trail.largest("steps_per_item") > 1 or trail.largest("steps_constant") > 2  # an island drew its T(n)


def nearly_nothing(name: str) -> tuple[Task, list[list[int]]]:
    """A task, and the inputs that it has drawn: change nothing, but only for n <= 40.

    A member that changes nothing is right in training and fails its examination at n = 50.
    """
    drawn: list[list[int]] = []

    def sample_input(rng, n, memory_size):
        memory = [int(n > 40), *(rng.randrange(1, memory_size) for _ in range(n)), *[0] * (memory_size - n - 1)]
        if threading.current_thread() is threading.main_thread():  # how far another draws ahead is up to the clock
            drawn.append(memory)
        return memory

    task = Task(
        name=name,
        summary="Copy the first cell to the last.",
        layout="0 or 1, A[0..n-1], 0",
        trained_up_to=2,
        step_limit=StepLimit(2, 4),
        least_memory=lambda n: 2 * n + 1,
        sample_input=sample_input,
        oracle=lambda memory: ([*memory[:-1], memory[0]], [len(memory) - 1]),
    )
    register_task(task)
    drawn.clear()  # registering tries the task
    return task, drawn


def test_a_renamed_copy_is_examined_on_the_same_instances_and_begins_again_with_the_same_members(tmp_path):
    (task, drawn), (copy, drawn_by_copy) = map(nearly_nothing, ("nearly-nothing", "renamed"))
    config = small_config(task)
    soft = replace(config.groups[0].stages[0], steps=3, stop_at=1)
    config = replace(config, groups=(replace(config.groups[0], stages=(soft, soft)),))
    trail = same_training(config, copy, tmp_path)
    assert drawn == drawn_by_copy and max(map(len, drawn)) == 101  # with those of the examination at n = 50
    (group,) = trail.states[-1]["groups"]
    assert group["attempt"] == 2 and not group["perfect"]


@pytest.mark.parametrize("case", cases("copy", PLAIN, FILE))
def test_a_renamed_copy_is_judged_on_the_same_instances(case, tmp_path):
    task, copy = pair(case, tmp_path)
    for purpose in ("examination", "test"):
        trial = Trial(task.name, 6, 20, 3, purpose)
        (one, sizes), (other, same_sizes) = draw_trial(trial), draw_trial(replace(trial, task=copy.name))
        for left, right in zip((*one, sizes), (*other, same_sizes), strict=True):
            np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("name", task_names())
def test_a_renamed_copy_has_the_same_recipe(name, tmp_path):
    _, copy = pair(name, tmp_path)
    one, other = (config_to_dict(load_config(task, seed=7)) for task in (name, copy.name))
    assert one.pop("task") == name and other.pop("task") == copy.name
    assert one == other


# ---- search


@pytest.mark.parametrize("name", task_names())
def test_a_renamed_copy_has_the_same_pool_and_the_same_counterexamples(name, tmp_path):
    one, other = (SearchJob.open(task, Space(), seed=3) for task in pair(name, tmp_path))
    assert one.pool == other.pool
    does_nothing = Structure(1).program(np.zeros((2, Structure(1).width), int))
    assert one.counterexamples(does_nothing) == other.counterexamples(does_nothing) != []


@pytest.mark.slow
@pytest.mark.parametrize("name", task_names())
def test_a_renamed_copy_is_searched_by_the_same_chains(name, tmp_path):
    ends = []
    for task in pair(name, tmp_path):
        outcome = SearchJob.open(task, Space(registers=2), seed=3).run(600, workers=1, candidates=1)  # a round
        assert outcome.best is not None and outcome.best.name == task.name
        tables = [left.genes.tolist() for left in (*outcome.state.left, *outcome.state.near)]
        ends.append((outcome.state, tables, outcome.best.states))
    assert ends[0] == ends[1]
