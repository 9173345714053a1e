"""A run that is stopped or killed, anywhere, ends in the same bits as one that was left alone.

Here everything happens in one process, so that every single moment can be tried; the tests of the
command line do it with processes.
"""

import json
import os
import shutil
from collections import namedtuple
from dataclasses import asdict, replace
from pathlib import Path

import jax
import numpy as np
import pytest
from support.configs import plain_config
from support.training_runs import ending, shared_compilation

from nram import files
from nram.errors import NramError
from nram.training import trainer
from nram.training.callbacks import Interrupted, Report, TrainingCallbacks
from nram.training.checkpoint import read_description, save_arrays
from nram.training.config import TrainConfig
from nram.training.group import GroupState
from nram.training.member import Hyper
from nram.training.run_folder import RunFolder
from nram.training.settings import config_from_dict
from nram.training.trainer import train

CONFIG = plain_config(
    "access",
    *("registers=2", "hidden=8", 'modules=["READ","INC","WRITE"]', "noise=0.001..0.1"),
    *("max_complexity=2", "population=4", "step_slack=1", "batch=4", "validation=8"),
    *("check_every=10", "steps=40", "stop_at=0", "cull.share=0.5", "islands=2", "patience=1"),
    *("stages.0.straight_through=true", "stages.0.cull.soften=0.5", "stages.0.lexicase=true"),
    seed=2,
)
REPORTS = [(stage, step) for stage in (0, 1) for step in (10, 20, 30, 40)]
STOPPED = [(1, 0) if report == (0, 40) else report for report in REPORTS]  # a stage that is over has ended


@pytest.fixture(scope="module", autouse=True)
def quick_runs():
    with shared_compilation():
        yield


class Reports(TrainingCallbacks):
    """Keeps the reports."""

    def __init__(self):
        self.seen: list[Report] = []

    def report(self, report: Report) -> None:
        self.seen.append(report)


def go_on(path: Path, config: TrainConfig = CONFIG, callbacks: TrainingCallbacks | None = None, **stopping):
    """Start the run, or go on with it."""
    run = RunFolder.open(path) if (path / "run.json").is_file() else RunFolder.create(path, config, [], "")
    return train(run, config, jax.devices(), callbacks, **stopping)


def stop_after_a_report(path: Path) -> None:
    reports = Reports()
    go_on(path, callbacks=reports, stopping=lambda: bool(reports.seen))


@pytest.fixture(scope="module")
def left_alone(tmp_path_factory):
    path = tmp_path_factory.mktemp("left alone")
    go_on(path)
    return ending(path)


def test_a_run_left_alone_reports_every_chunk_and_keeps_every_member(left_alone):
    best, arrays, metrics, result = left_alone
    steps = np.frombuffer(arrays["members.step"], np.int32)
    assert min(steps) < 80  # an island has started anew: what follows is about that as well
    assert [(row["stage"], row["step"]) for row in metrics] == REPORTS
    assert set(best) == {f"{rank}.safetensors" for rank in range(4)}
    assert result["stages"] == 2


def test_the_same_configuration_gives_the_same_bits(left_alone, tmp_path):
    go_on(tmp_path)
    assert ending(tmp_path) == left_alone


def test_checkpoints_do_not_change_the_result(left_alone, tmp_path, monkeypatch):
    monkeypatch.setattr(trainer, "CHECKPOINT_SECONDS", float("inf"))
    go_on(tmp_path)
    assert ending(tmp_path) == left_alone


@pytest.mark.parametrize("count", range(1, len(REPORTS) + 1))
def test_a_run_stopped_at_any_report_ends_the_same(left_alone, tmp_path, count):
    reports = Reports()
    with pytest.raises(Interrupted) as stop:
        go_on(tmp_path, callbacks=reports, stopping=lambda: len(reports.seen) == count)
    stage, step = STOPPED[count - 1]
    assert f"stopped at step {step} of stage {stage};" in str(stop.value)
    assert f"nram.train('access', out='{tmp_path}', resume=True)" in str(stop.value)
    assert not (tmp_path / "result.json").exists()
    go_on(tmp_path)
    assert ending(tmp_path) == left_alone


