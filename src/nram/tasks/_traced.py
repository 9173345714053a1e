"""What the traced samplers share. All shapes are fixed by M, so a part that depends on n is a mask.

This module imports JAX: the task files import it only inside their traced samplers.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from nram.tasks.base import TracedInstance


def addresses(memory_size: int) -> Array:
    """0..M-1, the address of each cell."""
    return jnp.arange(memory_size, dtype=jnp.int32)


def between(first: Array | int, end: Array | int, memory_size: int) -> Array:
    """bool [M]: the cells first..end-1."""
    address = addresses(memory_size)
    return (address >= first) & (address < end)


def random_values(key: Array, count: int, largest: int) -> Array:
    """int32 [count], each uniform in 1..largest."""
    return jax.random.randint(key, (count,), 1, largest + 1, dtype=jnp.int32)


def random_below(key: Array, end: Array | int) -> Array:
    """An int32 scalar, uniform in 0..end-1."""
    return jax.random.randint(key, (), 0, end, dtype=jnp.int32)


def random_order(key: Array, count: Array | int, size: int) -> Array:
    """int32 [size]: 0..count-1 in uniformly random order, then the numbers from count up."""
    drawn = jax.random.bits(key, (size,), jnp.uint32) >> 1  # leaves the largest key to the others
    keys = jnp.where(addresses(size) < count, drawn, jnp.uint32(0xFFFFFFFF))
    return jnp.argsort(keys, stable=True).astype(jnp.int32)


def write(memory: Array, where: Array, values: Array | int, active: Array) -> Array:
    """memory[where[i]] = values[i] for every active i."""
    nowhere = memory.shape[0]
    return memory.at[jnp.where(active, where, nowhere)].set(values, mode="drop")


def place_blocks(key: Array, count: Array | int, width: int, first: Array | int, memory_size: int, most: int) -> Array:
    """int32 [most]: `count` addresses in random order, by the law of `_plain.place_blocks`."""
    items = memory_size - first - count * (width - 1)
    item = random_order(key, items, memory_size)[:most]
    is_block = addresses(most) < count
    before = jnp.sum(is_block[None, :] & (item[None, :] < item[:, None]), axis=1, dtype=jnp.int32)
    return first + item + before * (width - 1)


def write_linked_list(key: Array, n: Array | int, memory: Array) -> tuple[Array, Array, Array]:
    """Write a list of n nodes from address 3 on, and its head to cell 0.

    Returns the memory, and the addresses and values of the nodes in the list's order; only the first n
    of these mean something.
    """
    memory_size = memory.shape[0]
    most = (memory_size - 3) // 2
    place_key, value_key = jax.random.split(key)
    nodes = place_blocks(place_key, n, width=2, first=3, memory_size=memory_size, most=most)
    values = random_values(value_key, most, memory_size - 1)
    position = addresses(most)
    following = jnp.where(position + 1 < n, jnp.roll(nodes, -1), 0)
    memory = write(memory, nodes, following, position < n)
    memory = write(memory, nodes + 1, values, position < n)
    return memory.at[0].set(nodes[0]), nodes, values


def instance(start: Array, cells: Array, answer: Array, scored: Array | None = None) -> TracedInstance:
    """The instance whose output cells take what `answer` (a scalar, or [M]) holds there."""
    output = jnp.where(cells, answer, start)
    return TracedInstance(start, output, cells, cells if scored is None else scored)
