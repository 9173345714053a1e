"""Culling replaces the worst of an island by mutated clones of its best, and restarts an island that is stuck."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest

from nram.errors import UsageError
from nram.extensions import select_modules
from nram.machine import Wiring
from nram.training.config import CullConfig, MachineConfig, StageConfig, TrainConfig, problems_of
from nram.training.culling import Fit, compile_fit, cull
from nram.training.evaluation import Score
from nram.training.population import Population, init_population
from nram.training.ranges import Range
from nram.training.settings import config_from_dict, config_to_dict

CULL = CullConfig(share=0.25, islands=2, patience=Range((2.0,)))
STAGE = StageConfig(3, 100, 8, cull=CULL)
MACHINE = MachineConfig(registers=2, hidden=4, modules=("READ", "INC", "WRITE"))
CONFIG = TrainConfig("access", batch=4, machine=MACHINE, stages=(STAGE,))
LENGTHS = Wiring(2, select_modules(MACHINE.modules)).lengths
ERRORS = np.array([0.3, 0.1, 0.9, 0.5, 0.2, 0.8, 0.7, 0.4], np.float32)  # islands: the first four, the last four


@pytest.fixture(scope="module")
def population() -> Population:
    return jax.tree.map(np.asarray, init_population(CONFIG, 8))


def with_culling(straight_through: bool = False, **cull: Any) -> TrainConfig:
    stage = replace(STAGE, straight_through=straight_through, cull=replace(CULL, **cull))
    return replace(CONFIG, stages=(stage,))


def weights(population: Population) -> np.ndarray:
    return weights_of(population.members)


def weights_of(members: Any) -> np.ndarray:
    """Of the last layer."""
    return np.asarray(members.controller.output.weight)


def culled(
    population: Population, config: TrainConfig = CONFIG, step: int = 100, soft=ERRORS, hard=None, own=None
) -> Population:
    """`hard`: discrete, under the task's limits, by default all wrong; `own`: under those of training."""
    hard, own = (np.full(8, default) if given is None else given for given, default in ((hard, 1.0), (own, 0.0)))
    fit = Fit(np.reshape(soft, (8, -1)), np.mean(np.reshape(soft, (8, -1)), axis=1), own[:, None], 1 - own)
    return jax.tree.map(np.asarray, cull(config, 0, step, population, fit, Score(hard, 1 - hard, hard)))


def changed_wires(before: Population, after: Population, parent: int, place: int) -> list[int]:
    """The wires whose weights differ from those of the parent."""
    differ = np.any(weights(before)[parent] != weights(after)[place], axis=0)[: sum(LENGTHS)]
    wires = np.repeat(np.arange(len(LENGTHS)), LENGTHS)
    found = sorted(set(wires[differ]))
    assert np.all(differ[np.isin(wires, found)])
    return found


def test_the_worst_of_each_island_become_clones_of_its_best_and_the_others_stay(population):
    after = culled(population, with_culling(redraw=0))
    parents = [0, 1, 1, 3, 4, 4, 6, 7]
    for new, old in zip(
        jax.tree.leaves(after.members.controller), jax.tree.leaves(population.members.controller), strict=True
    ):
        np.testing.assert_array_equal(new, old[parents])
    moved = after.hyper.learning_rate != population.hyper.learning_rate[parents]
    np.testing.assert_array_equal(moved, [False, False, True, False, False, True, False, False])


@pytest.mark.parametrize("which", ["hard", "own"])
def test_what_the_discrete_machine_gets_wrong_counts_too_the_less_the_worse_the_fit(population, which):
    wrong = np.array([0, 1.0, 0, 0, 0, 0, 0, 0])
    for exponent, parents in ((1.2, [0, 0, 2, 3, 4, 4, 6, 7]), (30, [0, 1, 1, 3, 4, 4, 6, 7])):
        config = with_culling(redraw=0, exponent=exponent)
        errors = np.where(np.arange(8) == 2, 0.55, ERRORS).astype(np.float32)
        hard, own = (wrong if which == name else np.zeros(8) for name in ("hard", "own"))
        after = culled(population, config, soft=errors, hard=hard, own=own)
        np.testing.assert_array_equal(weights(after), weights(population)[parents])


def test_a_member_that_is_hardly_worse_than_its_replacement_stays(population):
    soft = np.array([0.4, 0.49, 0.45, 0.45, 0.4, 0.51, 0.45, 0.45])
    right = np.zeros(8)  # as programs
    after = culled(population, with_culling(redraw=0, margin=1.25), soft=soft, hard=right)
    np.testing.assert_array_equal(weights(after), weights(population)[[0, 1, 2, 3, 4, 4, 6, 7]])
    after = culled(population, with_culling(redraw=0), soft=soft, hard=right)
    np.testing.assert_array_equal(weights(after), weights(population)[[0, 0, 2, 3, 4, 4, 6, 7]])


