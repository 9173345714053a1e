"""The two losses of the paper, entropy and time, for one example."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from nram.limits import wrong_instances
from nram.machine import Controller, Options, Wiring, run_soft
from nram.machine.distributions import DOUBT, limited_log
from nram.machine.soft import SoftState, Step
from nram.tasks.base import GivenInstance, TracedInstance


class Outcome(NamedTuple):
    """How one example went."""

    loss: Array  # without the entropy and time terms
    entropy: Array  # mean per wire and step, up to the step limit
    time: Array  # expected number of steps until it stops / step limit
    error: Array  # wrong cells / cells that should be modified
    exact: Array  # whether every output cell is right
    state_entropy: Array | None = None  # mean of registers and memory; only training with `state_penalty` computes it


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
    with_state: bool = False,
    dtype=jnp.float32,
) -> Outcome:
    """Run the soft machine on an instance and compare. `with_state` also measures the entropy of its values."""
    share = cell_shares(instance, scored_weight).astype(dtype)
    cells = jnp.arange(instance.output.shape[0])

    def observe(step: Step) -> tuple[Array, Array | None]:
        likelihoods = step.state.memory[cells, instance.output]
        return likelihoods, state_entropy(step.state, options.epsilon) if with_state else None

    episode = run_soft(controller, wiring, instance.input, limit, steps, options, observe, dtype)
    observed, state_entropies = episode.observed
    if kind == "expected":
        likelihoods = observed + DOUBT if options.straight_through else observed
        per_step = -jnp.sum(limited_log(likelihoods, options.epsilon) * share[None, :], axis=-1)
        loss = jnp.sum(episode.finish * per_step)
    else:
        mixed = jnp.sum(episode.finish[:, None] * observed, axis=0)
        loss = -jnp.sum(limited_log(mixed, options.epsilon) * share)
    running = jnp.arange(steps) < limit
    # Both entropies are means over the steps up to the limit, however likely it is that the machine still runs.
    entropy = jnp.sum(episode.entropy * running) / limit
    of_state = jnp.sum(state_entropies * running) / limit if with_state else None
    time = jnp.sum(episode.finish * jnp.arange(1, steps + 1)) / limit
    error, exact = compare(jnp.argmax(episode.output, axis=-1), instance)
    return Outcome(loss, entropy, time, error, exact, of_state)


@jax.checkpoint  # keeps the distributions alone for the backward pass, not four arrays of their size
def state_entropy(state: SoftState, epsilon: Array | float) -> Array:
    """The mean entropy of a register and that of a memory cell, half and half.

    So a register weighs the same at every memory size. In one mean, the cells would outweigh the few registers.
    """
    means = [jnp.mean(-jnp.sum(x * limited_log(x, epsilon), axis=-1)) for x in (state.registers, state.memory)]
    return (means[0] + means[1]) / 2


def cell_shares(instance: TracedInstance, scored_weight: float) -> Array:
    """The weight of each cell in the loss, which is a mean over the output cells."""
    share = instance.cells * jnp.where(instance.scored, scored_weight, 1.0)
    return share / jnp.sum(share)


def compare(memory: Any, instance: TracedInstance | GivenInstance) -> tuple[Any, Any]:
    """The paper's error (the right way round) and whether every output cell is right. Arrays of NumPy or JAX."""
    error = ((memory != instance.output) & instance.scored).sum(-1) / instance.scored.sum(-1)
    return error, ~wrong_instances(memory, instance.output, instance.cells)
