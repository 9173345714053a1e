"""How much memory a stage needs, said before it starts."""

from bisect import bisect_right
from dataclasses import replace
from functools import lru_cache

import jax
import numpy as np

from nram.errors import UsageError
from nram.runtime import Device, available_bytes
from nram.training.config import StageConfig, TrainConfig
from nram.training.member import wiring_of
from nram.training.population import abstract_population

FLOAT = 4


def stage_bytes(config: TrainConfig, stage: StageConfig, devices: list[Device]) -> int:
    """The bytes of a stage's population on one device: weights with Adam's moments for every member,
    and what the backward pass keeps for the members that are trained at the same time."""
    weights = _member_bytes(config)
    on_cpu = devices[0].platform == "cpu"
    members = stage.population if on_cpu else -(-stage.population // len(devices))
    at_once = min(len(devices), stage.population) if on_cpu else members
    wiring, size = wiring_of(config.machine), config.memory_size(stage)
    writes = sum(module.memory == "writes" for module in wiring.modules)
    choices = 3 * wiring.wires * wiring.values  # logits, weights and their logarithms
    tapes = (writes + 2) * size * size
    vectors = (wiring.wires + 2 * wiring.values) * size + 8 * config.machine.hidden
    activations = config.batch * config.loop_steps(stage) * (choices + tapes + vectors) * FLOAT
    return 2 * members * weights + at_once * (3 * weights + activations)


@lru_cache(maxsize=1)
def _member_bytes(config: TrainConfig) -> int:
    members = abstract_population(config, 1).members
    return sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(members)) * FLOAT


def check_fits(config: TrainConfig, devices: list[Device]) -> None:
    """A clear refusal instead of a crash half-way, with what would fit."""
    free = available_bytes(devices[0])
    if free is None:
        return
    problems = []
    for index, stage in enumerate(config.stages):
        needed = stage_bytes(config, stage, devices)
        if needed <= free:
            continue
        fitting = bisect_right(
            range(1, stage.population + 1),
            free,
            key=lambda population, stage=stage: stage_bytes(config, replace(stage, population=population), devices),
        )
        smaller = f"--set stages.{index}.population={fitting} or less, or " if fitting else ""
        problems.append(
            f"stage {index} (population {stage.population}, batch {config.batch}) needs about {needed / 2**30:.1f} GiB "
            f"and {free / 2**30:.1f} GiB are free: use {smaller}a smaller batch"
        )
    if problems:
        raise UsageError("\n".join(problems))
