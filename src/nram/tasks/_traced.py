"""Helpers of the traced samplers. All shapes are fixed by M, so a part that depends on n is a mask."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, NamedTuple

from nram.lazy import jax, jnp
from nram.tasks.base import TracedInstance


class TracedPool(NamedTuple):
    """Examples that are already drawn. Compiled code chooses among them."""

    examples: TracedInstance
    """[examples, M], in groups of one complexity each"""
    complexities: Any
    """int32 [groups], ascending"""
    firsts: Any
    """int32 [groups], where each group begins"""
    counts: Any
    """int32 [groups], how many examples each group has"""

    def nearest(self, n: Any) -> jax.Array:
        """The complexity of what is drawn: the largest one that is at most n, or the smallest."""
        return jnp.asarray(self.complexities)[self._group(n)]

    def _group(self, n: Any) -> jax.Array:
        return jnp.maximum(jnp.searchsorted(jnp.asarray(self.complexities), n, side="right") - 1, 0)

    def draw_complexities(self, key: jax.Array, most: int, count: int) -> jax.Array:
        """Complexities of examples up to `most`, each as likely as the others."""
        kinds = max(1, bisect_right(self.complexities, most))
        return jnp.asarray(self.complexities)[jax.random.randint(key, (count,), 0, kinds)]

    def draw(self, key: jax.Array, n: Any) -> TracedInstance:
        """One example of this complexity."""
        group = self._group(n)
        index = jnp.asarray(self.firsts)[group] + jax.random.randint(key, (), 0, jnp.asarray(self.counts)[group])
        return jax.tree.map(lambda array: jnp.asarray(array)[index], self.examples)


def addresses(memory_size: int) -> jax.Array:
    """0..M-1, the address of each cell."""
    return jnp.arange(memory_size, dtype=jnp.int32)


def between(first: Any, end: Any, memory_size: int) -> jax.Array:
    """bool [M]: the cells first..end-1."""
    address = addresses(memory_size)
    return (address >= first) & (address < end)


def random_values(key: jax.Array, count: int, largest: int) -> jax.Array:
    """int32 [count], each uniform in 1..largest."""
    return jax.random.randint(key, (count,), 1, largest + 1, dtype=jnp.int32)


def random_below(key: jax.Array, end: Any) -> jax.Array:
    """An int32 scalar, uniform in 0..end-1."""
    return jax.random.randint(key, (), 0, end, dtype=jnp.int32)


def random_order(key: jax.Array, count: Any, size: int) -> jax.Array:
    """int32 [size]: 0..count-1 in uniformly random order, then the numbers from count up."""
    drawn = jax.random.bits(key, (size,), jnp.uint32) >> 1  # keeps the largest key for the others
    keys = jnp.where(addresses(size) < count, drawn, jnp.uint32(0xFFFFFFFF))
    return jnp.argsort(keys, stable=True).astype(jnp.int32)


def write(memory: jax.Array, where: jax.Array, values: Any, active: jax.Array) -> jax.Array:
    """memory[where[i]] = values[i] for every active i."""
    nowhere = memory.shape[0]
    return memory.at[jnp.where(active, where, nowhere)].set(values, mode="drop")


def place_blocks(key: jax.Array, count: Any, width: int, first: Any, memory_size: int, most: int) -> jax.Array:
    """int32 [most]: `count` addresses in random order, with the distribution of `_plain.place_blocks`."""
    items = memory_size - first - count * (width - 1)
    item = random_order(key, items, memory_size)[:most]
    is_block = addresses(most) < count
    before = jnp.sum(is_block[None, :] & (item[None, :] < item[:, None]), axis=1, dtype=jnp.int32)
    return first + item + before * (width - 1)


def write_linked_list(key: jax.Array, n: Any, memory: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Write a list of n nodes from address 3 on, and its head to cell 0.

    Returns the memory, and the addresses and values of the nodes in the list's order. Only the first n
    of these belong to the list.
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


def instance(start: jax.Array, cells: jax.Array, answer: jax.Array, scored: jax.Array | None = None) -> TracedInstance:
    """The instance whose output cells take the values of `answer` (a scalar, or [M])."""
    output = jnp.where(cells, answer, start)
    return TracedInstance(start, output, cells, cells if scored is None else scored)
