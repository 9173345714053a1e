"""Instances of the plain sampler as arrays, for compiled code."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nram.lazy import jax, jnp, np

if TYPE_CHECKING:
    from nram.tasks.base import Instance, Task

Arrays = tuple[Any, Any, Any, Any]
"""The arrays of a `TracedInstance`."""


def as_arrays(instances: Sequence[Instance]) -> Arrays:
    """Instances of one memory size as arrays [instances, M]."""
    starts = np.array([instance.input for instance in instances], np.int32)
    outputs = np.array([instance.output for instance in instances], np.int32)
    cells, scored = np.zeros(starts.shape, np.bool_), np.zeros(starts.shape, np.bool_)
    for i, instance in enumerate(instances):
        cells[i, instance.cells] = True
        scored[i, instance.scored] = True
    return starts, outputs, cells, scored


def sample_by_keys(task: Task, bits: Any, complexities: Any, memory_size: int) -> Arrays:
    """One instance for each key, given by its bits: the same key, the same instance. The axes of the complexities come
    before M."""
    bits, complexities = np.asarray(bits), np.asarray(complexities)
    seeds = [int.from_bytes(key.tobytes(), "little") for key in bits.reshape(-1, bits.shape[-1])]
    instances = [
        task.solved(task.sample_input(random.Random(seed), n, memory_size), n)
        for seed, n in zip(seeds, complexities.ravel().tolist(), strict=True)
    ]
    starts, outputs, cells, scored = (array.reshape(*complexities.shape, memory_size) for array in as_arrays(instances))
    return starts, outputs, cells, scored


def sample_by_callback(task: Task, key: jax.Array, n: Any, memory_size: int) -> Arrays:
    """One instance inside compiled code, which calls back into Python for it.

    However many axes it is mapped over, each call back draws a whole batch. Training never comes here: on a GPU the
    device would wait for thousands of draws at every step (`nram.training.pools`).
    """

    def draw(bits: jax.Array, complexities: jax.Array) -> Arrays:
        return sample_by_keys(task, bits, complexities, memory_size)

    integers, flags = (jax.ShapeDtypeStruct((memory_size,), kind) for kind in (jnp.int32, jnp.bool_))
    shapes = (integers, integers, flags, flags)
    bits, complexity = jax.random.key_data(key), jnp.asarray(n, jnp.int32)
    return jax.pure_callback(draw, shapes, bits, complexity, vmap_method="broadcast_all")
