"""Losses, error measure and exact match, against sums written out by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from support.random_controllers import random_controllers

from nram.extensions import get_task, select_modules
from nram.machine import Options, Wiring, init_controller, run_soft
from nram.machine.controllers import MLP, Dense
from nram.modules import MODULE_NAMES
from nram.tasks.base import TracedInstance
from nram.training.loss import compare, soft_outcome

STEPS, LIMIT, EPSILON = 6, 4, 1e-4
WIRING = Wiring(3, select_modules(MODULE_NAMES))


@pytest.fixture(scope="module")
def controller():
    return init_controller("mlp", WIRING, hidden=8, states=1, output_scale=2.0, key=jax.random.key(3))


@pytest.fixture(scope="module")
def swap_instance():
    return get_task("swap").draw_traced(jax.random.key(5), jnp.int32(4), 7)


@pytest.fixture(scope="module")
def history(controller, swap_instance):
    """Finishing probabilities and the memory after every step."""
    options = Options(epsilon=EPSILON)
    episode = run_soft(controller, WIRING, swap_instance.input, LIMIT, STEPS, options, lambda step: step.state.memory)
    return np.asarray(episode.finish, float), np.asarray(episode.observed, float), np.asarray(episode.entropy, float)


def outcome(controller, instance, kind, weight):
    options = Options(epsilon=EPSILON)
    return soft_outcome(controller, WIRING, instance, jnp.int32(LIMIT), STEPS, options, kind=kind, scored_weight=weight)


def cell_weights(instance, weight):
    share = np.where(np.asarray(instance.scored), weight, 1.0) * np.asarray(instance.cells)
    return share / share.sum()


@pytest.mark.parametrize("weight", [1.0, 5.0])
def test_expected_loss_is_the_papers_sum_over_steps_and_cells(controller, swap_instance, history, weight):
    finish, memories, _ = history
    share = cell_weights(swap_instance, weight)
    loss = 0.0
    for t in range(LIMIT):
        for cell, value in enumerate(np.asarray(swap_instance.output)):
            loss -= finish[t] * share[cell] * np.log(max(memories[t, cell, value], EPSILON))
    assert float(outcome(controller, swap_instance, "expected", weight).loss) == pytest.approx(loss, rel=1e-5)


@pytest.mark.parametrize("weight", [1.0, 5.0])
def test_average_loss_is_the_footnotes(controller, swap_instance, history, weight):
    finish, memories, _ = history
    share = cell_weights(swap_instance, weight)
    mixed = np.einsum("t,tij->ij", finish, memories)
    chosen = mixed[np.arange(len(share)), np.asarray(swap_instance.output)]
    loss = -np.sum(share * np.log(np.maximum(chosen, EPSILON)))
    assert float(outcome(controller, swap_instance, "average", weight).loss) == pytest.approx(loss, rel=1e-5)


def test_entropy_is_a_mean_over_the_steps_up_to_the_limit(controller, swap_instance, history):
    expected = history[2][:LIMIT].mean()
    assert float(outcome(controller, swap_instance, "expected", 1.0).entropy) == pytest.approx(expected, rel=1e-5)


TINY = Wiring(1, select_modules(("INC", "WRITE")))
TINY_INSTANCE = TracedInstance(jnp.array([2, 1, 0]), jnp.array([1, 1, 1]), *2 * [jnp.ones(3, bool)])


def test_the_entropy_of_registers_and_memory_is_a_mean_over_both_and_the_steps_up_to_the_limit():
    """A circuit that is the same at every step, worked out by hand. So large a limit of logarithms counts."""
    wires = [[1.0], [0.7, 0.3], [0.2, 0.8], [0.5, 0.4, 0.1]]  # INC, the address, the value, the register
    last = Dense(jnp.zeros((1, 9)), jnp.log(jnp.array([*sum(wires, []), 0.5])))
    nothing = Dense(jnp.zeros((1, 1)), jnp.zeros(1))
    network = MLP((nothing, nothing), last)
    register, memory, total, epsilon = np.eye(3)[0], np.eye(3)[[2, 1, 0]], 0.0, 0.05
    for _ in range(LIMIT):
        more = np.roll(register, 1)
        address, value = (first * register + second * more for first, second in wires[1:3])
        memory = (1 - address)[:, None] * memory + address[:, None] * value
        register = 0.5 * register + 0.4 * more + 0.1 * np.eye(3)[0]
        of_register, *of_cells = (
            -sum(chance * np.log(max(chance, epsilon)) for chance in held) for held in (register, *memory)
        )
        total += (of_register + sum(of_cells) / 3) / 2
    options = Options(epsilon=epsilon)
    found = soft_outcome(network, TINY, TINY_INSTANCE, jnp.int32(LIMIT), STEPS, options, with_state=True)
    assert found.state_entropy is not None and float(found.state_entropy) == pytest.approx(total / LIMIT, rel=1e-5)
    without = soft_outcome(network, TINY, TINY_INSTANCE, jnp.int32(LIMIT), STEPS, options)
    assert without.state_entropy is None and found[:5] == without[:5]


def test_the_gradient_of_that_entropy_agrees_with_finite_differences(quick_jit, float64):
    vector, back = ravel_pytree(random_controllers("mlp", TINY, 5, output_scale=2.0))

    def entropy(vector):
        machine = back(vector), TINY, TINY_INSTANCE, jnp.int32(LIMIT), STEPS, Options(renormalising=False)
        return soft_outcome(*machine, with_state=True, dtype=jnp.float64).state_entropy

    gradient = np.asarray(quick_jit(jax.grad(entropy))(vector))
    directions = np.random.default_rng(0).normal(size=(5, vector.size))
    directions /= np.linalg.norm(directions, axis=-1, keepdims=True)  # longer ones would cross the kinks of the network
    points = vector[None, None] + 1e-3 * np.array([-2, -1, 1, 2])[None, :, None] * directions[:, None]
    at = np.asarray(quick_jit(jax.vmap(jax.vmap(entropy)))(points))
    slopes = at @ np.array([1, -8, 8, -1]) / 12e-3  # of fourth order
    np.testing.assert_allclose(directions @ gradient, slopes, rtol=1e-6, atol=1e-8)
    assert np.abs(slopes).min() > 1e-3


def test_time_is_the_expected_share_of_the_steps_used(controller, swap_instance, history):
    expected = sum(chance * (t + 1) for t, chance in enumerate(history[0])) / LIMIT
    assert 0 < expected <= 1
    assert float(outcome(controller, swap_instance, "expected", 1.0).time) == pytest.approx(expected, rel=1e-5)


def test_error_counts_wrong_cells_among_those_to_be_modified_and_exact_all_output_cells():
    instance = TracedInstance(
        input=jnp.array([2, 3, 7, 8, 9, 0]),
        output=jnp.array([2, 3, 8, 7, 9, 0]),
        cells=jnp.array([False, False, True, True, True, False]),
        scored=jnp.array([False, False, True, True, False, False]),
    )

    def judged(memory):
        error, exact = compare(jnp.array(memory), instance)
        return float(error), bool(exact)

    assert judged([2, 3, 8, 7, 9, 0]) == (0.0, True)
    assert judged([5, 5, 8, 7, 9, 5]) == (0.0, True)  # other cells may hold anything
    assert judged([2, 3, 8, 8, 9, 0]) == (0.5, False)
    assert judged([2, 3, 8, 7, 1, 0]) == (0.0, False)  # nothing to modify there, but it must stay
    assert judged([2, 3, 7, 8, 9, 0]) == (1.0, False)
