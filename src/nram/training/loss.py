"""The two losses of the paper, entropy and time, for one example."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from nram.limits import wrong_instances
from nram.machine import Controller, Options, Wiring, run_soft
from nram.machine.distributions import DOUBT, limited_log
from nram.machine.soft import Step
from nram.tasks.base import GivenInstance, TracedInstance


class Outcome(NamedTuple):
    """How one example went."""

    loss: Array  # without the entropy and time terms
    entropy: Array  # mean per wire and step, up to the step limit
    time: Array  # expected number of steps until it stops / step limit
    error: Array  # wrong cells / cells that should be modified
    exact: Array  # whether every output cell is right


def soft_outcome(
    controller: Controller,
    wiring: Wiring,
    instance: TracedInstance,
    limit: Array,
    steps: int,
    options: Options,
    *,
    kind: str = "expected",
    scored_weight: float = 1.0,
    dtype=jnp.float32,
) -> Outcome:
    """Run the soft machine on an instance and compare."""
    share = cell_shares(instance, scored_weight).astype(dtype)
    cells = jnp.arange(instance.output.shape[0])

    def likelihood(step: Step) -> Array:
        return step.state.memory[cells, instance.output]

    episode = run_soft(controller, wiring, instance.input, limit, steps, options, likelihood, dtype)
    if kind == "expected":
        likelihoods = episode.observed + DOUBT if options.straight_through else episode.observed
        per_step = -jnp.sum(limited_log(likelihoods, options.epsilon) * share[None, :], axis=-1)
        loss = jnp.sum(episode.finish * per_step)
    else:
        mixed = jnp.sum(episode.finish[:, None] * episode.observed, axis=0)
        loss = -jnp.sum(limited_log(mixed, options.epsilon) * share)
    running = jnp.arange(steps) < limit
    entropy = jnp.sum(episode.entropy * running) / limit
    time = jnp.sum(episode.finish * jnp.arange(1, steps + 1)) / limit
    error, exact = compare(jnp.argmax(episode.output, axis=-1), instance)
    return Outcome(loss, entropy, time, error, exact)


def cell_shares(instance: TracedInstance, scored_weight: float) -> Array:
    """The weight of each cell in the loss, which is a mean over the output cells."""
    share = instance.cells * jnp.where(instance.scored, scored_weight, 1.0)
    return share / jnp.sum(share)


def compare(memory: Any, instance: TracedInstance | GivenInstance) -> tuple[Any, Any]:
    """The paper's error (the right way round) and whether every output cell is right. Arrays of NumPy or JAX."""
    error = ((memory != instance.output) & instance.scored).sum(-1) / instance.scored.sum(-1)
    return error, ~wrong_instances(memory, instance.output, instance.cells)
