"""Within a stage: the worst members make room for clones of the best, which have forgotten some wires or waver in some.

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
from jax import Array

from nram.runtime import Device
from nram.training.config import StageConfig, TrainConfig
from nram.training.evaluation import Score, draw_trial, hard_results
from nram.training.footprint import members_at_once
from nram.training.kernels import Kernel, kernel_of
from nram.training.lexicase import by_examples
from nram.training.member import Member, batch_outcomes, wiring_of
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
    examples by heart, or lives on being soft, gives way to one that goes further. With lexicase single examples decide
    who gives way (lexicase.py), and all this only who stands first, and what is progress.
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
    island = jax.tree.map(np.array, population.members.island)  # copies
    rng = np.random.default_rng([config.seed, stage_index, step])
    places, fresh = np.arange(stage.population), []
    for number in range(stage.islands):
        own = island_of == number
        ranked = order[own[order]]
        best, former = np.min(standing[own]), island.record[ranked[0]]
        progress = best < former - PROGRESS
        island.record[own] = best if progress else former  # so that small gains add up
        island.stalled[own] = 0 if progress or best == 0 else island.stalled[ranked[0]] + 1
        stuck = 0 < stage.patience <= island.stalled[ranked[0]]
        if stuck and best > np.min(standing) and np.all(score.exact[own] < 1):
            fresh.append(number)
            continue
        count = int(stage.cull * len(ranked))
        if stage.lexicase:
            replaced, parents = by_examples(np.concatenate([fit.errors, fit.hard], axis=1)[ranked], count, rng)
            places[ranked[replaced]] = ranked[parents]
        else:
            places[ranked[len(ranked) - count :]] = ranked[:count]
    cloned = places != np.arange(stage.population)
    hyper = jax.tree.map(lambda column: np.asarray(column)[places], population.hyper)
    hyper = jittered(config.hyper, hyper, cloned, config.jitter, f"culling {config.seed} {stage_index} {step}")
    changes = _changes(config, stage, cloned, rng)
    members = _cloned(population.members, places, cloned, changes, wiring_of(config.machine).lengths)
    culled = Population(members._replace(island=island), hyper)
    for number in fresh:
        own = np.flatnonzero(island_of == number)
        anew = init_population(config, len(own), (stage_index, step, number))
        culled = _put(culled, own, anew)
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


@jax.jit
def _put(population: Population, places: np.ndarray, new: Population) -> Population:
    return jax.tree.map(lambda leaf, own: leaf.at[places].set(own), population, new)


class _Changes(NamedTuple):
    """How clones differ from their parents in the wires."""

    forgotten: np.ndarray  # [members, wires] are drawn anew, as sharp as the rest
    spread: np.ndarray  # [members, wires] of their weights at most
    seed: np.uint32


def _changes(config: TrainConfig, stage: StageConfig, cloned: np.ndarray, rng: np.random.Generator) -> _Changes:
    """Drawn for the clones: which wires they forget, and in which they waver, where the old choice stays the first, but
    only just."""
    lengths = wiring_of(config.machine).lengths
    size = len(cloned), len(lengths)
    forgotten = rng.random(size) < stage.forget / len(lengths)
    spread = np.full(size, np.inf, np.float32)
    if stage.waver:
        share = np.exp(rng.uniform(np.log(1 / len(lengths)), np.log(stage.waver), (len(cloned), 1)))
        wavering = rng.random(size) < share
        wavering[np.arange(len(cloned)), rng.integers(len(lengths), size=len(cloned))] |= ~np.any(wavering, axis=1)
        fresh_layer = 1 / np.sqrt(config.machine.hidden)
        spread = np.where(wavering, rng.uniform(0, fresh_layer, (len(cloned), 1)), spread).astype(np.float32)
    clones, seed = cloned[:, None], rng.integers(2**32, dtype=np.uint32)
    return _Changes(forgotten & clones, np.where(clones, spread, np.inf), seed)


@partial(jax.jit, static_argnames=("lengths",))
def _cloned(
    members: Member, places: np.ndarray, cloned: np.ndarray, changes: _Changes, lengths: tuple[int, ...]
) -> Member:
    """The members at these places; the clones among them have other wires, and the count of their error begins anew."""
    members = jax.tree.map(lambda leaf: leaf[places], members)
    controller: Any = members.controller
    weight, bias = controller.output.weight, controller.output.bias
    wire_of = np.repeat(np.arange(len(lengths)), lengths)  # by logit
    logits = len(wire_of)  # what follows them decides on halting
    own = weight[..., :logits]
    deviation = _deviations(own, np.array(lengths))
    wavering = jnp.minimum(1.0, changes.spread / (deviation + TINY))
    factor = jnp.where(jnp.isinf(changes.spread), 1.0, wavering)[:, wire_of]
    forgotten = changes.forgotten[:, wire_of]
    fresh = jax.random.normal(jax.random.key(changes.seed), own.shape) * jnp.std(weight, axis=(1, 2), keepdims=True)
    own = jnp.where(forgotten[:, None], fresh, own * factor[:, None])
    own_bias = jnp.where(forgotten, 0.0, bias[:, :logits] * factor)
    changed = weight.at[..., :logits].set(own), bias.at[:, :logits].set(own_bias)
    controller = eqx.tree_at(lambda network: (network.output.weight, network.output.bias), controller, changed)
    progress = members.progress._replace(error=jnp.where(cloned, 1.0, members.progress.error))
    return members._replace(controller=controller, progress=progress)


def _deviations(weights: Array, lengths: np.ndarray) -> Array:
    """The standard deviation of every wire's weights, [members, wires], of weights [members, hidden, logits]: by plain
    sums over padded wires, because sums over segments differ from call to call on a GPU."""
    within = np.arange(np.max(lengths))[None]
    ends = np.cumsum(lengths)
    used = within < lengths[:, None]
    logits = np.where(used, (ends - lengths)[:, None] + within, 0)

    def means(each: Array) -> Array:
        return jnp.sum(jnp.where(used[None], jnp.mean(each, axis=1)[:, logits], 0.0), axis=2) / lengths[None]

    middle = np.repeat(np.arange(len(lengths)), lengths)
    return jnp.sqrt(means((weights - means(weights)[:, None, middle]) ** 2))
