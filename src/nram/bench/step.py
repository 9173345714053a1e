"""Measuring the training step, plain and by a kernel, beside the frozen reference step in the same run."""

import importlib.util
import time
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nram.bench.shape import StepShape
from nram.extensions import known_task
from nram.machine.kernels.common.choice import PLAIN, Kernel
from nram.runtime import Device
from nram.training.config import MachineConfig, StageConfig, TrainConfig
from nram.training.kernels import kernel_of
from nram.training.mapping import mapped
from nram.training.member import batch_outcomes, draw_batch
from nram.training.pools import CHUNK, Pools
from nram.training.population import compile_training, init_population, stage_keys

REFERENCE = Path(__file__).parents[3] / "benchmarks" / "reference_step.py"  # in a checkout, not in a wheel


def measure(shape: StepShape, devices: list[Device], seconds: float) -> dict[str, Any]:
    """Rates of the plain step, of the kernel and of the reference step.

    The kernel's is None if there is no kernel (`why_plain` gives the reason), the reference's if it does not apply.
    """
    kernel = kernel_of(*configured(shape), devices)
    return {
        "plain": _measure_step(shape, devices, seconds, PLAIN),
        "fast": _measure_step(shape, devices, seconds, kernel) if kernel.shape else None,
        "why_plain": kernel.reason or None,
        "reference": _measure_reference(shape, devices, seconds),
    }


def training_seconds(shape: StepShape, devices: list[Device], seconds: float, kernel: Kernel) -> float:
    """The time of one training step of the whole population."""
    config, stage = configured(shape)
    population, keys = init_population(config, shape.population), stage_keys(config, 0)
    train, pools, firsts = compile_training(config, stage, devices, kernel), Pools(config, stage, 0), count(0, CHUNK)

    def train_chunk():
        first = next(firsts)  # so that a pool is used once, as in a run
        return train(population, keys, first, CHUNK, pools.at(first))

    return 1 / _rate(train_chunk, CHUNK, seconds)


def _rate(call, work: int, seconds: float) -> float:
    """Work a second, of the fastest call after one that compiles.

    The fastest measures the code. The others also measure what else the machine was doing.
    """
    jax.block_until_ready(call())
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        began = time.perf_counter()
        jax.block_until_ready(call())
        times.append(time.perf_counter() - began)
    return work / min(times)


def configured(shape: StepShape) -> tuple[TrainConfig, StageConfig]:
    """A training run of this shape."""
    task = known_task(shape.task)
    complexity = task.largest_complexity(shape.memory_size)
    extra = shape.memory_size - task.least_memory(complexity)
    stage = StageConfig(complexity, CHUNK, shape.population, extra_memory=extra, step_slack=0)
    config = TrainConfig(
        shape.task,
        batch=shape.batch,
        steps_per_item=0,
        steps_constant=shape.steps,
        machine=MachineConfig(
            registers=shape.registers,
            repeats=shape.repeats,
            controller=shape.controller,
            hidden=shape.hidden,
            states=shape.states,
        ),
        stages=(stage,),
    )
    return config, stage


def _measure_step(shape: StepShape, devices: list[Device], seconds: float, kernel: Kernel) -> dict[str, float]:
    config, stage = configured(shape)
    population, keys = init_population(config, shape.population), stage_keys(config, 0)

    def run_batch(pool, hyper, controller, level, key):
        batch = draw_batch(config, stage, hyper, level, key, pool)
        return batch_outcomes(config, stage, hyper, controller, batch, kernel.shape)

    forward = mapped(run_batch, devices, shape.population, shared=1)
    members, hyper = population
    inputs = (Pools(config, stage, 0).at(0), hyper, members.controller, members.progress.level, keys)
    return {
        "forward_example_steps_per_s": _rate(lambda: forward(*inputs), shape.example_steps, seconds),
        "train_example_steps_per_s": shape.example_steps / training_seconds(shape, devices, seconds, kernel),
    }


def _measure_reference(shape: StepShape, devices: list[Device], seconds: float) -> dict[str, float] | None:
    """The frozen step of benchmarks/, on memories of random integers; None where it does not apply."""
    if shape.controller != "mlp" or not REFERENCE.is_file():
        return None
    spec = importlib.util.spec_from_file_location("reference_step", REFERENCE)
    assert spec is not None and spec.loader is not None
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    forward, train = reference.build(shape.repeats, shape.steps)
    keys = jax.random.split(jax.random.key(0), shape.population)
    make = partial(reference.init_params, registers=shape.registers, repeats=shape.repeats, hidden=shape.hidden)
    with jax.default_device(devices[0]), jax.default_matmul_precision("highest"):
        params = jax.vmap(make)(keys)
        state = jax.vmap(reference.OPTIMISER.init)(params)
        rng = np.random.default_rng(0)
        size = (shape.population, shape.batch, shape.memory_size)
        start, target = (jnp.asarray(rng.integers(0, shape.memory_size, size)) for _ in range(2))
        batch = (start, target, jnp.ones(size))
        return {
            "forward_example_steps_per_s": _rate(lambda: forward(params, batch), shape.example_steps, seconds),
            "train_example_steps_per_s": _rate(lambda: train(params, state, batch), shape.example_steps, seconds),
        }