def test_a_run_stopped_wherever_it_asks_ends_the_same(left_alone, tmp_path):
    """Also between the parts of a check, in an examination, between stages and while it finishes."""
    stops = 0
    for asked in range(2, 200, 5):
        path, answers = tmp_path / str(asked), iter([False] * asked + [True])
        try:
            go_on(path, stopping=lambda answers=answers: next(answers, True))
        except Interrupted:
            stops += 1
        else:
            break
        go_on(path)
        assert ending(path) == left_alone
    assert stops > 5


def test_a_run_stopped_at_every_report_ends_the_same(left_alone, tmp_path):
    for stage, step in STOPPED:
        with pytest.raises(Interrupted, match=f"step {step} of stage {stage};"):
            stop_after_a_report(tmp_path)
    go_on(tmp_path)
    assert ending(tmp_path) == left_alone


def test_a_checkpoint_from_before_a_setting_existed_goes_on(left_alone, tmp_path, monkeypatch):
    plain = trainer.config_to_dict

    def before(config):
        data = plain(config)
        for stage in data["stages"]:
            del stage["cull"]["exponent"]
        return data

    monkeypatch.setattr(trainer, "config_to_dict", before)
    with pytest.raises(Interrupted):
        stop_after_a_report(tmp_path)
    monkeypatch.undo()
    monkeypatch.setattr(trainer, "CHECKPOINT_SECONDS", 0)
    go_on(tmp_path)
    assert ending(tmp_path) == left_alone


class Killed(BaseException):
    """The process is gone: nothing of the program catches this."""


@pytest.fixture
def kill_at(monkeypatch):
    """A function that arms a kill before the n-th time that something reaches the disk."""
    replace_file, sync, append = os.replace, os.fsync, RunFolder.append_metrics
    left = [0]

    def moment():
        left[0] -= 1
        if left[0] == 0:
            raise Killed

    def fsync(descriptor):
        moment()  # the new file is there, perhaps not all of it, under another name
        sync(descriptor)

    def replacing(source, target):
        moment()
        replace_file(source, target)
        moment()

    def append_metrics(run, row):
        with open(run.metrics, "a") as file:
            file.write('{"half a line')
            file.flush()
            moment()
            file.truncate(file.tell() - len('{"half a line'))
        append(run, row)
        moment()

    monkeypatch.setattr(files.os, "fsync", fsync)
    monkeypatch.setattr(files.os, "replace", replacing)
    monkeypatch.setattr(RunFolder, "append_metrics", append_metrics)

    def arm(count: int) -> int:
        """Returns how many moments were left."""
        before, left[0] = left[0], count
        return before

    return arm


# Two moments to each of 8 reports. Four to every file (two syncs, before and after the renaming): run.json, the
# empty metrics, a checkpoint after each report and after either stage, four members and the result.
LEAST_MOMENTS = 8 * 2 + 4 * (1 + 1 + 8 + 2 + 4 + 1)


@pytest.mark.parametrize("stride", [7, pytest.param(1, marks=pytest.mark.slow)])  # 7 meets all four of a file
def test_a_run_killed_at_any_write_ends_the_same(left_alone, tmp_path, kill_at, stride):
    kill_at(10**6)
    go_on(tmp_path / "alone")
    moments = 10**6 - kill_at(0)
    assert moments >= LEAST_MOMENTS
    for count in range(1, moments + 1, stride):
        path = tmp_path / str(count)
        path.mkdir()
        kill_at(count)
        with pytest.raises(Killed):
            go_on(path)
        kill_at(0)
        go_on(path)
        assert ending(path) == left_alone, f"killed at moment {count}"
        assert not list(path.rglob("*.part")), f"killed at moment {count}"
        shutil.rmtree(path)


def test_a_run_killed_again_before_it_gets_on_ends_the_same(left_alone, tmp_path, kill_at):
    kills = 0
    for count in (9, 4, 5, 11, 7, 12, 3, 14):
        kill_at(count)
        try:
            go_on(tmp_path)
        except Killed:
            kills += 1
        else:
            break
    kill_at(0)
    go_on(tmp_path)
    assert kills >= 5
    assert ending(tmp_path) == left_alone


def test_a_finished_run_that_lost_its_result_finds_it_again(left_alone, tmp_path):
    go_on(tmp_path)
    (tmp_path / "result.json").unlink()
    shutil.rmtree(tmp_path / "best")
    go_on(tmp_path)
    assert ending(tmp_path) == left_alone


