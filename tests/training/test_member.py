"""One training step: each of the paper's techniques does what it says, and none can spread a NaN."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nram.extensions import known_task
from nram.training.cloning import jittered
from nram.training.config import CullConfig, HyperConfig, MachineConfig, StageConfig, TrainConfig
from nram.training.member import (
    Hyper,
    batch_outcomes,
    draw_batch,
    entropy_weight,
    init_member,
    member_limit,
    time_weight,
    train_step,
)
from nram.training.population import RANGES, Population, compile_training, draw_hyper, init_population, stage_keys
from nram.training.ranges import Range

STAGE = StageConfig(2, 4, 3, step_slack=1)


def small(**settings) -> TrainConfig:
    machine = MachineConfig(registers=2, hidden=8)
    return TrainConfig("access", batch=4, steps_constant=3, machine=machine, stages=(STAGE,), **settings)


def hyper(**values) -> Hyper:
    chosen = {
        "learning_rate": 0.01,
        "beta1": 0.9,
        "beta2": 0.99,
        "clip_activations": np.inf,
        "clip_gradient": np.inf,
        "noise": 0.0,
        "entropy_bonus": 0.2,
        "entropy_half_life": 50.0,
        "wire_penalty": 0.05,
        "state_penalty": 0.0,
        "time_penalty": 0.02,
        "penalty_start": 600.0,
        "output_scale": 1.0,
    }
    limit = small().first_limit
    chosen |= {"steps_per_item": limit.per_item, "steps_constant": limit.constant}
    return Hyper(**{name: jnp.float32(value) for name, value in (chosen | values).items()})


@pytest.fixture(scope="module")
def start():
    return init_member(small(), hyper(), jax.random.key(0))


@pytest.fixture(scope="module")
def step():
    return jax.jit(partial(train_step, small(), STAGE))


def gradient_of(config, values, member, key):
    """The gradient that a step uses, computed apart from it."""
    batch_key, _ = jax.random.split(key)

    def cost(controller):
        batch = draw_batch(config, STAGE, values, member.progress.level, batch_key)
        outcomes = batch_outcomes(config, STAGE, values, controller, batch)
        extra = entropy_weight(values, member.step) * jnp.mean(outcomes.entropy)
        return jnp.mean(outcomes.loss) + extra + time_weight(values, member.step) * jnp.mean(outcomes.time)

    return jax.jit(jax.grad(cost))(member.controller)


def distance(a, b) -> float:
    return max(float(jnp.max(jnp.abs(x - y))) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


def test_a_step_is_adam_on_the_rescaled_gradient(start, step):
    key, limit = jax.random.key(1), 0.05
    values = hyper(clip_gradient=limit)
    gradient = gradient_of(small(), values, start, key)
    norm = float(optax.tree.norm(gradient))
    assert norm > limit
    scaled = jax.tree.map(lambda g: g * limit / norm, gradient)
    adam = optax.adam(0.01, b1=0.9, b2=0.99)
    updates, _ = adam.update(scaled, adam.init(start.controller))
    expected = optax.apply_updates(start.controller, updates)
    trained, _ = step(values, key, start)
    assert distance(trained.controller, expected) < 1e-5
    assert distance(trained.controller, start.controller) > 1e-3


def test_noise_is_added_after_clipping_with_the_decaying_variance(start):
    eta, limit = 0.3, 1e-6  # so small a clip leaves the noise alone
    config = small(hyper=HyperConfig(noise=Range((eta,))))
    noisy = jax.jit(partial(train_step, config, STAGE))
    for steps_behind in (0, 99):
        member = start._replace(step=jnp.int32(steps_behind))
        after, _ = noisy(hyper(noise=eta, clip_gradient=limit, beta1=0.0), jax.random.key(2), member)
        # With beta1 = 0 Adam's first moment is the gradient itself.
        seen = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(after.moments[1])])
        assert np.var(seen) == pytest.approx(eta / (1 + steps_behind) ** 0.55, rel=0.15)


def test_entropy_bonus_halves_and_the_penalty_comes_late():
    values = hyper(entropy_bonus=0.4, entropy_half_life=50.0, wire_penalty=0.03, penalty_start=600.0)
    assert float(entropy_weight(values, jnp.int32(0))) == pytest.approx(-0.4)
    assert float(entropy_weight(values, jnp.int32(50))) == pytest.approx(-0.2)
    assert float(entropy_weight(values, jnp.int32(599))) < 0
    assert float(entropy_weight(values, jnp.int32(600))) == pytest.approx(0.03, abs=1e-3)
    off = hyper(entropy_bonus=0.0, wire_penalty=0.0)
    assert float(entropy_weight(off, jnp.int32(700))) == 0


def test_in_a_straight_through_stage_the_bonus_stays_and_nothing_is_penalised():
    values = hyper(entropy_bonus=0.4, entropy_half_life=50.0, wire_penalty=0.03, time_penalty=0.02, penalty_start=600.0)
    for step in (0, 50, 700):
        assert float(entropy_weight(values, jnp.int32(step), straight_through=True)) == pytest.approx(-0.4)
        assert float(time_weight(values, jnp.int32(step), straight_through=True)) == 0


def test_steps_are_added_to_the_limit_at_random():
    config = replace(small(), steps_per_item=2, batch=64)
    stage = replace(STAGE, step_slack=2)
    _, limits = draw_batch(config, stage, hyper(steps_per_item=2), jnp.int32(2), jax.random.key(0))
    assert set(np.asarray(limits).tolist()) == {2 * n + 3 + slack for n in (1, 2) for slack in (0, 1, 2)}
    assert config.loop_steps(stage) == 2 * 2 + 3 + 2


def test_time_costs_nothing_at_first():
    values = hyper(time_penalty=0.02, penalty_start=600.0)
    assert float(time_weight(values, jnp.int32(599))) == 0
    assert float(time_weight(values, jnp.int32(600))) == pytest.approx(0.02)


def test_an_update_that_is_not_finite_is_left_out_and_counted(start, step):
    broken = start._replace(
        controller=jax.tree.map(lambda leaf: leaf.at[(0,) * leaf.ndim].set(jnp.nan), start.controller)
    )
    after, _ = step(hyper(), jax.random.key(3), broken)
    assert int(after.skipped) == 1
    for old, new in zip(jax.tree.leaves(broken.controller), jax.tree.leaves(after.controller), strict=True):
        np.testing.assert_array_equal(old, new)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(after.moments))


def test_a_member_that_diverges_does_not_touch_the_others():
    config = small()
    advance = compile_training(config, STAGE, jax.devices())
    keys = stage_keys(config, 0)
    healthy = init_population(config, STAGE.population)
    poison = healthy.hyper._replace(
        learning_rate=np.where(np.arange(STAGE.population) == 1, np.inf, healthy.hyper.learning_rate)
    )
    expected, _ = advance(healthy, keys, 0, 4)
    found, _ = advance(healthy._replace(hyper=poison), keys, 0, 4)
    for a, b in zip(jax.tree.leaves(expected.members), jax.tree.leaves(found.members), strict=True):
        np.testing.assert_array_equal(np.asarray(a)[[0, 2]], np.asarray(b)[[0, 2]])


def test_members_are_the_same_alone_and_in_company_and_in_any_number_of_calls():
    config = small()
    keys = stage_keys(config, 0)
    population = init_population(config, STAGE.population)
    whole = compile_training(config, STAGE, jax.devices()[:1])
    at_once, _ = whole(population, keys, 0, 4)
    in_two, _ = whole(population, keys, 0, 3)
    in_two, _ = whole(in_two, keys, 3, 1)
    alone_stage = StageConfig(2, 4, 1, step_slack=1)
    alone = compile_training(config, alone_stage, jax.devices()[:1])
    second = jax.tree.map(lambda leaf: leaf[1:2], population)
    single, _ = alone(second, keys[1:2], 0, 4)
    for a, b, c in zip(*(jax.tree.leaves(p.members) for p in (at_once, in_two, single)), strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(np.asarray(a)[1:2], c)


def test_the_penalty_on_registers_and_memory_comes_late_and_lowers_their_entropy():
    """Pairs of members that differ in this penalty alone. Later in training, the task lowers the entropy of both."""
    stage = StageConfig(2, 4, 6, step_slack=1)
    ranges = HyperConfig(state_penalty=Range((0.0, 1.0)), entropy_bonus=Range((0.0,)), penalty_start=Range((5.0,)))
    machine = MachineConfig(registers=2, hidden=8, modules=("READ", "INC", "WRITE"))
    config = replace(small(hyper=ranges), machine=machine, stages=(stage,))
    pairs = np.array([0, 0, 1, 1, 2, 2])
    members, values = jax.tree.map(lambda leaf: leaf[pairs], init_population(config, 3))
    values = values._replace(state_penalty=jnp.array(3 * [0.0, 1.0]), wire_penalty=jnp.zeros(6))
    advance, keys = compile_training(config, stage, jax.devices()[:1]), stage_keys(config, 0)[pairs]
    before, _ = advance(Population(members, values), keys, 0, 5)
    for leaf in map(np.asarray, jax.tree.leaves(before.members)):
        np.testing.assert_array_equal(leaf[::2], leaf[1::2])
    after, _ = advance(before, keys, 5, 25)

    def entropy(values, controller):
        batch = draw_batch(config, stage, values, jnp.int32(2), jax.random.key(7))
        found = batch_outcomes(config, stage, values, controller, batch).state_entropy
        assert found is not None
        return jnp.mean(found)

    found = np.asarray(jax.jit(jax.vmap(entropy))(values, after.members.controller))
    assert np.all(found[1::2] < 0.8 * found[::2])


def test_the_penalty_on_registers_and_memory_changes_no_other_draw():
    with_it = replace(DRAWING, hyper=HyperConfig(state_penalty=Range((0.1, 1.0), continuous=True)))
    for again in ((), (0, 4, 1)):
        one, other = draw_hyper(DRAWING, 8, again), draw_hyper(with_it, 8, again)
        assert not np.any(one.state_penalty) and len(np.unique(other.state_penalty)) == 8
        for left, right in zip(one[:-1], other[:-1], strict=True):
            np.testing.assert_array_equal(left, right)
    moved = [jittered(config.hyper, draw_hyper(config, 8), np.ones(8, bool), 1.5, "") for config in (DRAWING, with_it)]
    for left, right in zip(moved[0][:-1], moved[1][:-1], strict=True):
        np.testing.assert_array_equal(left, right)


def test_every_member_draws_its_own_settings_within_the_ranges():
    config = small()
    drawn = init_population(config, 64).hyper
    for name in RANGES:
        column, values = getattr(drawn, name), getattr(config.hyper, name).values
        assert np.all(np.asarray(column) >= np.float32(min(values)))
        assert np.all(np.asarray(column) <= np.float32(max(values)))
    assert len(np.unique(drawn.learning_rate)) == 64
    assert np.all(drawn.steps_per_item == config.first_limit.per_item) and np.all(drawn.steps_constant == 3)


# ---- step limits that members draw

DRAWING = TrainConfig("reverse", steps_per_item=1, steps_constant=2, draw_steps=True)


def test_a_first_population_begins_with_the_limit_of_the_group():
    drawn = draw_hyper(DRAWING, 8)
    assert np.all(drawn.steps_per_item == 1) and np.all(drawn.steps_constant == 2)


def test_islands_that_restart_draw_a_limit_between_the_first_one_and_that_of_the_task():
    own, seen = known_task("reverse").step_limit, set()
    for step in range(300):
        drawn = draw_hyper(DRAWING, 4, (0, step, 1))
        (pair,) = set(zip(drawn.steps_per_item.tolist(), drawn.steps_constant.tolist(), strict=True))  # the island's
        seen.add(pair)
    wanted = {
        (per_item, constant) for per_item in range(1, own.per_item + 1) for constant in range(2, own.constant + 1)
    }
    assert seen == wanted and len(wanted) > 3
    plain = replace(DRAWING, draw_steps=False)
    assert {float(draw_hyper(plain, 1, (0, step, 1)).steps_constant[0]) for step in range(20)} == {2.0}


def test_half_of_the_islands_that_restart_have_a_scale_of_their_own():
    stage = replace(DRAWING.stages[0], cull=CullConfig(restart_scale=Range((12.0, 25.0), continuous=True)))
    scaled = replace(DRAWING, stages=(stage,))
    np.testing.assert_array_equal(draw_hyper(scaled, 8), draw_hyper(DRAWING, 8))
    rescaled = 0
    for step in range(200):
        plain, drawn = (draw_hyper(config, 8, (0, step, 1)) for config in (DRAWING, scaled))
        if np.all(drawn.output_scale >= 12):
            assert np.all(drawn.output_scale <= 25) and len(np.unique(drawn.output_scale)) == 8
            rescaled += 1
            drawn = drawn._replace(output_scale=plain.output_scale)
        np.testing.assert_array_equal(drawn, plain)
    assert 80 < rescaled < 120


@settings(deadline=None)
@given(per_item=st.integers(0, 9), constant=st.integers(-3, 90), n=st.integers(1, 50))
def test_a_drawn_limit_is_never_above_that_of_the_task(per_item, constant, n):
    values = hyper(steps_per_item=per_item, steps_constant=constant)
    own = known_task("reverse").step_limit
    assert int(member_limit(DRAWING, values, np.int32(n))) == min(per_item * n + constant, own(n))
    unlimited = replace(DRAWING, draw_steps=False)
    assert int(member_limit(unlimited, values, np.int32(n))) == per_item * n + constant


def test_the_compiled_loop_is_long_enough_for_every_limit_that_may_be_drawn():
    stage = StageConfig(7, 10, 4, step_slack=3)
    assert DRAWING.loop_steps(stage) == known_task("reverse").step_limit(7) + 3
    assert replace(DRAWING, draw_steps=False).loop_steps(stage) == 7 + 2 + 3
