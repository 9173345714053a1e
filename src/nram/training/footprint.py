"""How much memory a stage needs, said before it starts."""

import jax
import numpy as np

from nram.errors import UsageError
from nram.runtime import Device, available_bytes
from nram.training.config import StageConfig, TrainConfig
from nram.training.member import wiring_of

FLOAT = 4


def stage_bytes(config: TrainConfig, stage: StageConfig, devices: list[Device]) -> int:
    """The bytes of a stage's population on one device: weights with Adam's moments for every member,
    and what the backward pass keeps for the members that are trained at the same time."""
    from nram.training.population import abstract_population

    population = abstract_population(config, 1)
    weights = sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(population.members)) * FLOAT
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


def check_fits(config: TrainConfig, devices: list[Device]) -> None:
    """A clear refusal instead of a crash half-way."""
    free = available_bytes(devices[0])
    if free is None:
        return
    for index, stage in enumerate(config.stages):
        needed = stage_bytes(config, stage, devices)
        if needed > free:
            fitting = max(1, int(stage.population * free / needed))
            raise UsageError(
                f"stage {index} (population {stage.population}, batch {config.batch}) needs about "
                f"{needed / 2**30:.1f} GiB and {free / 2**30:.1f} GiB are free: "
                f"use --set stages.{index}.population={fitting} or less, or a smaller batch"
            )
