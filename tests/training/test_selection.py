"""Between stages the best go on, and their clones stay within the ranges."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nram.training.config import MachineConfig, StageConfig, TrainConfig
from nram.training.curriculum import Progress
from nram.training.discrete import Outcomes, Score
from nram.training.evaluation import Trial, draw_trial
from nram.training.population import Population, init_population
from nram.training.selection import CRISP, clone_best, ranking

CONFIG = TrainConfig(
    "access",
    machine=MachineConfig(registers=2, hidden=4),
    stages=(StageConfig(2, 10, 6), StageConfig(4, 10, 9, keep=2), StageConfig(4, 10, 8, keep=2)),
)


@pytest.fixture(scope="module")
def population() -> Population:
    made = init_population(CONFIG, 6)
    progress = Progress(
        level=jnp.array([1, 2, 2, 2, 1, 2]),
        error=jnp.array([0.0, 0.5, 0.1, 0.0, 0.0, 0.2]),
        raised=jnp.zeros(6, jnp.int32),
    )
    return made._replace(members=made.members._replace(progress=progress, step=jnp.full(6, 10)))


def test_hard_execution_ranks_first_then_halting_then_level_then_soft_error(population):
    exact, halted = np.array([0.2, 0.2, 0.9, 0.2, 1.0, 0.2]), np.array([0, 0, 0, 0, 0, 0.5])
    assert list(ranking(population, Score(1 - exact, exact, halted))) == [4, 2, 5, 3, 1, 0]


def test_the_best_are_cloned_in_turn_with_their_weights_and_first_with_their_own_settings(population):
    exact = np.array([0.0, 0.0, 0.5, 1.0, 0.0, 0.0])
    clones = clone_best(CONFIG, 1, population, Score(1 - exact, exact, exact))
    parents = [3, 2, 3, 2, 3, 2, 3, 2, 3]
    for weights, before in zip(
        jax.tree.leaves(clones.members.controller), jax.tree.leaves(population.members.controller), strict=True
    ):
        np.testing.assert_array_equal(weights, np.asarray(before)[parents])
    rate, parent_rate = np.asarray(clones.hyper.learning_rate), np.asarray(population.hyper.learning_rate)[parents]
    np.testing.assert_array_equal(rate[:2], parent_rate[:2])
    assert np.all(rate[2:] != parent_rate[2:])
    assert np.all(rate / parent_rate < CONFIG.jitter * 1.001)
    assert np.all(parent_rate / rate < CONFIG.jitter * 1.001)
    low, high = CONFIG.hyper.learning_rate.values
    assert np.all((rate >= np.float32(low)) & (rate <= np.float32(high)))
    np.testing.assert_array_equal(clones.members.progress.level, np.asarray(population.members.progress.level)[parents])
    assert np.all(clones.members.progress.error == 1)


def test_what_a_hard_stage_left_undecided_is_made_crisp_for_a_soft_one(population):
    score = Score(np.zeros(6), np.ones(6), np.ones(6))
    kinds = {}
    for former, latter in ((False, False), (True, True), (True, False)):
        stages = (
            replace(CONFIG.stages[0], straight_through=former),
            replace(CONFIG.stages[1], straight_through=latter),
            CONFIG.stages[2],
        )
        clones: Any = clone_best(replace(CONFIG, stages=stages), 1, population, score).members.controller
        kinds[former, latter] = clones
    for name in ("weight", "bias"):
        soft, hard, crisp = (np.asarray(getattr(clones.output, name)) for clones in kinds.values())
        np.testing.assert_array_equal(hard, soft)
        np.testing.assert_array_equal(crisp, CRISP * soft)
    for soft, crisp in zip(*(jax.tree.leaves(clones.hidden) for clones in list(kinds.values())[1:]), strict=True):
        np.testing.assert_array_equal(soft, crisp)


@pytest.mark.parametrize("former", [False, True])
def test_clones_for_the_last_stage_are_crisp_in_different_degrees_after_a_soft_stage(population, former):
    """The first clone of each member is a copy, the last is as crisp as one of a straight-through stage."""
    stages = (CONFIG.stages[0], replace(CONFIG.stages[1], straight_through=former), CONFIG.stages[2])
    exact = np.array([0.0, 0.0, 0.5, 1.0, 0.0, 0.0])
    config = replace(CONFIG, stages=stages)
    clones: Any = clone_best(config, 2, population, Score(1 - exact, exact, exact)).members.controller
    parent: Any = population.members.controller
    degrees = [CRISP] * 8 if former else np.repeat(CRISP ** (np.arange(4) / 3), 2)
    for name in ("weight", "bias"):
        before, after = (np.asarray(getattr(one.output, name)) for one in (parent, clones))
        for place, degree in enumerate(degrees):
            np.testing.assert_allclose(after[place], degree * before[(3, 2)[place % 2]], rtol=1e-6)
        np.testing.assert_array_equal(after[:2] == before[[3, 2]], not former or before[[3, 2]] == 0)


def test_cloning_is_the_same_every_time(population):
    exact = np.linspace(0, 1, 6)
    score = Score(1 - exact, exact, exact)
    first, second = (clone_best(CONFIG, 1, population, score) for _ in range(2))
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_trial_is_half_at_its_maximum_and_half_uniform_and_its_purposes_never_share_instances():
    trials = {purpose: Trial("copy", 6, 400, 0, purpose) for purpose in ("validation", "examination", "test")}
    complexity = draw_trial(trials["test"])[1]
    assert np.all(complexity[1::2] == 6)
    assert set(complexity[::2]) == set(range(1, 7))
    seen = [{row.tobytes() for row in draw_trial(trial)[0].input if row[0] == 7} for trial in trials.values()]
    assert not (seen[0] & seen[1] or seen[0] & seen[2] or seen[1] & seen[2])


@pytest.mark.parametrize("count", [41, 47, 55, 61, 192])
def test_a_perfect_score_is_exactly_one_whatever_the_number_of_instances(count):
    every, all_but_one = np.ones(count, bool), np.arange(count) > 0
    right = np.stack([every, all_but_one])
    score = Outcomes(1.0 - right, right, right).score
    assert score.exact[0] == score.halted[0] == 1.0 and score.error[0] == 0.0
    assert score.exact[1] < 1.0 and score.error[1] > 0.0
