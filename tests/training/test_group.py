"""One group of a run: when a stage ends, and what happens to members that are perfect."""

from dataclasses import replace
from math import inf
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nram.training import group as group_module
from nram.training.callbacks import TrainingCallbacks
from nram.training.config import CullConfig, MachineConfig, StageConfig, TrainConfig
from nram.training.discrete import Score
from nram.training.evaluation import Examination
from nram.training.group import Group, Hooks
from nram.training.member import time_weight
from nram.training.ranges import Range
from nram.training.run_folder import RunFolder
from nram.training.trainer import _Trainer

MACHINE = MachineConfig(registers=2, hidden=4, modules=("READ", "INC", "WRITE"))
LAST = StageConfig(3, 100, 8, stop_at=1, halt_within=50)
CONFIG = TrainConfig("access", batch=4, check_every=10, validation=8, machine=MACHINE, stages=(LAST,))
PASSED = Examination(soft=True, hard=True, far=True)


def quiet_group(config: TrainConfig = CONFIG) -> Group:
    def nothing(*arguments) -> None:
        pass

    return Group(config, jax.devices(), Hooks(*[nothing] * len(Hooks._fields)), again=False)


@pytest.fixture
def examined(monkeypatch):
    """Every member passes its examination; those in the set also halt. Returns the set and the calls."""
    halting, calls = set(), []

    def examine(config, controller, *arguments):
        index = next(i for i, one in enumerate(FIRST) if np.array_equal(one, controller.output.weight))
        calls.append(index)
        return PASSED._replace(halts=index in halting)

    monkeypatch.setattr(group_module, "examine", examine)
    return halting, calls


def weights(group: Group) -> np.ndarray:
    """Of the last layers."""
    controller: Any = group.members().members.controller
    return np.asarray(controller.output.weight)


FIRST = weights(quiet_group())


def score(exact, halted) -> Score:
    exact, halted = np.isin(np.arange(8), exact).astype(float), np.isin(np.arange(8), halted).astype(float)
    return Score(1 - exact, exact, halted)


def test_the_last_stage_waits_for_a_perfect_member_that_halts_and_keeps_a_few_meanwhile(examined):
    halting, calls = examined
    group = quiet_group()
    group.state.step = 20
    assert not group._enough_solved(score([0, 1, 2, 3, 4, 5], []))
    assert (group.state.enough_at, group.state.perfect) == (20, 4)
    assert np.flatnonzero(group.frozen()).tolist() == [0, 1, 2, 3] == sorted(calls)
    group.state.step, group.examinations = 30, {}
    assert not group._enough_solved(score([0, 1, 2, 3, 4, 5], []))  # no other is examined unless it halts
    assert len(calls) == 4
    halting.add(5)
    assert group._enough_solved(score([0, 1, 2, 3, 4, 5], [5]))
    assert calls[4:] == [5]


def test_the_last_stage_ends_without_a_member_that_halts_when_it_has_waited_long_enough(examined):
    group = quiet_group()
    for step, ends in ((20, False), (60, False), (70, True)):
        group.state.step, group.examinations = step, {}
        assert group._enough_solved(score([0, 1], [])) == ends
    assert np.flatnonzero(group.frozen()).tolist() == [0, 1]


def test_a_first_stage_waits_too_and_wants_enough_members_that_halt(examined):
    first = replace(LAST, stop_at=2)
    group = quiet_group(replace(CONFIG, stages=(first, LAST)))
    group.state.step = 20
    assert not group._enough_solved(score([0], [0]))
    assert group.state.enough_at is None
    assert not group._enough_solved(score([0, 1, 2], [1]))
    assert group._enough_solved(score([0, 1, 2], [1, 2]))
    group.state.step = 70
    assert group._enough_solved(score([0, 1, 2], []))
    assert not np.any(group.frozen())


