"""The differentiable machine over an episode: halting, the averaged output, and what it keeps true."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nram.extensions import select_modules
from nram.machine import Options, Wiring, run_soft, soft_step
from nram.machine.controllers import Decision
from nram.machine.soft import SoftState, start_soft
from nram.modules import MODULE_NAMES

KINDS = ["mlp", "lstm", "automaton"]
WIRING = Wiring(3, select_modules(MODULE_NAMES))
SIZE = 6
STEPS = 6


@pytest.fixture
def make(random_controllers):
    """(kind, seed) -> a controller whose halting gives every step its share of p_t."""
    halting = {"halt_scale": 0.1, "halt_bias": -1.0}
    return lambda kind, seed=0: random_controllers(kind, WIRING, seed, output_scale=3.0, **halting)


def _memory(size: int = SIZE) -> jax.Array:
    return jnp.asarray(np.random.default_rng(size).integers(size, size=size))


class Steps(NamedTuple):
    willing: np.ndarray  # [T] f_t
    memories: np.ndarray  # [T, M, M]
    entropies: np.ndarray  # [T]


def _step_by_step(jit, controller, size: int, count: int) -> Steps:
    step = jit(partial(soft_step, controller.prepare(WIRING), WIRING, Options()))
    state = start_soft(controller, WIRING, _memory(size))
    rows = []
    for _ in range(count):
        state, halt, _, entropy, *_ = step(state)
        rows.append((1 / (1 + np.exp(-np.float64(halt))), np.asarray(state.memory), np.asarray(entropy)))
    return Steps(*map(np.array, zip(*rows, strict=True)))


def _finish(willing: np.ndarray, limit: int) -> np.ndarray:
    """p_t of the paper: f_t prod (1 - f_i), and at the limit whatever is left."""
    finish = np.array([willing[t] * np.prod(1 - willing[:t]) for t in range(limit)])
    finish[-1] = 1 - finish[:-1].sum()
    return finish


@pytest.mark.parametrize("kind", KINDS)
def test_an_episode_is_its_steps_averaged_with_the_papers_p_t(kind, make, quick_jit):
    controller = make(kind)
    steps = _step_by_step(quick_jit, controller, SIZE, STEPS)
    finish = _finish(steps.willing, STEPS)
    run = partial(run_soft, controller, WIRING, limit=STEPS, steps=STEPS, observe=lambda step: step.state.memory)
    episode = quick_jit(lambda memory: run(memory=memory))(_memory())
    np.testing.assert_allclose(episode.finish, finish, atol=1e-6)
    np.testing.assert_allclose(episode.observed, steps.memories, atol=1e-6)
    np.testing.assert_allclose(episode.output, np.tensordot(finish, steps.memories, 1), atol=1e-6)
    np.testing.assert_allclose(episode.entropy, steps.entropies, rtol=1e-5)
    assert finish.min() > 0.02  # a case in which all of it matters


def test_the_output_is_forced_at_the_limit_and_later_steps_change_nothing(make, quick_jit):
    controller = make("mlp", seed=2)
    limits = jnp.arange(1, STEPS + 1)
    memory = _memory()

    def run(steps):
        return quick_jit(jax.vmap(lambda limit: run_soft(controller, WIRING, memory, limit, steps)))(limits)

    short, long = run(STEPS), run(STEPS + 4)
    steps = _step_by_step(quick_jit, controller, SIZE, STEPS)
    np.testing.assert_allclose(short.finish.sum(-1), 1, rtol=1e-6)
    np.testing.assert_allclose(long.finish[:, :STEPS], short.finish, rtol=1e-6)
    np.testing.assert_allclose(long.output, short.output, atol=1e-6)
    for row, limit in enumerate(limits.tolist()):
        expected = _finish(steps.willing, limit)
        assert expected[-1] > 0.02
        np.testing.assert_allclose(long.finish[row, :limit], expected, atol=1e-6)
        assert (np.asarray(long.finish[row, limit:]) == 0).all()
        average = np.tensordot(expected, steps.memories[:limit], 1)
        np.testing.assert_allclose(long.output[row], average, atol=1e-6)


def test_registers_start_at_zero_and_the_memory_holds_its_integers(make):
    memory = jnp.array([3, 0, 2, 2])
    state = start_soft(make("mlp"), WIRING, memory)
    np.testing.assert_array_equal(state.registers, np.eye(4)[[0, 0, 0]])
    np.testing.assert_array_equal(state.memory, np.eye(4)[memory])


class Recorder:
    """A controller whose next state is what it has been shown."""

    def prepare(self, wiring):
        return self

    def start(self):
        return (jnp.zeros(WIRING.registers),)

    def decide(self, wiring, flags, state):
        return Decision(jnp.zeros((wiring.wires, wiring.values)), jnp.zeros(())), (flags,)

    def harden(self, state):
        return state


def test_the_controller_sees_the_probability_that_each_register_is_zero(quick_jit):
    registers = np.random.default_rng(0).dirichlet(np.ones(SIZE), WIRING.registers).astype(np.float32)
    state = SoftState(Recorder().start(), jnp.asarray(registers), jnp.eye(SIZE))
    state = quick_jit(partial(soft_step, Recorder(), WIRING, Options()))(state).state
    np.testing.assert_array_equal(state.controller[0], registers[:, 0])


@pytest.mark.parametrize("size", [5, 32])
@pytest.mark.parametrize("kind", ["lstm", "automaton"])
def test_distributions_stay_distributions_over_fifty_steps(kind, size, make, quick_jit):
    controller = make(kind, seed=size)
    ready = controller.prepare(WIRING)

    def body(state, _):
        state = soft_step(ready, WIRING, Options(), state).state
        return state, (state.registers, state.memory)

    start = start_soft(controller, WIRING, _memory(size))
    _, kept = quick_jit(lambda start: jax.lax.scan(body, start, length=50))(start)
    for distributions in kept:
        assert distributions.dtype == jnp.float32
        np.testing.assert_allclose(distributions.sum(-1), 1, rtol=1e-5)
        assert distributions.min() > -1e-6


def test_renormalising_mends_registers_that_have_drifted(make, quick_jit):
    controller = make("mlp")
    state = start_soft(controller, WIRING, _memory())
    state = state._replace(registers=state.registers * 1.01)
    sums = {}
    for on in (True, False):
        step = partial(soft_step, controller.prepare(WIRING), WIRING, Options(renormalising=on))
        sums[on] = np.asarray(quick_jit(step)(state).state.registers.sum(-1))
    np.testing.assert_allclose(sums[True], 1, rtol=1e-6)
    assert np.abs(sums[False] - 1).max() > 1e-3


def test_the_same_weights_run_at_every_memory_size_and_length(make, quick_jit):
    controller = make("lstm", seed=4)
    for size, count in ((4, 3), (7, 5), (12, 4)):
        run = partial(run_soft, controller, WIRING, limit=count, steps=count)
        episode = quick_jit(lambda memory, run=run: run(memory=memory))(_memory(size))
        assert episode.output.shape == (size, size) and episode.finish.shape == (count,)
        steps = _step_by_step(quick_jit, controller, size, count)
        average = np.tensordot(_finish(steps.willing, count), steps.memories, 1)
        np.testing.assert_allclose(episode.output, average, atol=1e-6)


def test_no_gradient_flows_through_the_averaged_output(make, quick_jit):
    """The loss is built from what `observe` returns; the output is for reading off."""

    def total(controller, part):
        episode = run_soft(controller, WIRING, _memory(), 3, 3, observe=lambda step: step.state.memory)
        return part * jnp.sum(episode.output**2) + (1 - part) * jnp.sum(episode.observed**2)

    gradient = quick_jit(jax.grad(total))
    controller = make("mlp")
    largest = [
        max(float(np.abs(leaf).max()) for leaf in jax.tree.leaves(gradient(controller, part))) for part in (1.0, 0.0)
    ]
    assert largest[0] == 0 and largest[1] > 0
