"""Training by a kernel: the same members as by the plain path, on however many devices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.kernel_cases import backend_or_skip

from nram.machine.kernels.common.choice import PLAIN
from nram.training.config import MachineConfig, StageConfig, TrainConfig
from nram.training.kernels import kernel_of
from nram.training.population import Population, compile_training, init_population, stage_keys

STAGE = StageConfig(3, 4, 4, step_slack=2)
MACHINE = MachineConfig(registers=3, hidden=8, modules=("READ", "INC", "EQUALITY-TEST", "WRITE"))
CONFIG = TrainConfig("increment", batch=6, steps_constant=2, machine=MACHINE, stages=(STAGE,))


def trained(training, start: Population | None = None):
    """Members after some steps, and the report, of a compiled training."""
    population, report = training(start or init_population(CONFIG, STAGE.population), stage_keys(CONFIG, 0), 0, 4)
    return jax.tree.map(np.asarray, (population.members, report))


@pytest.fixture(scope="module", params=["cpu", "gpu"])
def device(request):
    """A device that has a kernel; JAX works on it."""
    first, *_ = jax.devices(backend_or_skip(request.param).platform)
    with jax.default_device(first):
        yield first


@pytest.fixture(scope="module")
def training(device):
    """On one device, by the kernel that is chosen there."""
    return compile_training(CONFIG, STAGE, [device])


@pytest.fixture(scope="module")
def fast(training):
    return trained(training)


def test_there_is_a_kernel_for_this_processor(device):
    assert kernel_of(CONFIG, STAGE, [device]).shape is not None


def test_members_learn_what_they_learn_by_the_plain_path(fast, device):
    (members, report) = fast
    plain_members, plain_report = trained(compile_training(CONFIG, STAGE, [device], PLAIN))
    np.testing.assert_allclose(report.loss, plain_report.loss, rtol=1e-4)
    np.testing.assert_array_equal(report.error, plain_report.error)
    np.testing.assert_array_equal(report.exact, plain_report.exact)
    start = init_population(CONFIG, STAGE.population).members.controller
    for new, plain, old in zip(
        *map(jax.tree.leaves, (members.controller, plain_members.controller, start)), strict=True
    ):
        assert np.max(np.abs(new - plain)) < 0.02 * np.max(np.abs(plain - np.asarray(old)))


def test_two_devices_give_the_same_bits_as_one():
    devices = jax.devices("cpu")
    assert len(devices) == 2
    with jax.default_device(devices[0]):
        one, two = (trained(compile_training(CONFIG, STAGE, devices[:count])) for count in (1, 2))
    for left, right in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        np.testing.assert_array_equal(left, right)


def test_an_update_that_is_not_finite_leaves_the_member_as_it_was(training):
    start = init_population(CONFIG, STAGE.population)
    spoilt = jax.tree.map(lambda leaf: leaf.at[1].set(jnp.nan), start.members.controller)
    members, _ = trained(training, Population(start.members._replace(controller=spoilt), start.hyper))
    np.testing.assert_array_equal(members.skipped, [0, 4, 0, 0])
    others = [np.delete(leaf, 1, axis=0) for leaf in jax.tree.leaves(members.controller)]
    assert all(np.all(np.isfinite(leaf)) for leaf in others)


def test_the_plain_path_is_taken_where_there_is_no_kernel_and_it_says_why(monkeypatch):
    monkeypatch.setenv("NRAM_PLAIN", "1")
    kernel = kernel_of(CONFIG, STAGE, jax.devices())
    assert kernel.shape is None
    assert kernel.reason == "NRAM_PLAIN is set"
