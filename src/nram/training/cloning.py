"""Clones of members: their wires are mutated, and their hyperparameters move a little."""

from __future__ import annotations

import random
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nram.training.config import HyperConfig, StageConfig, TrainConfig
from nram.training.member import Hyper, Member, wiring_of
from nram.training.population import RANGES, Population

TINY = 1e-9  # keeps a quotient finite where a wire's weights do not vary


def clone(
    config: TrainConfig,
    stage_index: int,
    step: int,
    population: Population,
    parents: np.ndarray,
    rng: np.random.Generator,
) -> Population:
    """Each member becomes a mutated clone of its parent, or stays as it is where it is its own parent."""
    stage = config.stages[stage_index]
    cloned = parents != np.arange(stage.population)
    hyper = jax.tree.map(lambda column: np.asarray(column)[parents], population.hyper)
    hyper = jittered(config.hyper, hyper, cloned, config.jitter, f"culling {config.seed} {stage_index} {step}")
    mutations = _draw_mutations(config, stage, cloned, rng)
    members = _mutated(population.members, parents, cloned, mutations, wiring_of(config.machine).lengths)
    return Population(members, hyper)


def jittered(ranges: HyperConfig, hyper: Hyper, moving: np.ndarray, factor: float, seed: str) -> Hyper:
    """The hyperparameters; those of the `moving` members have moved."""
    rng = random.Random(seed)
    columns = []
    for name, column in zip(Hyper._fields, hyper, strict=True):
        column = np.array(column)  # a copy
        for index in np.flatnonzero(moving) if name in RANGES else ():
            column[index] = getattr(ranges, name).jitter(float(column[index]), rng, factor)
        columns.append(column)
    return Hyper(*columns)


class _Mutations(NamedTuple):
    """How clones differ from their parents in the wires."""

    redrawn: np.ndarray  # [members, wires] drawn again, with the spread of the whole layer
    spread: np.ndarray  # [members, wires] the largest spread of the weights; infinite: unchanged
    seed: np.uint32


def _draw_mutations(
    config: TrainConfig, stage: StageConfig, cloned: np.ndarray, rng: np.random.Generator
) -> _Mutations:
    """Which wires the clones draw again, and which become undecided: the old choice stays the first, but only just."""
    lengths = wiring_of(config.machine).lengths
    size = len(cloned), len(lengths)
    redrawn = rng.random(size) < stage.cull.redraw / len(lengths)
    spread = np.full(size, np.inf, np.float32)
    if stage.cull.soften:
        share = np.exp(rng.uniform(np.log(1 / len(lengths)), np.log(stage.cull.soften), (len(cloned), 1)))
        softened = rng.random(size) < share
        # Every clone softens at least one wire, so that none is a plain copy.
        softened[np.arange(len(cloned)), rng.integers(len(lengths), size=len(cloned))] |= ~np.any(softened, axis=1)
        fresh_layer = 1 / np.sqrt(config.machine.hidden)
        spread = np.where(softened, rng.uniform(0, fresh_layer, (len(cloned), 1)), spread).astype(np.float32)
    clones, seed = cloned[:, None], rng.integers(2**32, dtype=np.uint32)
    return _Mutations(redrawn & clones, np.where(clones, spread, np.inf), seed)


@partial(jax.jit, static_argnames=("lengths",))
def _mutated(
    members: Member, parents: np.ndarray, cloned: np.ndarray, mutations: _Mutations, lengths: tuple[int, ...]
) -> Member:
    """Copies of the parents. Clones among them have mutated wires, and the average of their error starts again."""
    members = jax.tree.map(lambda leaf: leaf[parents], members)
    controller: Any = members.controller
    weight, bias = controller.output.weight, controller.output.bias
    wire_of = np.repeat(np.arange(len(lengths)), lengths)  # by logit
    logits = len(wire_of)  # the outputs after these decide on halting
    wires = weight[..., :logits]
    softened = jnp.minimum(1.0, mutations.spread / (_deviations(wires, np.array(lengths)) + TINY))
    factor = jnp.where(jnp.isinf(mutations.spread), 1.0, softened)[:, wire_of]
    redrawn = mutations.redrawn[:, wire_of]
    fresh = jax.random.normal(jax.random.key(mutations.seed), wires.shape) * jnp.std(weight, axis=(1, 2), keepdims=True)
    wires = jnp.where(redrawn[:, None], fresh, wires * factor[:, None])
    biases = jnp.where(redrawn, 0.0, bias[:, :logits] * factor)
    changed = weight.at[..., :logits].set(wires), bias.at[:, :logits].set(biases)
    controller = eqx.tree_at(lambda network: (network.output.weight, network.output.bias), controller, changed)
    progress = members.progress._replace(error=jnp.where(cloned, 1.0, members.progress.error))
    return members._replace(controller=controller, progress=progress)


def _deviations(weights: Array, lengths: np.ndarray) -> Array:
    """The standard deviation of every wire's weights, [members, wires], of weights [members, hidden, logits].

    By plain sums over padded wires, because sums over segments differ from call to call on a GPU.
    """
    within = np.arange(np.max(lengths))[None]
    ends = np.cumsum(lengths)
    used = within < lengths[:, None]
    logits = np.where(used, (ends - lengths)[:, None] + within, 0)

    def means(each: Array) -> Array:
        return jnp.sum(jnp.where(used[None], jnp.mean(each, axis=1)[:, logits], 0.0), axis=2) / lengths[None]

    middle = np.repeat(np.arange(len(lengths)), lengths)
    return jnp.sqrt(means((weights - means(weights)[:, None, middle]) ** 2))
