"""Gradients through whole episodes: true where nothing is clipped, and clipped as the paper says.

The loss has the parts that training has: expected log-likelihood with learned halting, and the entropy of
the wires. Everything in float64.
"""

from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from nram.extensions import select_modules
from nram.kinds import ControllerKind
from nram.machine import Options, Wiring, run_soft
from nram.modules import MODULE_NAMES

EPSILON = 1e-6
EXAMPLES = 3


class Case(NamedTuple):
    kind: ControllerKind
    repeats: int
    registers: int
    size: int
    steps: int
    renormalising: bool = False
    modules: tuple[str, ...] = MODULE_NAMES

    @property
    def wiring(self) -> Wiring:
        return Wiring(self.registers, select_modules(self.modules, self.repeats))

    def __str__(self) -> str:
        renormalising = "-renormalising" if self.renormalising else ""
        return f"{self.kind}-x{self.repeats}-R{self.registers}-M{self.size}-T{self.steps}{renormalising}"


MLP = Case("mlp", 1, 2, 4, 3)
LSTM = Case("lstm", 1, 4, 6, 4)
AUTOMATON = Case("automaton", 1, 3, 5, 5)
# The naive machine takes long to compile, so its longest sequence is a short one repeated.
FEW = ("READ", "WRITE", "ONE", "SUB", "LESS-THAN")
SHORT = Case("automaton", 2, 2, 4, 4, modules=FEW)
CASES = [MLP, Case("mlp", 2, 3, 5, 4), LSTM, Case("automaton", 2, 2, 4, 3), AUTOMATON]


def with_cases(cases: list[Case]):
    return pytest.mark.parametrize("case", cases, ids=str)


@cache
def _weights(random_controllers, case: Case):
    """A random controller as a vector, and the way back."""
    vector, back = ravel_pytree(random_controllers(case.kind, case.wiring, case.size, output_scale=2.0))
    assert vector.dtype == jnp.float64
    return vector, back


def _examples(case: Case):
    """Memories, outputs to be had, and step limits of which some are below the compiled length."""
    rng = np.random.default_rng(case.size)
    memory, target = rng.integers(case.size, size=(2, EXAMPLES, case.size))
    return jnp.asarray(memory), jnp.asarray(target), case.steps - jnp.arange(EXAMPLES) % 2


def _loss(finish, memories, entropy, target):
    right = memories[:, jnp.arange(target.shape[0]), target]
    per_step = -jnp.mean(jnp.log(jnp.maximum(right, EPSILON)), axis=-1)
    return jnp.sum(finish * per_step) - 0.2 * jnp.mean(entropy)


def _real_loss(case: Case, back):
    def loss(vector, clip):
        def one(memory, target, limit):
            options = Options(clip, EPSILON, case.renormalising)
            machine = back(vector), case.wiring, memory, limit, case.steps, options
            episode = run_soft(*machine, lambda step: step.state.memory, jnp.float64)
            return _loss(episode.finish, episode.observed, episode.entropy, target)

        return jnp.mean(jax.vmap(one)(*_examples(case)))

    return loss


def _naive_loss(naive, case: Case, back):
    def loss(vector, crops):
        def one(memory, target, limit):
            machine = case.kind, back(vector), case.wiring.modules, case.registers
            episode = naive.episode(*machine, memory, limit, case.steps, crops, case.renormalising, EPSILON)
            return _loss(episode.finish, episode.memories, episode.entropy, target)

        return jnp.mean(jax.vmap(one)(*_examples(case)))

    return loss


@cache
def _real_gradient(jit, case: Case, back):
    """(vector, clip) -> loss and gradient. One compilation serves every clip and every test."""
    return jit(jax.value_and_grad(_real_loss(case, back)))


@with_cases(CASES)
def test_gradient_agrees_with_finite_differences(case, random_controllers, quick_jit, float64):
    vector, back = _weights(random_controllers, case)
    _, gradient = _real_gradient(quick_jit, case, back)(vector, jnp.inf)
    directions = np.random.default_rng(0).normal(size=(6, vector.size))
    directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
    loss = quick_jit(jax.vmap(lambda x: _real_loss(case, back)(x, jnp.inf)))
    offsets = 1e-3 * np.array([-2, -1, 1, 2])
    points = vector[None, None] + offsets[None, :, None] * directions[:, None, :]
    at = np.asarray(loss(points.reshape(-1, vector.size))).reshape(len(directions), 4)
    slopes = at @ np.array([1, -8, 8, -1]) / 12e-3  # of fourth order
    np.testing.assert_allclose(directions @ np.asarray(gradient), slopes, rtol=1e-6, atol=1e-8)
    assert np.abs(slopes).min() > 1e-5


@with_cases([MLP, AUTOMATON, SHORT])
def test_loss_and_gradient_equal_those_of_the_naive_machine(case, naive, random_controllers, quick_jit, float64):
    vector, back = _weights(random_controllers, case)
    loss, gradient = _real_gradient(quick_jit, case, back)(vector, jnp.inf)
    derived = quick_jit(jax.value_and_grad(_naive_loss(naive, case, back)))
    expected_loss, expected = derived(vector, None)
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-12)
    np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-11 * np.abs(expected).max())
    assert np.mean(np.asarray(gradient) != 0) > 0.3  # parameters behind dead units have none


@with_cases([LSTM, SHORT, SHORT._replace(renormalising=True)])
def test_clipped_gradient_equals_that_of_the_naive_machine_with_clips(
    case, naive, random_controllers, quick_jit, float64
):
    vector, back = _weights(random_controllers, case)
    real = _real_gradient(quick_jit, case, back)
    derived = quick_jit(jax.grad(_naive_loss(naive, case, back)))
    free = np.asarray(real(vector, jnp.inf)[1])
    for clip in (jnp.inf, 1e-2, 1e-4):
        expected = np.asarray(derived(vector, naive.Crops(*[jnp.asarray(clip)] * 4)))
        gradient = np.asarray(real(vector, clip)[1])
        scale = np.abs(expected).max()
        np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-10 * scale)
        assert (np.abs(gradient - free).max() > 1e-3 * scale) == (clip < jnp.inf)


def test_entropy_and_halting_both_reach_the_gradient(random_controllers, quick_jit, float64):
    """So that the tests above could not pass if one of them were cut off."""
    case = MLP
    vector, back = _weights(random_controllers, case)

    def parts(vector):
        memory, _, _ = _examples(case)
        episode = run_soft(back(vector), case.wiring, memory[0], case.steps, case.steps, Options(), dtype=jnp.float64)
        return jnp.array([1.0, 2.0, 4.0]) @ episode.finish, jnp.mean(episode.entropy)

    halting, entropy = quick_jit(jax.jacrev(parts))(vector)
    assert np.abs(halting).max() > 1e-2 and np.abs(entropy).max() > 1e-2
