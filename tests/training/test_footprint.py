"""What a stage needs is known before it starts; what does not fit at once is split, or refused with what to change."""

from dataclasses import replace
from math import prod
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from nram.errors import UsageError
from nram.machine.kernels.gpu.shape import WarpShape
from nram.training import footprint
from nram.training.config import CullConfig, HyperConfig, MachineConfig, StageConfig, TrainConfig
from nram.training.footprint import check_fits
from nram.training.kernels import chosen_kernel
from nram.training.mapping import mapped
from nram.training.population import abstract_population
from nram.training.ranges import Range

STAGE = StageConfig(3, 10, 12, step_slack=1)
CONFIG = TrainConfig("access", batch=8, machine=MachineConfig(registers=2, hidden=8), stages=(STAGE,))


def gpu(free: int, count: int = 1) -> list:
    """GPUs as far as this is concerned: they know how much memory they have."""
    return [SimpleNamespace(platform="gpu", memory_stats=lambda: {"bytes_limit": free})] * count


def stage_bytes(config, stage, devices, at_once) -> int:
    return footprint.stage_bytes(config, stage, devices, at_once, chosen_kernel(config, stage, devices))


def members_at_once(config, stage, devices) -> int:
    return footprint.members_at_once(config, stage, devices, chosen_kernel(config, stage, devices))


def test_everything_that_grows_makes_the_footprint_grow():
    plenty = gpu(1 << 40)
    base = stage_bytes(CONFIG, STAGE, plenty, 1)
    assert stage_bytes(CONFIG, STAGE, plenty, 2) > base
    assert stage_bytes(CONFIG, replace(STAGE, population=24), plenty, 1) > base
    assert stage_bytes(CONFIG, replace(STAGE, max_complexity=20), plenty, 1) > base
    assert stage_bytes(replace(CONFIG, batch=16), STAGE, plenty, 1) > base


def test_a_penalty_on_registers_and_memory_keeps_them_for_the_backward_pass(monkeypatch):
    monkeypatch.setenv("NRAM_PLAIN", "1")
    penalised = replace(CONFIG, hyper=HyperConfig(state_penalty=Range((0.0, 0.1))))
    size = CONFIG.memory_size(STAGE)
    more = 4 * CONFIG.batch * CONFIG.loop_steps(STAGE) * (2 + size) * size
    assert stage_bytes(penalised, STAGE, gpu(1), 1) == stage_bytes(CONFIG, STAGE, gpu(1), 1) + more


def test_a_gpu_trains_all_members_at_once_or_as_many_as_fit_and_divide_them():
    assert members_at_once(CONFIG, STAGE, gpu(1 << 40)) == 12
    five = stage_bytes(CONFIG, STAGE, gpu(1), 5)
    assert members_at_once(CONFIG, STAGE, gpu(five)) == 4
    assert members_at_once(CONFIG, STAGE, gpu(1)) == 1


@pytest.mark.parametrize(("population", "gpus", "share"), [(12, 4, 3), (12, 5, 3), (7, 2, 7), (10, 4, 5)])
def test_a_gpu_needs_room_for_its_even_share_of_the_population(population, gpus, share, monkeypatch):
    monkeypatch.setenv("NRAM_PLAIN", "1")
    alone = stage_bytes(CONFIG, replace(STAGE, population=share), gpu(1), 1)
    assert stage_bytes(CONFIG, replace(STAGE, population=population), gpu(1, gpus), 1) == alone


def test_the_first_of_several_gpus_has_room_to_clone_the_whole_population():
    population, many = 6400, gpu(1, 64)
    members = jax.tree.leaves(abstract_population(CONFIG, population).members)
    size = sum(prod(leaf.shape) * leaf.dtype.itemsize for leaf in members)
    stage = replace(STAGE, population=population)
    culled = replace(stage, cull=CullConfig(share=0.5))
    assert size <= stage_bytes(CONFIG, stage, many, 1) < 2 * size <= stage_bytes(CONFIG, culled, many, 1)
    assert stage_bytes(CONFIG, culled, gpu(1), 1) == stage_bytes(CONFIG, stage, gpu(1), 1)


def test_the_gpu_with_the_least_memory_decides():
    assert members_at_once(CONFIG, STAGE, gpu(1 << 40) + gpu(1 << 40)) == 6
    assert members_at_once(CONFIG, STAGE, gpu(1 << 40) + gpu(stage_bytes(CONFIG, STAGE, gpu(1, 2), 3))) == 3
    with pytest.raises(UsageError, match="stage 0"):
        check_fits(CONFIG, gpu(1 << 40) + gpu(1000))


def test_a_cpu_trains_one_member_at_a_time_and_a_kernel_needs_less_memory(monkeypatch):
    devices, larger = jax.devices(), replace(CONFIG, batch=64)
    assert members_at_once(CONFIG, STAGE, devices) == 1
    by_kernel = stage_bytes(larger, STAGE, devices, 1)
    monkeypatch.setenv("NRAM_PLAIN", "1")
    assert 0 < by_kernel < stage_bytes(larger, STAGE, devices, 1)


def test_all_that_the_kernel_of_a_gpu_returns_is_counted():
    config = replace(CONFIG, batch=256)  # many blocks, each with its part of the gradient
    shape = chosen_kernel(config, STAGE, gpu(1)).shape
    assert isinstance(shape, WarpShape)
    results = list(shape.buffers.values())[shape.arguments :]
    one_more = stage_bytes(config, STAGE, gpu(1), 2) - stage_bytes(config, STAGE, gpu(1), 1)
    assert one_more >= 4 * sum(prod(result) for result in results)


def test_a_split_population_gives_what_an_undivided_one_gives():
    xs = np.arange(12.0, dtype=np.float32)
    devices = [SimpleNamespace(platform="gpu")]
    for at_once in (None, 12, 4, 1):
        np.testing.assert_array_equal(mapped(lambda x: x * x + 1, devices, 12, at_once)(xs), xs * xs + 1)
        shared = mapped(lambda both, x: both[1] * x, devices, 12, at_once, shared=1)
        np.testing.assert_array_equal(shared(xs[:3] + 2, xs), 3 * xs)


def test_what_does_not_fit_one_member_at_a_time_is_refused_with_what_to_change(monkeypatch):
    check_fits(CONFIG, gpu(1 << 40))
    with pytest.raises(UsageError, match="stage 0 .*population 12, batch 8.*smaller"):
        check_fits(CONFIG, gpu(1000))
    monkeypatch.setattr(footprint, "available_bytes", lambda device: None)
    check_fits(CONFIG, gpu(1000))


def test_the_population_that_is_proposed_for_several_gpus_fits():
    prime = replace(CONFIG, stages=(replace(STAGE, population=31),))
    three_each = stage_bytes(CONFIG, STAGE, gpu(1, 4), 1)
    with pytest.raises(UsageError, match="population.: 12} or a smaller multiple of 4,"):
        check_fits(prime, gpu(three_each, 4))
    check_fits(CONFIG, gpu(three_each, 4))
