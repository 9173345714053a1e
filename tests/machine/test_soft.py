"""The differentiable machine over an episode: halting, the averaged output, and what it keeps true."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nram.machine import Options, Wiring, run_soft, soft_step
from nram.machine.soft import start_soft
from nram.modules import MODULE_NAMES, select_modules

KINDS = ["mlp", "lstm", "automaton"]
WIRING = Wiring(3, select_modules(MODULE_NAMES))
SIZE = 6
STEPS = 6


@pytest.fixture
def controller(random_controllers):
    """(kind, seed) -> a controller whose halting gives every step its share of p_t."""
    halting = {"halt_scale": 0.1, "halt_bias": -1.0}
    return lambda kind, seed=0: random_controllers(kind, WIRING, seed, output_scale=3.0, **halting)


def _memory(size: int = SIZE) -> jax.Array:
    return jnp.asarray(np.random.default_rng(size).integers(size, size=size))


def _by_hand(controller, size: int, limit: int, jit):
    """Step after step: the halting scalars, the memories and the p_t that the paper derives from them."""
    step = jit(partial(soft_step, controller.prepare(WIRING), WIRING, Options()))
    state = start_soft(controller, WIRING, _memory(size))
    willing, memories, entropies = [], [], []
    for _ in range(limit):
        state, halt, entropy = step(state)
        willing.append(1 / (1 + np.exp(-np.float64(halt))))
        memories.append(np.asarray(state.memory))
        entropies.append(float(entropy))
    finish = [f * np.prod([1 - earlier for earlier in willing[:t]]) for t, f in enumerate(willing)]
    finish[-1] = 1 - sum(finish[:-1])
    return np.array(finish), np.array(memories), np.array(entropies)


@pytest.mark.parametrize("kind", KINDS)
def test_an_episode_is_its_steps_averaged_with_the_papers_p_t(kind, quick_jit):
    controller = _controller(kind)
    finish, memories, entropies = _by_hand(controller, SIZE, STEPS, quick_jit)
    run = partial(run_soft, wiring=WIRING, limit=STEPS, steps=STEPS, observe=lambda memory: memory)
    episode = quick_jit(lambda memory: run(controller, memory=memory))(_memory())
    np.testing.assert_allclose(episode.finish, finish, atol=1e-6)
    np.testing.assert_allclose(episode.observed, memories, atol=1e-6)
    np.testing.assert_allclose(episode.output, np.tensordot(finish, memories, 1), atol=1e-6)
    np.testing.assert_allclose(episode.entropy, entropies, rtol=1e-5)
    assert 0.01 < finish[-1] < 0.99 and finish[0] > 0.01  # a case in which all of it matters


def test_the_output_is_forced_at_the_limit_and_later_steps_change_nothing(quick_jit):
    controller = _controller("mlp", seed=2)
    limits = jnp.arange(1, STEPS + 1)
    memory = _memory()

    def run(steps):
        return quick_jit(jax.vmap(lambda limit: run_soft(controller, WIRING, memory, limit, steps)))(limits)

    short, long = run(STEPS), run(STEPS + 4)
    np.testing.assert_allclose(short.finish.sum(-1), 1, rtol=1e-6)
    np.testing.assert_allclose(long.finish[:, :STEPS], short.finish, rtol=1e-6)
    np.testing.assert_allclose(long.output, short.output, atol=1e-6)
    for row, limit in enumerate(limits):
        assert (np.asarray(long.finish[row, limit:]) == 0).all()
        expected = _by_hand(controller, SIZE, int(limit), quick_jit)[0]
        np.testing.assert_allclose(long.finish[row, :limit], expected, atol=1e-6)
    assert 0.05 < short.finish[-1, -1] < 0.9  # what is left at the end, and it is not all


def test_registers_start_at_zero_and_the_memory_holds_its_integers():
    memory = jnp.array([3, 0, 2, 2])
    state = start_soft(_controller("mlp"), WIRING, memory)
    np.testing.assert_array_equal(state.registers, np.eye(4)[[0, 0, 0]])
    np.testing.assert_array_equal(state.memory, np.eye(4)[memory])


def test_the_controller_sees_the_probability_that_each_register_is_zero():
    class Recorder:
        seen = None

        def decide(self, wiring, flags, state):
            self.seen = flags
            return _controller("mlp").prepare(wiring).decide(wiring, flags, state)

    recorder = Recorder()
    registers = jnp.asarray(np.random.default_rng(0).dirichlet(np.ones(SIZE), 3).astype(np.float32))
    state = start_soft(_controller("mlp"), WIRING, _memory())._replace(registers=registers)
    soft_step(recorder, WIRING, Options(), state)  # pyright: ignore[reportArgumentType]
    np.testing.assert_array_equal(recorder.seen, registers[:, 0])


@pytest.mark.parametrize("size", [5, 32])
@pytest.mark.parametrize("kind", ["lstm", "automaton"])
def test_distributions_stay_distributions_over_fifty_steps(kind, size, quick_jit):
    controller = _controller(kind, seed=size)
    ready = controller.prepare(WIRING)

    def body(state, _):
        state, _, _ = soft_step(ready, WIRING, Options(), state)
        return state, (state.registers, state.memory)

    start = start_soft(controller, WIRING, _memory(size))
    _, kept = quick_jit(lambda start: jax.lax.scan(body, start, length=50))(start)
    for distributions in kept:
        assert distributions.dtype == jnp.float32
        np.testing.assert_allclose(distributions.sum(-1), 1, rtol=1e-5)
        assert distributions.min() > -1e-6


def test_renormalising_mends_registers_that_have_drifted(quick_jit):
    controller = _controller("mlp")
    state = start_soft(controller, WIRING, _memory())
    state = state._replace(registers=state.registers * 1.01)
    sums = {}
    for on in (True, False):
        step = partial(soft_step, controller.prepare(WIRING), WIRING, Options(renormalising=on))
        sums[on] = np.asarray(quick_jit(step)(state)[0].registers.sum(-1))
    np.testing.assert_allclose(sums[True], 1, rtol=1e-6)
    assert np.abs(sums[False] - 1).min() > 1e-3


def test_the_same_weights_run_at_every_memory_size_and_length(quick_jit):
    controller = _controller("lstm", seed=4)
    for size, steps in ((4, 3), (7, 5), (12, 5)):
        run = partial(run_soft, controller, WIRING, limit=steps, steps=steps)
        episode = quick_jit(lambda memory, run=run: run(memory=memory))(_memory(size))
        assert episode.output.shape == (size, size) and episode.finish.shape == (steps,)
        finish, memories, _ = _by_hand(controller, size, steps, quick_jit)
        np.testing.assert_allclose(episode.output, np.tensordot(finish, memories, 1), atol=1e-6)


def test_no_gradient_flows_through_the_averaged_output(quick_jit):
    """The loss is built from what `observe` returns; the output is for reading off."""
    controller = _controller("mlp")

    def through(part):
        def total(controller):
            return part(run_soft(controller, WIRING, _memory(), 3, 3, observe=lambda memory: memory))

        return max(float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(quick_jit(jax.grad(total))(controller)))

    assert through(lambda episode: jnp.sum(episode.output**2)) == 0
    assert through(lambda episode: jnp.sum(episode.observed**2)) > 0
