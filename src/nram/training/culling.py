"""Within a stage: the worst members make room for clones of the best, each of which has forgotten some wires.

Gradient descent improves a circuit where it is nearly right; what it cannot do is leave one that is stuck. A clone
that draws one wire anew and keeps the rest is the neighbour of a good circuit, and is then trained like any other.
Islands keep the population from becoming all of one kind: members give way to clones from their own island alone.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from nram.runtime import Device
from nram.training.config import StageConfig, TrainConfig
from nram.training.evaluation import Score, draw_trial, hard_score
from nram.training.footprint import members_at_once
from nram.training.kernels import Kernel, kernel_of
from nram.training.member import Island, batch_outcomes, wiring_of
from nram.training.population import Population, init_population, mapped
from nram.training.selection import jittered, validation_of

PROGRESS = 0.01  # less is none
BATCHES = 4  # of fresh examples, the same for all members
_STREAM = 8_000_000  # of keys that no training step and no trial uses


class Fit(NamedTuple):
    """How members do under the step limits of training: as soft machines on fresh examples of the stage, of all its
    complexities alike, and as discrete ones on the validation set, at up to twice the size."""

    error: np.ndarray
    loss: np.ndarray
    hard: np.ndarray  # error


def compile_fit(config: TrainConfig, stage: StageConfig, devices: list[Device], kernel: Kernel | None = None):
    """A function (population, stage index, step) -> Fit."""
    shape = (kernel or kernel_of(config, stage, devices)).shape
    uniform = replace(config, curriculum=replace(config.curriculum, enabled=False))

    def one(hyper, controller, level, keys):
        batch = partial(batch_outcomes, uniform, stage, hyper, controller, level, kernel=shape)
        outcomes = jax.lax.map(batch, keys)
        return jnp.mean(outcomes.error), jnp.mean(outcomes.loss)

    measure = mapped(one, devices, stage.population, members_at_once(config, stage, devices))
    instances, complexity = draw_trial(validation_of(config, stage))
    limits = config.step_limit(complexity) + np.arange(len(complexity)) % (stage.step_slack + 1)
    discrete = mapped(partial(hard_score, config, instances=instances, limits=limits), devices, stage.population)

    def fit(population: Population, stage_index: int, step: int) -> Fit:
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(config.seed), _STREAM + stage_index), step)
        keys = jax.random.split(key, BATCHES)
        everyone = jnp.broadcast_to(keys, (stage.population, BATCHES))
        members = population.members
        error, loss = measure(population.hyper, members.controller, members.progress.level, everyone)
        return Fit(np.asarray(error), np.asarray(loss), np.asarray(discrete(members.controller).error))

    return fit


def cull(
    config: TrainConfig, stage_index: int, step: int, population: Population, fit: Fit, score: Score
) -> Population:
    """The population after a check: in every island the worst members are replaced, and an island that has made no
    progress for too long starts anew, unless it is the best.

    What counts is the soft error at the size of training and, the more the smaller that is, the hard error at up to
    twice the size, for one half under the limits of training, for the other under those of the task and twice those: a
    member that has learned the examples by heart, or lives on being soft, gives way to one that goes further.
    """
    stage = config.stages[stage_index]
    standing = fit.error + (fit.hard + score.error) / 2 * (1 - fit.error) ** stage.hardness
    standing = np.where(np.isfinite(standing), standing, np.inf)
    order = np.lexsort((np.where(np.isfinite(fit.loss), fit.loss, np.inf), standing))
    members = jax.tree.map(np.asarray, population.members)
    island_of = np.arange(stage.population) * stage.islands // stage.population
    record, stalled = members.island.record.copy(), members.island.stalled.copy()
    places, fresh, worst = np.arange(stage.population), [], []
    for number in range(stage.islands):
        own = island_of == number
        ranked = order[own[order]]
        best, former = standing[ranked[0]], record[ranked[0]]
        progress = best < former - PROGRESS
        record[own] = min(best, former)
        stalled[own] = 0 if progress or best == 0 else stalled[ranked[0]] + 1
        if 0 < stage.patience <= stalled[ranked[0]] and best > np.min(standing):
            fresh.append(number)
            continue
        count = int(stage.cull * len(ranked))
        replaced = ranked[len(ranked) - count :]
        places[replaced] = ranked[:count]
        worst.extend(replaced)
    members = jax.tree.map(lambda leaf: leaf[places], members._replace(island=Island(record, stalled)))
    hyper = jax.tree.map(lambda leaf: np.asarray(leaf)[places], population.hyper)
    cloned = np.isin(np.arange(stage.population), worst)
    hyper = jittered(config.hyper, hyper, ~cloned, config.jitter, f"culling {config.seed} {stage_index} {step}")
    progress = members.progress._replace(error=np.where(cloned, np.float32(1), members.progress.error))
    rng = np.random.default_rng([config.seed, stage_index, step])
    controller = _forgetful(config, members.controller, np.array(worst, int), stage.forget, rng)
    culled = Population(members._replace(controller=controller, progress=progress), hyper)
    for number in fresh:
        own = np.flatnonzero(island_of == number)
        anew = init_population(config, len(own), (stage_index, step, number))
        culled = jax.tree.map(partial(_put, own), culled, anew)
    return culled


def _put(places: np.ndarray, leaf: np.ndarray, new: Any) -> np.ndarray:
    leaf = leaf.copy()
    leaf[places] = new
    return leaf


def _forgetful(config: TrainConfig, controllers: Any, places: np.ndarray, wires: float, rng: np.random.Generator):
    """The controllers, where those at these places have drawn on average so many wires anew, as sharp as the rest."""
    lengths = wiring_of(config.machine).lengths
    weight, bias = controllers.output.weight.copy(), controllers.output.bias.copy()
    for place in places:
        forgotten = np.flatnonzero(np.repeat(rng.random(len(lengths)) < wires / len(lengths), lengths))
        fresh = rng.standard_normal((weight.shape[1], len(forgotten))) * np.std(weight[place])
        weight[place][:, forgotten], bias[place][forgotten] = fresh, 0
    return eqx.tree_at(lambda network: (network.output.weight, network.output.bias), controllers, (weight, bias))
