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
from nram.training.evaluation import Score, draw_trial, hard_results
from nram.training.footprint import members_at_once
from nram.training.kernels import Kernel, kernel_of
from nram.training.member import Island, batch_outcomes, wiring_of
from nram.training.population import Population, init_population, mapped
from nram.training.selection import jittered, validation_of

PROGRESS = 0.01  # less is none
EXAMPLES = 64  # fresh ones at least, the same for all members
COMMON = 0.05  # added to the errors by which examples are weighted, so that what all members can do counts too
TINY = 1e-9  # in place of a spread of 0
_STREAM = 8_000_000  # of keys that no training step and no trial uses


class Fit(NamedTuple):
    """How members do under the step limits of training: as they are trained, on fresh examples of the stage, of all its
    complexities alike; and as discrete machines on the validation set, at up to twice the size."""

    errors: np.ndarray  # [members, examples]
    loss: np.ndarray  # [members]
    hard: np.ndarray  # [members, instances] errors
    exact: np.ndarray  # [members] share of instances

    @property
    def score(self) -> Score:
        """The latter as a score; whether a member stops by itself does not count in it."""
        return Score(np.mean(self.hard, axis=1), self.exact, np.zeros_like(self.exact))


def compile_fit(config: TrainConfig, stage: StageConfig, devices: list[Device], kernel: Kernel | None = None):
    """A function (population, stage index, step) -> Fit."""
    shape = (kernel or kernel_of(config, stage, devices)).shape
    batches = -(-EXAMPLES // config.batch)
    uniform = replace(config, curriculum=replace(config.curriculum, enabled=False))

    def one(hyper, controller, level, keys):
        batch = partial(batch_outcomes, uniform, stage, hyper, controller, level, kernel=shape)
        outcomes = jax.lax.map(batch, keys)
        return jnp.ravel(outcomes.error), jnp.mean(outcomes.loss)

    measure = mapped(one, devices, stage.population, members_at_once(config, stage, devices))
    instances, complexity = draw_trial(validation_of(config, stage))
    limits = config.step_limit(complexity) + stage.extra_steps + np.arange(len(complexity)) % (stage.step_slack + 1)
    discrete = mapped(partial(hard_results, config, instances=instances, limits=limits), devices, stage.population)

    def fit(population: Population, stage_index: int, step: int) -> Fit:
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(config.seed), _STREAM + stage_index), step)
        keys = jax.random.split(key, batches)
        everyone = jnp.broadcast_to(keys, (stage.population, batches))
        members = population.members
        errors, loss = measure(population.hyper, members.controller, members.progress.level, everyone)
        hard, exact = discrete(members.controller)
        return Fit(np.asarray(errors), np.asarray(loss), np.asarray(hard), np.mean(exact, axis=1))

    return fit


def cull(
    config: TrainConfig, stage_index: int, step: int, population: Population, fit: Fit, score: Score
) -> Population:
    """The population after a check: in every island the worst members are replaced, and an island that has made no
    progress for too long starts anew, unless it is the best.

    What counts is the error at the size of training; the smaller that is, also the hard error at up to twice the size;
    the smaller that is, also that under the step limits of the task and twice those: a member that has learned the
    examples by heart, or lives on being soft, gives way to one that goes further.
    """
    stage = config.stages[stage_index]
    island_of = np.arange(stage.population) * stage.islands // stage.population

    def standings(errors: np.ndarray, hard: np.ndarray) -> np.ndarray:
        later = hard if stage.hard else _before(hard, score.error, stage.hardness)
        standing = _before(errors, later, stage.hardness)
        return np.where(np.isfinite(standing), standing, np.inf)

    standing = standings(np.mean(fit.errors, axis=1), np.mean(fit.hard, axis=1))
    within = standings(*(_shared(errors, island_of, stage.sharing) for errors in (fit.errors, fit.hard)))
    order = np.lexsort((np.where(np.isfinite(fit.loss), fit.loss, np.inf), within))
    members = jax.tree.map(np.asarray, population.members)
    record, stalled = members.island.record.copy(), members.island.stalled.copy()
    places, fresh, worst = np.arange(stage.population), [], []
    for number in range(stage.islands):
        own = island_of == number
        ranked = order[own[order]]
        best, former = np.min(standing[own]), record[ranked[0]]
        progress = best < former - PROGRESS
        record[own] = best if progress else former  # so that small gains add up
        stalled[own] = 0 if progress or best == 0 else stalled[ranked[0]] + 1
        stuck = 0 < stage.patience <= stalled[ranked[0]]
        if stuck and best > np.min(standing) and np.all(score.exact[own] < 1):
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
    controller = _forgetful(config, stage, members.controller, np.array(worst, int), rng)
    culled = Population(members._replace(controller=controller, progress=progress), hyper)
    for number in fresh:
        own = np.flatnonzero(island_of == number)
        anew = init_population(config, len(own), (stage_index, step, number))
        culled = jax.tree.map(partial(_put, own), culled, anew)
    return culled


def _shared(errors: np.ndarray, island_of: np.ndarray, sharing: float) -> np.ndarray:
    """Every member's mean error, where what few members of its island can do counts for more."""
    means = np.empty(len(errors), errors.dtype)
    for island in np.unique(island_of):
        own = errors[island_of == island]
        weights = (np.mean(own, axis=0) + COMMON) ** sharing
        means[island_of == island] = own @ (weights / np.sum(weights))
    return means


def _before(error: np.ndarray, later: np.ndarray, hardness: float) -> np.ndarray:
    """Both errors in one number, which neither can raise by falling: the later one counts once the first is small."""
    return error + (1 - error) ** hardness / hardness * later


def _put(places: np.ndarray, leaf: np.ndarray, new: Any) -> np.ndarray:
    leaf = leaf.copy()
    leaf[places] = new
    return leaf


def _forgetful(config: TrainConfig, stage: StageConfig, controllers: Any, places: np.ndarray, rng: np.random.Generator):
    """The controllers, where those at these places have drawn some wires anew, as sharp as the rest, or waver in some:
    there the old choice stays the first, but only just."""
    lengths = np.array(wiring_of(config.machine).lengths)
    ends = np.cumsum(lengths)
    weight, bias = controllers.output.weight.copy(), controllers.output.bias.copy()
    for place in places:
        if stage.forget:
            forgotten = np.flatnonzero(np.repeat(rng.random(len(lengths)) < stage.forget / len(lengths), lengths))
            fresh = rng.standard_normal((weight.shape[1], len(forgotten))) * np.std(weight[place])
            weight[place][:, forgotten], bias[place][forgotten] = fresh, 0
        if stage.waver:
            share = np.exp(rng.uniform(np.log(1 / len(lengths)), np.log(stage.waver)))
            wavering = np.flatnonzero(rng.random(len(lengths)) < share)
            if len(wavering) == 0:
                wavering = [rng.integers(len(lengths))]
            spread = rng.uniform(0, 1) / np.sqrt(weight.shape[1])  # at most that of a fresh layer
            for wire in wavering:
                own = slice(ends[wire] - lengths[wire], ends[wire])
                factor = min(1.0, spread / (np.std(weight[place][:, own]) + TINY))
                weight[place][:, own] *= factor
                bias[place][own] *= factor
    return eqx.tree_at(lambda network: (network.output.weight, network.output.bias), controllers, (weight, bias))