def test_no_error_can_fall_without_the_standing_falling_too(population):
    """Among members that are alike but for one error, the one with more of it gives way, whatever the other errors."""
    config = with_culling(redraw=0)
    for number in range(20):
        errors = [np.full(8, value) for value in np.random.default_rng(number).random(3)]
        errors[number % 3] = np.linspace(0.0, 0.98, 8)
        after = culled(population, config, soft=errors[0], own=errors[1], hard=errors[2])
        np.testing.assert_array_equal(weights(after), weights(population)[[0, 1, 2, 0, 4, 5, 6, 4]])


def test_by_single_examples_every_island_clones_its_own_specialists_and_keeps_its_first(population):
    """Members 0 to 3 are an island, 4 to 7 the other. 3 and 7 are bad but for one example of the validation set, 0 and
    4 stand first, 2 and 6 are the best at nothing."""
    soft = np.array([[0.1, 0.1], [0.2, 0.0], [0.3, 0.3], [1.0, 1.0]] * 2)
    hard = np.array([[0.1, 0.5], [0.2, 0.5], [0.3, 0.6], [1.0, 0.0]] * 2)
    fit = Fit(soft, np.mean(soft, axis=1), hard, np.zeros(8))
    config = with_culling(redraw=0, lexicase=True)
    parents = set()
    for step in range(40):
        after = cull(config, 0, step, population, fit, Score(np.ones(8), np.zeros(8), np.zeros(8)))
        same = np.all(weights(after)[:, None] == weights(population)[None], axis=(2, 3))  # [after, before]
        assert np.all(np.sum(same, axis=1) == 1)
        source = np.argmax(same, axis=1)
        np.testing.assert_array_equal(source[[0, 4]], [0, 4])
        np.testing.assert_array_equal(source // 4, np.arange(8) // 4)
        assert np.sum(source != np.arange(8)) == 2
        parents |= {(int(place), int(source[place])) for place in range(8) if source[place] != place}
    cloned = {parent for _, parent in parents}
    assert {3, 7} <= cloned and not {2, 6} & cloned
    assert {2, 6} <= {place for place, _ in parents}


def test_a_straight_through_stage_does_not_look_at_the_limits_of_the_task(population):
    wrong = np.array([0, 1.0, 0, 0, 0, 0, 0, 0])
    config = with_culling(redraw=0, exponent=1.2, straight_through=True)
    np.testing.assert_array_equal(weights(culled(population, config, hard=wrong)), weights(culled(population, config)))


def test_a_clone_forgets_whole_wires_as_many_as_it_is_told(population):
    config = with_culling(redraw=1.0)
    counts = [len(changed_wires(population, culled(population, config, step), 1, 2)) for step in range(200)]
    assert 0.7 < np.mean(counts) < 1.3
    every = with_culling(redraw=float(len(LENGTHS)))
    assert changed_wires(population, culled(population, every), 1, 2) == list(range(len(LENGTHS)))


def test_a_clone_wavers_in_some_wires_and_keeps_its_first_choice(population):
    sharp = population._replace(members=population.members._replace(controller=_sharper(population)))
    config = with_culling(redraw=0, soften=0.5)
    counts, wires = [], np.repeat(np.arange(len(LENGTHS)), LENGTHS)
    for step in range(100):
        after = culled(sharp, config, step)
        changed = changed_wires(sharp, after, 1, 2)
        counts.append(len(changed))
        parent, clone = weights(sharp)[1][:, : sum(LENGTHS)], weights(after)[2][:, : sum(LENGTHS)]
        for wire in changed:
            ratio = clone[:, wires == wire] / parent[:, wires == wire]
            np.testing.assert_allclose(ratio, ratio[0, 0], rtol=1e-4)
            assert 0 <= ratio[0, 0] < 1 and np.std(clone[:, wires == wire]) <= 1 / np.sqrt(MACHINE.hidden)
    assert min(counts) >= 1 and max(counts) > len(LENGTHS) / 2


def _sharper(population: Population) -> Any:
    controller: Any = population.members.controller
    return eqx.tree_at(lambda network: network.output.weight, controller, 50 * np.asarray(controller.output.weight))


def test_an_island_without_progress_starts_anew_and_one_without_error_never_does(population):
    errors = np.where(np.arange(8) < 4, ERRORS, 0).astype(np.float32)
    now, alive = population, []
    for step in (100, 200, 300):
        now = culled(now, step=step, soft=errors, hard=np.where(np.arange(8) < 4, 1.0, 0.0))
        alive.append(list(now.members.island.stalled[[0, 4]]))
    assert alive == [[0, 0], [1, 0], [0, 0]]
    assert np.all(np.isinf(now.members.island.record[:4]))
    assert not np.any(np.isin(weights(now)[:4], weights(population)))
    assert np.all(now.members.step == 0)
    np.testing.assert_array_equal(weights(now)[4], weights(population)[4])


def test_the_best_island_waits_longer_before_it_starts_anew(population):
    now = population
    for step in range(100, 900, 100):
        now = culled(now, step=step)
        assert now.members.island.stalled[4] < 2
    assert now.members.island.stalled[0] == 7
    np.testing.assert_array_equal(weights(now)[1], weights(population)[1])
    now = culled(now, step=900)
    assert now.members.island.stalled[0] == 0
    assert not np.any(np.isin(weights(now)[:4], weights(population)))


def test_an_island_with_a_small_soft_error_waits_longer_too(population):
    """The first island is the best. The second one is as good as a soft machine, and wrong as a program."""
    errors = np.array([0.05, 0.9, 0.9, 0.9, 0.05, 0.9, 0.9, 0.9], np.float32)
    own = np.array([0.2, 1, 1, 1, 0.9, 1, 1, 1])
    for soft, restarts in ((errors, False), (np.where(errors < 0.1, 0.11, errors), True)):
        now = population
        for step in (100, 200, 300):
            now = culled(now, step=step, soft=soft, own=own)
        assert np.all(weights(now)[4] == weights(population)[4]) != restarts
        assert np.all(weights(now)[0] == weights(population)[0])


@pytest.mark.parametrize("lexicase", [False, True])
def test_frozen_members_stay_and_their_clones_train(population, lexicase):
    rates = np.array(population.hyper.learning_rate)
    rates[[2, 5]] *= -1  # the worst of both islands
    given = population._replace(hyper=population.hyper._replace(learning_rate=rates))
    after = culled(given, with_culling(redraw=0.0, lexicase=lexicase))
    np.testing.assert_array_equal(weights(after)[[2, 5]], weights(population)[[2, 5]])
    np.testing.assert_array_equal(after.hyper.learning_rate < 0, np.isin(np.arange(8), [2, 5]))
    if not lexicase:  # they rank first
        np.testing.assert_array_equal(weights(after), weights(population)[[0, 1, 2, 2, 4, 5, 5, 7]])


def test_halting_counts_last_and_only_where_a_stage_waits_for_it(population):
    right = np.zeros(8, np.float32)
    halted = np.array([0, 1, 0.5, 0.2, 0.9, 0, 1, 1])
    fit = Fit(right[:, None], np.arange(8.0), right[:, None], np.ones(8))
    for halt_within, parents in ((0, [0, 1, 2, 0, 4, 5, 6, 4]), (50, [1, 1, 2, 3, 4, 6, 6, 7])):
        config = replace(CONFIG, stages=(replace(STAGE, halt_within=halt_within, cull=replace(CULL, redraw=0.0)),))
        after = cull(config, 0, 100, population, fit, Score(right, np.zeros(8), halted))
        np.testing.assert_array_equal(weights(after), weights(population)[parents])


def test_every_island_has_the_patience_of_its_turn(population):
    """Four islands of two take two patiences in turn. The last one is the best, and waits."""
    config = with_culling(share=0.5, islands=4, patience=Range((1.0, 3.0)))
    assert [config.stages[0].cull.patience_of(island) for island in range(4)] == [1, 3, 1, 3]
    now, errors = population, np.array([0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.1, 0.1], np.float32)
    stalled = []
    for step in (100, 200, 300, 400):
        now = culled(now, config, step=step, soft=errors)
        stalled.append(now.members.island.stalled[::2].tolist())
    assert stalled == [[0, 0, 0, 0], [0, 1, 0, 1], [0, 2, 0, 2], [0, 0, 0, 3]]


def test_progress_gives_an_island_more_time(population):
    now = population
    for step in range(1, 6):
        now = culled(now, step=100 * step, soft=(ERRORS - 0.015 * step).astype(np.float32))
        assert np.all(now.members.island.stalled == 0)


def test_small_gains_add_up_to_progress(population):
    now = population
    for step in range(1, 8):
        now = culled(now, step=100 * step, soft=(ERRORS - 0.006 * step).astype(np.float32))
    assert np.all(now.members.step == population.members.step)  # no island began anew
    np.testing.assert_array_equal(weights(now)[[1, 4]], weights(population)[[1, 4]])


def test_an_island_with_a_member_that_is_perfect_as_a_program_stays(population):
    hard = np.array([1.0, 1, 1, 1, 1, 1, 0, 1])
    now = population
    for step in (100, 200, 300, 400):
        now = culled(now, step=step, hard=hard)
    assert now.members.island.stalled[4] == 3
    np.testing.assert_array_equal(weights(now)[4], weights(population)[4])


def test_members_that_are_not_finite_are_the_worst(population):
    errors = ERRORS.copy()
    errors[1] = np.nan
    after = culled(population, with_culling(redraw=0), soft=errors)
    np.testing.assert_array_equal(weights(after)[1], weights(population)[0])


def test_culling_is_the_same_every_time_and_on_any_number_of_cores(population):
    config = with_culling(soften=0.5, lexicase=True)
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("members",))
    spread = jax.device_put(population, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("members")))
    first, *others = (jax.tree.leaves(culled(given, config)) for given in (population, population, spread))
    for other in others:
        for one, two in zip(first, other, strict=True):
            np.testing.assert_array_equal(one, two)


