"""Clones of members: their wires are mutated, and their hyperparameters move a little."""

from __future__ import annotations

import random
from functools import lru_cache, partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nram.runtime import quick_options
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
    rates = hyper.learning_rate
    hyper = hyper._replace(learning_rate=np.where(cloned, np.abs(rates), rates))  # clones of frozen members train
    hyper = jittered(config.hyper, hyper, cloned, config.jitter, f"culling {config.seed} {stage_index} {step}")
    # As many as the stage ever clones at once, so that this compiles once: places beyond the population are dropped.
    places = np.full(stage.clones, stage.population)
    places[: np.sum(cloned)] = np.flatnonzero(cloned)
    mutations = _draw_mutations(config, stage, rng)
    redraws, lengths = stage.cull.redraw > 0, wiring_of(config.machine).lengths
    members, platforms = population.members, _platforms(population.members.step)
    if len(platforms) > 1 or platforms == [
        "cpu"
    ]:  # XLA copies slowly between cores; one of several GPUs clones as it would alone
        members = jax.tree.map(np.asarray, members)
    run = _compiled("cpu" in platforms, redraws, lengths)
    return Population(run(members, parents, places, mutations), hyper)


def _platforms(leaf: Any) -> list[str]:
    """The platform of every device on which the array lies."""
    return [device.platform for device in leaf.devices()] if isinstance(leaf, Array) else ["cpu"]


@lru_cache(maxsize=16)
def _compiled(quick: bool, redraws: bool, lengths: tuple[int, ...]) -> Any:
    with_clones = partial(_with_clones, redraws=redraws, lengths=lengths)
    return jax.jit(with_clones, compiler_options=quick_options() if quick else None)


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

    redrawn: np.ndarray  # [clones, wires] drawn again, with the spread of the whole layer
    spread: np.ndarray  # [clones, wires] the largest spread of the weights; infinite: unchanged
    seed: np.uint32


def _draw_mutations(config: TrainConfig, stage: StageConfig, rng: np.random.Generator) -> _Mutations:
    """Which wires the clones draw again, and which become undecided: the old choice stays the first, but only just."""
    lengths, count = wiring_of(config.machine).lengths, stage.clones
    size = count, len(lengths)
    redrawn = rng.random(size) < stage.cull.redraw / len(lengths)
    spread = np.full(size, np.inf, np.float32)
    if stage.cull.soften:
        share = np.exp(rng.uniform(np.log(1 / len(lengths)), np.log(stage.cull.soften), (count, 1)))
        softened = rng.random(size) < share
        # Every clone softens at least one wire, so that none is a plain copy.
        softened[np.arange(count), rng.integers(len(lengths), size=count)] |= ~np.any(softened, axis=1)
        fresh_layer = 1 / np.sqrt(config.machine.hidden)
        spread = np.where(softened, rng.uniform(0, fresh_layer, (count, 1)), spread).astype(np.float32)
    return _Mutations(redrawn, spread, rng.integers(2**32, dtype=np.uint32))


def _with_clones(
    members: Member,
    parents: np.ndarray,
    places: np.ndarray,
    mutations: _Mutations,
    *,
    redraws: bool,
    lengths: tuple[int, ...],
) -> Member:
    """Copies of the parents. Those at `places` are clones: their wires are mutated, and the average of their error
    starts again."""
    members = jax.tree.map(lambda leaf: leaf[parents], members)
    controller: Any = members.controller
    weight, bias = (leaf.at[places].get(mode="clip") for leaf in (controller.output.weight, controller.output.bias))
    wire_of = np.repeat(np.arange(len(lengths)), lengths)  # by logit
    logits = len(wire_of)  # the outputs after these decide on halting
    wires = weight[..., :logits]
    softened = jnp.minimum(1.0, mutations.spread / (_deviations(wires, np.array(lengths)) + TINY))
    factor = jnp.where(jnp.isinf(mutations.spread), 1.0, softened)[:, wire_of]
    biases = bias[:, :logits] * factor
    mutated = wires * factor[:, None]
    if redraws:
        redrawn, scale = mutations.redrawn[:, wire_of], jnp.std(weight, axis=(1, 2), keepdims=True)
        fresh = jax.random.normal(jax.random.key(mutations.seed), wires.shape) * scale
        mutated, biases = jnp.where(redrawn[:, None], fresh, mutated), jnp.where(redrawn, 0.0, biases)
    changed = (
        controller.output.weight.at[places, :, :logits].set(mutated, mode="drop"),
        controller.output.bias.at[places, :logits].set(biases, mode="drop"),
    )
    controller = eqx.tree_at(lambda network: (network.output.weight, network.output.bias), controller, changed)
    error = members.progress.error.at[places].set(1.0, mode="drop")
    return members._replace(controller=controller, progress=members.progress._replace(error=error))


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