def test_a_checkpoint_of_version_0_1_is_read():
    state = {"stage": 1, "step": 25, "done": False, "seconds": 1.5, "rows": 3, "hard": 0.25, "perfect": 0}
    read = trainer._described_state(Path("file"), {"state": state})
    assert read.groups == [GroupState(begun=True, stage=1, step=25, solved_hard=0.25)]
    assert (read.seconds, read.rows) == (1.5, 3)
    new = trainer._State(groups=[GroupState(solved_hard=0.5)], current=0)
    assert trainer._described_state(Path("file"), {"state": asdict(new)}) == new


@pytest.mark.parametrize(("level", "step"), [(10**6, 0), (-1, 0), (1, -5)])
def test_a_checkpoint_with_hostile_counts_is_refused(tmp_path, level, step):
    with pytest.raises(Interrupted):
        go_on(tmp_path, stopping=lambda: True)
    path = tmp_path / "checkpoint.safetensors"
    population = trainer._load_checkpoint(RunFolder(tmp_path), CONFIG)[1][0]
    members = population.members
    progress = members.progress._replace(level=np.full_like(members.progress.level, level))
    hostile = members._replace(progress=progress, step=np.full_like(members.step, step))
    save_arrays(path, population._replace(members=hostile), read_description(path))
    with pytest.raises(NramError, match="it holds a negative count, or a level outside 1..10000"):
        go_on(tmp_path)


@pytest.mark.parametrize(("stage", "step"), [(2, 0), (0, 41)])
def test_a_checkpoint_beyond_the_end_is_refused(tmp_path, stage, step):
    with pytest.raises(Interrupted):
        go_on(tmp_path, stopping=lambda: True)
    path = tmp_path / "checkpoint.safetensors"
    description = read_description(path)
    population = trainer._load_checkpoint(RunFolder(tmp_path), CONFIG)[1][0]
    (group,) = description["state"]["groups"]
    state = {**description["state"], "groups": [{**group, "stage": stage, "step": step}]}
    save_arrays(path, population, {**description, "state": state})
    with pytest.raises(NramError, match=f"it is at step {step} of stage {stage}, beyond the end"):
        go_on(tmp_path)


def test_a_checkpoint_of_another_configuration_is_not_gone_on_with(tmp_path):
    with pytest.raises(Interrupted):
        stop_after_a_report(tmp_path)
    before = (tmp_path / "checkpoint.safetensors").read_bytes()
    with pytest.raises(NramError, match="another configuration than that of run.json"):
        go_on(tmp_path, replace(CONFIG, batch=5))
    assert (tmp_path / "checkpoint.safetensors").read_bytes() == before


# ---- several groups


def a_stage(**more):
    cull = {"share": 0.5, "islands": 2, "patience": "1|2"} | more.pop("cull", {})
    return {"max_complexity": 2, "population": 4, "steps": 60, "step_slack": 1, "cull": cull, **more}


def a_group(name: str, *stages, **more):
    machine = {"registers": 2, "hidden": 8, "modules": ["READ", "INC", "WRITE"]}
    hyper = {"noise": "0.001..0.1", "learning_rate": "0.02..0.05"}
    amounts = {"batch": 4, "validation": 8, "check_every": 10}
    return {"name": name, "machine": machine, "hyper": hyper, **amounts, "stages": list(stages), **more}


DISCRETE = a_stage(steps=40, straight_through=True, cull={"soften": 0.5, "lexicase": True})
GROUPS = config_from_dict(
    {
        "task": "access",
        "seed": 1_000_004,  # the first group solves its first stage early, and its last stage fails
        "draw_steps": True,
        "curriculum": {"enabled": False},
        "groups": [
            a_group("soft", a_stage(stop_at=1), a_stage(stop_at=1)),
            a_group("hard", DISCRETE, a_stage(steps=40), joins=2),
        ],
    }
)
STOPS = [1, 2, 3, 5, 6, 9, 12, 14, 15, 19, 20, 26]  # reports, with those at which a stage ends


@pytest.fixture(scope="module")
def groups_left_alone(tmp_path_factory):
    path = tmp_path_factory.mktemp("groups left alone")
    go_on(path, GROUPS)
    return ending(path)


