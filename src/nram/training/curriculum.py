"""The curriculum of the paper's appendix: a level per member decides how hard its examples are."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from nram.training.config import CurriculumConfig

MOVING_AVERAGE = 0.9  # weight of the past in the moving average of the error


class Progress(NamedTuple):
    """Where a member stands in its curriculum."""

    level: Array  # D
    error: Array  # moving average of the share of wrong examples since the last raise
    raised: Array  # the step of the last raise


def first_level(level: int) -> Progress:
    return Progress(jnp.int32(level), jnp.float32(1), jnp.int32(0))


def draw_complexity(key: Array, level: Array, low: int, high: int, count: int) -> Array:
    """Complexities of `count` examples, in low..high: 10% uniform over all, 25% uniform up to D + e,
    65% exactly D + e, with e geometric (success probability 1/2, from 0)."""
    kinds, uniforms, geometric = jax.random.split(key, 3)
    kind = jax.random.uniform(kinds, (count,))
    extra = jax.random.geometric(geometric, 0.5, (count,)) - 1
    reach = jnp.minimum(level + extra, high)
    top = jnp.where(kind < 0.10, high, reach)
    u = jax.random.uniform(uniforms, (count,))
    uniform = low + jnp.floor(u * (top - low + 1)).astype(jnp.int32)
    return jnp.where(kind < 0.35, jnp.minimum(uniform, top), reach).astype(jnp.int32)


def advance(progress: Progress, wrong: Array, step: Array, high: int, config: CurriculumConfig) -> Progress:
    """Count a batch's share of wrong examples and raise the level when it has become small."""
    error = MOVING_AVERAGE * progress.error + (1 - MOVING_AVERAGE) * wrong
    due = (error < config.threshold) & (step - progress.raised >= config.interval) & (progress.level < high)
    return Progress(
        jnp.where(due, progress.level + 1, progress.level),
        jnp.where(due, 1.0, error),
        jnp.where(due, step, progress.raised).astype(jnp.int32),
    )
