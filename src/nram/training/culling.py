"""Within a stage: the worst members make room for clones of the best, each of which has forgotten some wires.

Gradient descent improves a circuit where it is nearly right; what it cannot do is leave one that is stuck. A clone
that draws one wire anew and keeps the rest is the neighbour of a good circuit, and is then trained like any other.
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
from nram.training.footprint import members_at_once
from nram.training.kernels import Kernel, kernel_of
from nram.training.member import batch_outcomes, wiring_of
from nram.training.population import Population, mapped
from nram.training.selection import jittered

BATCHES = 4  # of fresh examples, the same for all members
_STREAM = 8_000_000  # of keys that no training step and no trial uses


class Fit(NamedTuple):
    """How members do on fresh examples of the stage, of all its complexities alike."""

    error: np.ndarray
    loss: np.ndarray

    @property
    def solved(self) -> int:
        """Members without an error."""
        return int(np.sum(self.error == 0))


def compile_fit(config: TrainConfig, stage: StageConfig, devices: list[Device], kernel: Kernel | None = None):
    """A function (population, stage index, step) -> Fit."""
    shape = (kernel or kernel_of(config, stage, devices)).shape
    uniform = replace(config, curriculum=replace(config.curriculum, enabled=False))

    def one(hyper, controller, level, keys):
        batch = partial(batch_outcomes, uniform, stage, hyper, controller, level, kernel=shape)
        outcomes = jax.lax.map(batch, keys)
        return jnp.mean(outcomes.error), jnp.mean(outcomes.loss)

    measure = mapped(one, devices, stage.population, members_at_once(config, stage, devices))

    def fit(population: Population, stage_index: int, step: int) -> Fit:
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(config.seed), _STREAM + stage_index), step)
        keys = jax.random.split(key, BATCHES)
        everyone = jnp.broadcast_to(keys, (stage.population, BATCHES))
        members = population.members
        error, loss = measure(population.hyper, members.controller, members.progress.level, everyone)
        return Fit(np.asarray(error), np.asarray(loss))

    return fit


def cull(config: TrainConfig, stage_index: int, step: int, population: Population, fit: Fit) -> Population:
    """The population with its worst members replaced."""
    stage = config.stages[stage_index]
    count = int(stage.cull * stage.population)
    order = np.lexsort((np.where(np.isfinite(fit.loss), fit.loss, np.inf), fit.error))
    best, worst = order[:count], order[len(order) - count :]
    places = np.arange(stage.population)
    places[worst] = best
    chosen = jax.tree.map(lambda leaf: np.asarray(leaf)[places], population)
    replaced = np.isin(np.arange(stage.population), worst)
    words = f"culling {config.seed} {stage_index} {step}"
    hyper = jittered(config.hyper, chosen.hyper, ~replaced, config.jitter, words)
    members = chosen.members
    progress = members.progress._replace(error=np.where(replaced, np.float32(1), members.progress.error))
    rng = np.random.default_rng([config.seed, stage_index, step])
    controller = _forgetful(config, members.controller, worst, stage.forget, rng)
    return Population(members._replace(controller=controller, progress=progress), hyper)


def _forgetful(config: TrainConfig, controllers: Any, places: np.ndarray, wires: float, rng: np.random.Generator):
    """The controllers, where those at these places have drawn on average so many wires anew, as sharp as the rest."""
    lengths = wiring_of(config.machine).lengths
    weight, bias = controllers.output.weight.copy(), controllers.output.bias.copy()
    for place in places:
        forgotten = np.flatnonzero(np.repeat(rng.random(len(lengths)) < wires / len(lengths), lengths))
        fresh = rng.standard_normal((weight.shape[1], len(forgotten))) * np.std(weight[place])
        weight[place][:, forgotten], bias[place][forgotten] = fresh, 0
    return eqx.tree_at(lambda network: (network.output.weight, network.output.bias), controllers, (weight, bias))