def test_groups_take_turns_and_one_whose_last_stage_failed_starts_again(groups_left_alone):
    """A group in a later stage goes first; the hard one joins after two checks and is not ahead of its turn."""
    best, _, metrics, result = groups_left_alone
    soft, hard = range(10, 61, 10), range(10, 41, 10)
    order = [(row["group"], row["stage"], row["step"]) for row in metrics]
    assert order == [
        *((0, 0, 10), (0, 0, 20), (1, 0, 10)),
        *((0, 0, 30), (0, 0, 40), (0, 0, 50)),  # the best group has three turns for one of the other
        *((0, 1, step) for step in soft),
        *((1, 0, 20), (1, 0, 30), (1, 0, 40)),  # the best group now, because the other has new members
        *((1, 1, step) for step in hard),
        (0, 0, 60),  # new members have the rest of the first stage's steps
        *((0, 1, step) for step in soft),
    ]
    assert len(order) == STOPS[-1]
    assert result["stages"] == 2 and set(best) == {f"{rank}.safetensors" for rank in range(4)}


@pytest.mark.parametrize("count", STOPS)
def test_groups_stopped_at_any_report_end_the_same(groups_left_alone, tmp_path, count):
    reports = Reports()
    with pytest.raises(Interrupted):
        go_on(tmp_path, GROUPS, callbacks=reports, stopping=lambda: len(reports.seen) == count)
    go_on(tmp_path, GROUPS)
    assert ending(tmp_path) == groups_left_alone


@pytest.mark.parametrize("stride", [23, pytest.param(2, marks=pytest.mark.slow)])
def test_groups_stopped_wherever_they_ask_end_the_same(groups_left_alone, tmp_path, stride):
    stops = 0
    for asked in range(1, 1000, stride):
        path, answers = tmp_path / str(asked), iter([False] * asked + [True])
        try:
            go_on(path, GROUPS, stopping=lambda answers=answers: next(answers, True))
        except Interrupted:
            stops += 1
        else:
            break
        go_on(path, GROUPS)
        assert ending(path) == groups_left_alone
    assert stops > 5


def test_groups_stopped_at_every_report_end_the_same(groups_left_alone, tmp_path):
    for _ in range(STOPS[-1]):
        reports = Reports()
        with pytest.raises(Interrupted):
            go_on(tmp_path, GROUPS, callbacks=reports, stopping=lambda reports=reports: bool(reports.seen))
    go_on(tmp_path, GROUPS)
    assert ending(tmp_path) == groups_left_alone


def test_a_checkpoint_from_before_there_were_two_penalties_is_gone_on_with(groups_left_alone, tmp_path):
    reports = Reports()
    with pytest.raises(Interrupted):
        go_on(tmp_path, GROUPS, callbacks=reports, stopping=lambda: len(reports.seen) == STOPS[2])
    path = tmp_path / "checkpoint.safetensors"
    populations = trainer._load_checkpoint(RunFolder(tmp_path), GROUPS)[1]
    assert Hyper._fields[-1] == "state_penalty"  # which it did not have
    kind = namedtuple("OldHyper", [name.replace("wire", "entropy") for name in Hyper._fields[:-1]])
    old = {str(index): one._replace(hyper=kind(*one.hyper[:-1])) for index, one in populations.items()}
    save_arrays(path, old, json.loads(json.dumps(read_description(path)).replace("wire_penalty", "entropy_penalty")))
    content = path.read_bytes()
    assert b"hyper.entropy_penalty" in content and b"hyper.state_penalty" not in content and b"wire" not in content
    go_on(tmp_path, GROUPS)
    assert ending(tmp_path) == groups_left_alone


def test_a_checkpoint_of_other_groups_is_refused(tmp_path):
    with pytest.raises(Interrupted):
        stop_after_a_report(tmp_path)
    path = tmp_path / "checkpoint.safetensors"
    description = read_description(path)
    population = trainer._load_checkpoint(RunFolder(tmp_path), CONFIG)[1][0]
    state = description["state"]
    save_arrays(path, population, {**description, "state": {**state, "groups": 2 * state["groups"]}})
    with pytest.raises(NramError, match="its groups are not those of the configuration"):
        go_on(tmp_path)