def test_a_stage_waits_anew_when_members_that_solved_it_no_longer_do(examined):
    group = quiet_group(replace(CONFIG, stages=(replace(LAST, stop_at=2), LAST)))
    group.state.step = 20
    group._enough_solved(score([0, 1], []))
    group.state.step = 40
    assert not group._enough_solved(score([0], []))
    assert group.state.enough_at is None
    group.state.step = 80
    assert not group._enough_solved(score([0, 1], []))
    assert group.state.enough_at == 80


def test_a_later_attempt_draws_step_limits_island_by_island():
    stage = replace(LAST, max_complexity=3, population=512, cull=CullConfig(share=0.25, islands=64))
    group = quiet_group(
        replace(CONFIG, task="merge", steps_per_item=1, steps_constant=2, draw_steps=True, stages=(stage,))
    )
    first = group.members().hyper
    assert np.all(np.asarray(first.steps_per_item) == 1)
    group.state.attempt, group.population = 1, None
    again = group.members().hyper
    pairs = np.stack([again.steps_per_item, again.steps_constant], axis=1).reshape(64, 8, 2)
    assert np.all(pairs == pairs[:, :1])  # the members of an island have the same
    kinds, counts = np.unique(pairs[:, 0], axis=0, return_counts=True)
    assert len(kinds) > 3
    assert kinds[np.argmax(counts)].tolist() == [1, 2]


def test_a_stage_that_does_not_wait_ends_at_once(examined):
    group = quiet_group(replace(CONFIG, stages=(replace(LAST, halt_within=0),)))
    assert group._enough_solved(score([3], []))
    assert not np.any(group.frozen())


def test_a_member_that_is_kept_does_not_train_and_is_examined_first():
    group = quiet_group(replace(CONFIG, stages=(replace(LAST, halt_within=0, stop_at=0),)))
    group.members()
    group._freeze([2, 6])
    group.round()
    same = [np.array_equal(one, two) for one, two in zip(weights(group), FIRST, strict=True)]
    assert np.flatnonzero(same).tolist() == [2, 6]


def test_a_member_that_does_not_learn_can_be_kept_too():
    group = quiet_group(replace(CONFIG, hyper=replace(CONFIG.hyper, learning_rate=Range((0.0,)))))
    group.members()
    group._freeze([2, 6])
    assert np.flatnonzero(group.frozen()).tolist() == [2, 6]


def test_the_time_penalty_counts_from_the_start_where_a_stage_waits_for_members_that_halt():
    hyper = quiet_group().members().hyper
    weights = [time_weight(hyper, jnp.int32(step), at_once=at_once) for step, at_once in ((0, False), (0, True))]
    np.testing.assert_array_equal(weights[0], 0)
    np.testing.assert_array_equal(weights[1], hyper.time_penalty)


def test_the_result_has_the_halting_member_first_then_those_that_were_kept(examined, tmp_path, monkeypatch):
    halting, calls = examined
    halting.add(5)
    folder = RunFolder.create(tmp_path, CONFIG, [], "")
    trainer = _Trainer(folder, CONFIG, jax.devices(), TrainingCallbacks(), lambda: False, lambda members: None, inf)
    group = trainer.groups[0]
    group._freeze([0, 1, 2, 3])
    monkeypatch.setattr(group, "validated", lambda: score([0, 1, 2, 3, 4, 5], [5]))
    result = trainer.finish()
    assert (result["perfect_members"], result["halting_members"], result["examined_members"]) == (5, 1, 5)
    assert sorted(calls) == [0, 1, 2, 3, 5]
    kept = [RunFolder.open(tmp_path).load_member(rank)[2] for rank in range(6)]
    assert [one["place"] for one in kept] == [5, 0, 1, 2, 3, 4]
    assert [(one["perfect"], one["halts"]) for one in kept] == [(True, True), *[(True, False)] * 4, (False, False)]
    assert all(one["hyper"]["learning_rate"] > 0 for one in kept)
