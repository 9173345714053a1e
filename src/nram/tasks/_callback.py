"""Instances for compiled code from a task that has no traced sampler: XLA calls back into Python for them.

This module imports JAX: it is imported only where something is traced.
"""

from __future__ import annotations

import logging
import random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nram.errors import NramError
from nram.tasks.base import Task, TracedInstance

failures: list[NramError] = []
"""What tasks have refused inside compiled code: XLA passes on neither the kind of an error nor its words alone."""


def sample_by_callback(task: Task, key: Array, n: Any, memory_size: int) -> TracedInstance:
    """One instance from the plain sampler, seeded with the key: the same key gives the same instance.

    However many axes it is mapped over, each call back draws a whole batch.
    """

    def draw(bits: Array, complexities: Array) -> tuple[np.ndarray, ...]:
        try:
            return _draw(task, np.asarray(bits), np.asarray(complexities), memory_size)
        except NramError as error:
            failures.append(error)
            logging.getLogger("jax._src.callback").disabled = True  # it would print the stack of calls
            raise

    integers, flags = (jax.ShapeDtypeStruct((memory_size,), kind) for kind in (jnp.int32, jnp.bool_))
    shapes = (integers, integers, flags, flags)
    bits, complexity = jax.random.key_data(key), jnp.asarray(n, jnp.int32)
    return TracedInstance(*jax.pure_callback(draw, shapes, bits, complexity, vmap_method="broadcast_all"))


def _draw(task: Task, bits: np.ndarray, complexities: np.ndarray, memory_size: int) -> tuple[np.ndarray, ...]:
    """The arrays of a `TracedInstance`, with the axes of the complexities before their own."""
    shape = (*complexities.shape, memory_size)
    starts, outputs = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    cells, scored = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
    for place in np.ndindex(complexities.shape):
        rng, n = random.Random(int.from_bytes(bits[place].tobytes(), "little")), int(complexities[place])
        instance = task.solved(task.sample_input(rng, n, memory_size), n)
        starts[place], outputs[place] = instance.input, instance.output
        cells[place][instance.cells] = True
        scored[place][instance.scored] = True
    return starts, outputs, cells, scored
