"""One population on several devices: what is compiled for GPUs that are not here, and the same bits on CPU devices."""

import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest
from support.emulated_gpu import EmulatedShape
from support.kernel_cases import BACKENDS, CASES, Inputs

from nram.machine.kernels.common.choice import Kernel
from nram.machine.kernels.common.outcomes import outcomes_and_gradient
from nram.machine.kernels.common.specification import extend
from nram.machine.kernels.gpu.shape import WarpShape
from nram.training import mapping
from nram.training.config import MachineConfig, StageConfig, TrainConfig
from nram.training.kernels import chosen_kernel
from nram.training.mapping import idle_gpus, mapped
from nram.training.population import abstract_population, compile_training, init_population, stage_keys

MEMBERS = 6
STAGE = StageConfig(3, 4, MEMBERS, step_slack=2)
MACHINE = MachineConfig(registers=3, hidden=8, modules=("READ", "INC", "EQUALITY-TEST", "WRITE"))
CONFIG = TrainConfig("increment", batch=5, steps_constant=2, machine=MACHINE, stages=(STAGE,))


@pytest.fixture
def gpus(monkeypatch):
    """A function that gives GPUs as far as training is concerned: what is compiled for them runs on CPU devices."""
    mesh = jax.sharding.Mesh
    monkeypatch.setattr(mapping, "Mesh", lambda used, names: mesh(np.array(jax.devices()[: len(used)]), names))

    def make(count: int) -> list[Any]:
        return [SimpleNamespace(platform="gpu", memory_stats=lambda: {"bytes_limit": 1 << 40})] * count

    return make


def same(one: Any, two: Any) -> bool:
    return all(map(np.array_equal, jax.tree.leaves(one), jax.tree.leaves(two)))


@pytest.mark.parametrize("at_once", [None, 1])
def test_each_gpu_runs_the_kernel_on_its_members_to_the_same_bits(gpus, at_once):
    case = CASES[1]
    shape, inputs = BACKENDS["emulated"].shape(case, "float32"), Inputs(case, (MEMBERS,))
    run = partial(outcomes_and_gradient, shape)
    one, two = (mapped(run, gpus(count), MEMBERS, at_once)(*inputs.of("float32")) for count in (1, 2))
    assert len(two[0].loss.devices()) == 2
    assert same(one, two)


def test_what_is_compiled_for_several_gpus_calls_the_kernel_within_each_shard(gpus, monkeypatch):
    """For CUDA, up to where XLA would need a GPU."""
    monkeypatch.setattr(WarpShape, "registered", lambda shape: "nram_kernel")
    run = compile_training(CONFIG, STAGE, gpus(2))
    keys = jax.eval_shape(lambda: stage_keys(CONFIG, 0))
    traced = jax.jit(lambda population, keys: run(population, keys, 0, 4)).trace(abstract_population(CONFIG, 6), keys)
    lines = traced.lower(lowering_platforms=("cuda",)).as_text().splitlines()
    assert any('"members"=2' in line for line in lines if "sdy.mesh" in line)
    (begin,) = (number for number, line in enumerate(lines) if "sdy.manual_computation" in line)
    (call,) = (number for number, line in enumerate(lines) if "custom_call @nram_kernel(" in line)
    assert begin < call
    taken, given = lines[call].rpartition(" : ")[2].split(" -> ")
    shapes = re.findall(r"tensor<([\dx]+)x[a-z]\d+>", taken + given)
    kernel: Any = chosen_kernel(CONFIG, STAGE, gpus(2)).shape
    assert shapes == ["x".join(map(str, (MEMBERS // 2, *own))) for own in kernel.buffers.values()]
    # Members never communicate.
    assert not re.search("all_gather|all_reduce|all_to_all|collective|reduce_scatter", "\n".join(lines))


@pytest.mark.slow
def test_a_population_learns_on_two_gpus_what_it_learns_on_one(gpus):
    """Nearly: XLA rounds a few sums in another order where a device has fewer members."""

    def trained(count: int):
        shape: Any = chosen_kernel(CONFIG, STAGE, gpus(count)).shape
        training = compile_training(CONFIG, STAGE, gpus(count), Kernel(extend(EmulatedShape, shape)))
        population, report = training(init_population(CONFIG, MEMBERS), stage_keys(CONFIG, 0), 0, 4)
        return jax.tree.map(np.asarray, (population.members, report))

    for one, two in zip(*map(jax.tree.leaves, (trained(1), trained(2))), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-6)


def test_a_population_that_the_gpus_do_not_divide_says_how_many_run(gpus):
    assert idle_gpus(12, gpus(4)) is idle_gpus(7, jax.devices()) is None
    assert idle_gpus(10, gpus(4)) == "10 members run on 2 of 4 GPUs: a population that 4 divides would use all"


@pytest.mark.slow
def test_runs_that_go_on_on_other_numbers_of_devices_end_in_the_same_bits():
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=4"
    folder = Path(__file__).parents[1]
    environment = {**os.environ, "XLA_FLAGS": flags, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    command = [sys.executable, "-m", "support.many_devices"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["devices", "4", "ended", "the", "same"]
