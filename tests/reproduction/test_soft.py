"""One pass under several step limits gives what a pass for each would."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nram.machine import init_controller, run_soft
from nram.reproduction.soft import SoftRunner
from nram.training.config import MachineConfig, TrainConfig
from nram.training.member import machine_options, wiring_of

SIZE, COUNT = 6, 7
LIMITS = np.array([[1 + i % 3, 4 + i % 2, 11] for i in range(COUNT)], np.int32)


@pytest.fixture(scope="module", params=["mlp", "lstm"])
def config(request) -> TrainConfig:
    machine = MachineConfig(2, 1, ("READ", "INC", "WRITE"), request.param, hidden=8)
    return TrainConfig("access", machine=machine)


def controller_of(config: TrainConfig, seed: int, willingness: float):
    """A fresh controller that stops sooner the more willing it is."""
    wiring = wiring_of(config.machine)
    made: Any = init_controller(
        config.machine.controller, wiring, hidden=8, states=1, output_scale=4.0, key=jax.random.key(seed)
    )
    halt = jnp.zeros_like(made.output.bias).at[wiring.logits].set(willingness)
    return eqx.tree_at(lambda network: network.output.bias, made, made.output.bias + halt)


@pytest.fixture(scope="module")
def memories() -> np.ndarray:
    return np.random.default_rng(0).integers(0, SIZE, (COUNT, SIZE), np.int32)


@pytest.fixture(scope="module")
def separately(config, memories):
    """The most probable memories of one run for each limit."""
    wiring, options = wiring_of(config.machine), machine_options(config)

    @jax.jit
    def outputs(controller):
        def one(memory, limit):
            return run_soft(controller, wiring, memory, limit, int(LIMITS.max()), options).output

        return jax.vmap(jax.vmap(one, (None, 0)))(jnp.array(memories), jnp.array(LIMITS))

    return lambda controller: np.argmax(outputs(controller), axis=-1)


@pytest.mark.parametrize("willingness", [-30.0, -1.0, 1.0, 30.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_every_limit_of_one_pass_is_as_in_a_pass_of_its_own(config, memories, separately, seed, willingness):
    controller = controller_of(config, seed, willingness)
    runner = SoftRunner(config, controller, jax.devices("cpu"))
    found = runner.predict(memories, np.ones_like(memories, bool), LIMITS)
    assert found.shape == (COUNT, LIMITS.shape[1], SIZE)
    np.testing.assert_array_equal(found, separately(controller))


def test_fewer_limits_than_three_are_answered_alone(config, memories, separately):
    controller = controller_of(config, 3, -1.0)
    runner = SoftRunner(config, controller, jax.devices("cpu"))
    found = runner.predict(memories, np.ones_like(memories, bool), LIMITS[:, :1])
    np.testing.assert_array_equal(found, separately(controller)[:, :1])


def test_a_machine_that_has_halted_is_not_run_to_the_end_of_its_limit(config, memories):
    runner = SoftRunner(config, controller_of(config, 0, 30.0), jax.devices("cpu"))
    endless = np.full((COUNT, 3), 2**30, np.int32)  # days, if all steps were run
    soon = np.full((COUNT, 3), 3, np.int32)
    cells = np.ones_like(memories, bool)
    np.testing.assert_array_equal(runner.predict(memories, cells, endless), runner.predict(memories, cells, soon))