def test_a_clone_takes_the_moments_with_it_and_counts_its_error_anew(population):
    members: Any = population.members
    moments = jax.tree.map(lambda leaf: leaf + np.arange(8).reshape(8, *[1] * (leaf.ndim - 1)), members.moments)
    progress = members.progress._replace(error=np.linspace(0.1, 0.8, 8, dtype=np.float32))
    bias = np.arange(8)[:, None] + np.ones_like(members.controller.output.bias)
    controller: Any = eqx.tree_at(lambda network: network.output.bias, members.controller, bias.astype(np.float32))
    given = population._replace(members=members._replace(controller=controller, moments=moments, progress=progress))
    after: Any = culled(given, with_culling(redraw=float(len(LENGTHS)))).members
    parents = np.array([0, 1, 1, 3, 4, 4, 6, 7])
    for new, old in zip(jax.tree.leaves(after.moments), jax.tree.leaves(moments), strict=True):
        np.testing.assert_array_equal(new, old[parents])
    np.testing.assert_array_equal(after.progress.error, np.where(np.isin(np.arange(8), [2, 5]), 1, progress.error))
    logits = sum(LENGTHS)
    np.testing.assert_array_equal(after.controller.output.bias[2][:logits], 0)  # forgotten
    np.testing.assert_array_equal(after.controller.output.bias[2][logits:], bias[1][logits:])  # what decides on halting
    np.testing.assert_array_equal(weights_of(after)[2][:, logits:], weights_of(members)[1][:, logits:])
    np.testing.assert_array_equal(after.controller.output.bias[3], bias[3])


