"""How much memory a stage needs, known before it starts, and how many members can be trained at the same time."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np

from nram.errors import UsageError
from nram.machine.kernels.common.choice import Kernel
from nram.runtime import Device, available_bytes
from nram.training.config import StageConfig, TrainConfig
from nram.training.kernels import chosen_kernel
from nram.training.mapping import shards_of
from nram.training.member import Hyper, init_member, wiring_of

FLOAT = 4
CELL = 16  # of an instance: input, expected output, which cells count, and the memory of the machine


def stage_bytes(config: TrainConfig, stage: StageConfig, devices: list[Device], at_once: int, kernel: Kernel) -> int:
    """The bytes that a stage needs on each device: weights with Adam's moments for its members, what the backward pass
    keeps for those that it trains at the same time, and the validation set with the memories of the machines that run
    on it. CPU devices share one memory. Of several GPUs the first one also draws and clones the whole population."""
    weights = _member_bytes(config)
    on_cpu = devices[0].platform == "cpu"
    members = stage.population if on_cpu else stage.population // shards_of(stage.population, len(devices))
    busy = min(len(devices), stage.population) if on_cpu else 1
    training = 2 * members * weights + busy * at_once * (3 * weights + _activation_bytes(config, stage, kernel))
    whole = 0
    if members < stage.population:
        whole = (2 * stage.population + members if stage.cull.share else stage.population) * weights
    validated = busy if on_cpu else members  # at the same time
    return max(training, whole) + (validated + 1) * config.validation_cells(stage) * CELL


def free_bytes(devices: list[Device]) -> int | None:
    """The memory that a program may take on each of these devices; None if it is not known."""
    asked = devices[:1] if devices[0].platform == "cpu" else devices  # CPU devices share one memory
    found = [available_bytes(device) for device in asked]
    return None if None in found else min(free for free in found if free is not None)


def members_at_once(config: TrainConfig, stage: StageConfig, devices: list[Device], kernel: Kernel) -> int:
    """How many members a device trains at the same time: one on a CPU, whose caches it fills; on a GPU as many as
    fit into its memory and divide its share of the population."""
    if devices[0].platform == "cpu":
        return 1
    members, free = stage.population // shards_of(stage.population, len(devices)), free_bytes(devices)
    even = [n for n in range(1, members + 1) if members % n == 0]
    fitting = [n for n in even if free is None or stage_bytes(config, stage, devices, n, kernel) <= free]
    return max(fitting, default=1)


def _activation_bytes(config: TrainConfig, stage: StageConfig, kernel: Kernel) -> int:
    """What the backward pass keeps of one member's batch."""
    if kernel.shape is not None:
        return kernel.shape.result_scalars * FLOAT
    wiring, size = wiring_of(config.machine), config.memory_size(stage)
    writes = sum(module.memory == "writes" for module in wiring.modules)
    choices = 3 * wiring.wires * wiring.values  # logits, weights and their logarithms
    tapes = (writes + 2) * size * size
    vectors = (wiring.wires + 2 * wiring.values) * size + 8 * config.machine.hidden
    if config.penalises_state(stage):
        tapes += (config.machine.registers + size) * size
    return config.batch * config.loop_steps(stage) * (choices + tapes + vectors) * FLOAT


@lru_cache(maxsize=1)
def _member_bytes(config: TrainConfig) -> int:
    hyper = Hyper(*(jnp.float32(0) for _ in Hyper._fields))
    member = jax.eval_shape(lambda: init_member(config, hyper, jax.random.key(0)))
    return sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(member)) * FLOAT


def check_fits(config: TrainConfig, devices: list[Device]) -> None:
    """A clear refusal instead of a crash half-way, where not even one member at a time would fit."""
    free = free_bytes(devices)
    if free is None:
        return
    problems = [
        f"group {number}, " + problem.replace("stages.", f"groups.{number}.stages.") if config.groups else problem
        for number, group in enumerate(config.group_configs)
        for problem in _unfit(group, devices, free)
    ]
    if problems:
        raise UsageError("\n".join(problems))


def _unfit(config: TrainConfig, devices: list[Device], free: int) -> Iterator[str]:
    even = 1 if devices[0].platform == "cpu" else len(devices)  # other populations do not use all GPUs
    for index, stage in enumerate(config.stages):
        kernel = chosen_kernel(config, stage, devices)

        def needed_by(population: int, stage=stage, kernel=kernel) -> int:
            return stage_bytes(config, replace(stage, population=population), devices, 1, kernel)

        needed = needed_by(stage.population)
        if needed <= free:
            continue
        fitting = even * bisect_right(range(even, stage.population + 1, even), free, key=needed_by)
        less = "less" if even == 1 else f"a smaller multiple of {even}"
        smaller = f"--set stages.{index}.population={fitting} or {less}, or " if fitting else ""
        yield (
            f"stage {index} (population {stage.population}, batch {config.batch}) needs about {needed / 2**30:.1f} GiB "
            f"and {free / 2**30:.1f} GiB are free: use {smaller}a smaller batch"
        )
