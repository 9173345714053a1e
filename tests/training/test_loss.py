"""Losses, error measure and exact match, against sums written out by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nram.extensions import get_task, select_modules
from nram.machine import Options, Wiring, init_controller, run_soft
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