def test_members_are_measured_on_the_same_fresh_examples(population):
    fit = compile_fit(CONFIG, STAGE, jax.devices())
    twins = jax.tree.map(lambda leaf: leaf[[0, 0, 1, 1, 2, 2, 3, 3]], population)
    found = fit(twins, 0, 100)
    np.testing.assert_array_equal(found.loss[::2], found.loss[1::2])
    assert len(set(found.loss)) == 4
    assert not np.any(fit(twins, 0, 200).loss == found.loss)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"share": 0.6}, "cull.share is 0.6"),
        ({"exponent": 1.0}, "cull.exponent is 1.0: it must be above 1"),
        ({"soften": 1.5}, "cull.soften is 1.5"),
        ({"lexicase": True, "share": 0.0}, "cull.lexicase is true but nothing is culled: set stages.0.cull.share"),
        ({"islands": 3}, "cull.islands is 3: it must divide the population of 8"),
        ({"islands": 0}, "cull.islands is 0"),
        ({"redraw": -1.0}, "cull.redraw is -1"),
        ({"patience": -1}, "cull.patience: -1 is negative or not a number"),
        ({"patience": "1.5"}, "cull.patience is 1.5: give whole numbers, as in 8 or 4|8|16"),
        ({"patience": "1..3"}, "cull.patience is 1..3: give whole numbers, as in 8 or 4|8|16"),
        ({"islands": 1}, "cull.patience is 2: a single island never restarts"),
        ({"share": 0.2}, "cull.share is 0.2: of an island of 4 that is less than one member"),
        ({"exponent": float("inf")}, "cull.exponent is inf"),
        ({"restart_scale": Range((0.0, 12.0))}, "cull.restart_scale is 0|12: give 0, or numbers up to 1000"),
        ({"restart_scale": Range((float("inf"),))}, "cull.restart_scale is inf: give 0, or numbers up to 1000"),
    ],
)
def test_settings_that_cannot_work_are_named(change, message):
    with pytest.raises(UsageError) as refused:
        config_from_dict(config_to_dict(with_culling(**change)))
    assert f"stages.0.{message}" in str(refused.value)


def test_a_run_does_not_end_with_a_straight_through_stage():
    stage = replace(STAGE, straight_through=True)
    assert any("the last stage is straight_through" in one for one in problems_of(replace(CONFIG, stages=(stage,))))
    assert problems_of(replace(CONFIG, stages=(stage, STAGE))) == []
