"""Instances for compiled code from a task without a traced sampler: XLA calls back into Python for them."""

from __future__ import annotations

import logging
import random
from typing import TYPE_CHECKING, Any

from nram.errors import NramError
from nram.lazy import jax, jnp, np

if TYPE_CHECKING:
    from nram.tasks.base import Task

failures: list[NramError] = []
"""Errors that tasks raised inside compiled code: XLA passes on neither their kind nor their message alone."""


def sample_by_callback(task: Task, key: jax.Array, n: Any, memory_size: int) -> tuple[jax.Array, ...]:
    """The arrays of a `TracedInstance` from the plain sampler, seeded with the key: the same key, the same instance.

    However many axes it is mapped over, each call back draws a whole batch.
    """

    def draw(bits: jax.Array, complexities: jax.Array) -> tuple[np.ndarray, ...]:
        try:
            return _draw(task, np.asarray(bits), np.asarray(complexities), memory_size)
        except NramError as error:
            failures.append(error)
            logging.getLogger("jax._src.callback").disabled = True  # it would print a stack trace
            raise

    integers, flags = (jax.ShapeDtypeStruct((memory_size,), kind) for kind in (jnp.int32, jnp.bool_))
    shapes = (integers, integers, flags, flags)
    bits, complexity = jax.random.key_data(key), jnp.asarray(n, jnp.int32)
    return jax.pure_callback(draw, shapes, bits, complexity, vmap_method="broadcast_all")


def _draw(task: Task, bits: np.ndarray, complexities: np.ndarray, memory_size: int) -> tuple[np.ndarray, ...]:
    """The arrays of a `TracedInstance`, with the axes of the complexities before their own."""
    shape = (*complexities.shape, memory_size)
    starts, outputs = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    cells, scored = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
    for index in np.ndindex(complexities.shape):
        rng, n = random.Random(int.from_bytes(bits[index].tobytes(), "little")), int(complexities[index])
        instance = task.solved(task.sample_input(rng, n, memory_size), n)
        starts[index], outputs[index] = instance.input, instance.output
        cells[index][instance.cells] = True
        scored[index][instance.scored] = True
    return starts, outputs, cells, scored
