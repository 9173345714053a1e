"""Between stages: members are judged by hard execution, and the best are cloned."""

import random
from functools import partial
from typing import Any

import equinox as eqx
import jax
import numpy as np

from nram.runtime import Device
from nram.tasks import get_task
from nram.training.config import HyperConfig, StageConfig, TrainConfig
from nram.training.evaluation import Score, Trial, draw_trial, hard_score
from nram.training.member import Hyper
from nram.training.population import Population, mapped

CRISP = 20.0  # what the logits of a hard stage are multiplied with: 0.5 against 0.3 becomes certain


def validation_of(config: TrainConfig, stage: StageConfig) -> Trial:
    return Trial(config.task, 2 * stage.max_complexity, config.validation, config.seed, "validation")


def compile_validation(config: TrainConfig, stage: StageConfig, devices: list[Device]):
    """A function from a population to every member's hard score on the validation set.

    The set goes up to twice the stage's complexity, because what does not reach beyond its training
    is not worth cloning, and half of it has twice the step limit, because what only works when
    stopped in time is not either.
    """
    task = get_task(config.task)
    instances, complexity = draw_trial(validation_of(config, stage))
    single, double = (task.step_limit.named(complexity, name) for name in ("T", "2T"))
    limits = np.where(np.arange(config.validation) % 4 < 2, single, double)
    score = mapped(partial(hard_score, config, instances=instances, limits=limits), devices, stage.population)

    def validate(population: Population) -> Score:
        return jax.tree.map(np.asarray, score(population.members.controller))

    return validate


def ranking(population: Population, score: Score) -> np.ndarray:
    """Members from the best to the worst: hard exact match, then how often they halt by themselves (what
    idles instead may drift while it does, as a soft machine), then curriculum level, then soft error."""
    progress = jax.tree.map(np.asarray, population.members.progress)
    return np.lexsort((progress.error, -progress.level, -score.halted, -score.exact))


def clone_best(config: TrainConfig, stage_index: int, population: Population, score: Score) -> Population:
    """The population of a stage: the best members of the one before, in turn, each first as it is and
    then with jittered hyperparameters. Levels are kept; the count of the error begins anew. What a hard stage left
    undecided is made crisp for a soft one, in which it would count."""
    stage, former = config.stages[stage_index], config.stages[stage_index - 1]
    order = ranking(population, score)[: stage.kept]
    places = np.arange(stage.population) % len(order)
    chosen = jax.tree.map(lambda leaf: np.asarray(leaf)[order[places]], population)
    original = np.arange(stage.population) < len(order)
    # Drawn for all of them, so that how a clone moves does not depend on how many stay as they are.
    every, seed = np.ones(stage.population, bool), f"clones {config.seed} {stage_index}"
    moved = jittered(config.hyper, chosen.hyper, every, config.jitter, seed)
    hyper = jax.tree.map(partial(np.where, original), chosen.hyper, moved)
    progress = chosen.members.progress._replace(error=np.ones(stage.population, np.float32), raised=chosen.members.step)
    island = chosen.members.island._replace(
        record=np.full(stage.population, np.inf, np.float32), stalled=np.zeros(stage.population, np.int32)
    )
    controller = chosen.members.controller
    if former.hard and not stage.hard:
        controller = eqx.tree_at(lambda network: network.output, controller, replace_fn=_crisp)
    return Population(chosen.members._replace(controller=controller, progress=progress, island=island), hyper)


def _crisp(layer: Any) -> Any:
    return jax.tree.map(lambda leaf: CRISP * leaf, layer)


def jittered(ranges: HyperConfig, hyper: Hyper, moving: np.ndarray, factor: float, seed: str) -> Hyper:
    """The hyperparameters, where those that are `moving` have moved."""
    rng = random.Random(seed)
    columns = []
    for name, column in zip(Hyper._fields, hyper, strict=True):
        column = np.array(column)  # a copy
        for place in np.flatnonzero(moving):
            column[place] = getattr(ranges, name).jitter(float(column[place]), rng, factor)
        columns.append(column)
    return Hyper(*columns)
