"""What the plain samplers share: arrays, blocks at random addresses, linked lists."""

from __future__ import annotations

from random import Random


def random_values(rng: Random, count: int, largest: int) -> list[int]:
    """`count` values, each uniform in 1..largest."""
    return rng.choices(range(1, largest + 1), k=count)


def padded(cells: list[int], memory_size: int) -> list[int]:
    """The cells at the start of a memory that is 0 elsewhere."""
    return cells + [0] * (memory_size - len(cells))


def place_blocks(rng: Random, count: int, width: int, first: int, memory_size: int) -> list[int]:
    """Addresses of blocks that do not overlap, all in `first`..memory_size-1, in random order.

    Shrink every block to one item: a placement is then a choice of which items are blocks, and every
    choice is equally likely.
    """
    items = memory_size - first - count * (width - 1)
    chosen = sorted(rng.sample(range(items), count))
    addresses = [first + item + before * (width - 1) for before, item in enumerate(chosen)]
    rng.shuffle(addresses)
    return addresses


def write_linked_list(rng: Random, n: int, memory: list[int]) -> list[int]:
    """Write a list of n nodes `next, value` from address 3 on, and its head to cell 0; return the values."""
    nodes = place_blocks(rng, n, width=2, first=3, memory_size=len(memory))
    values = random_values(rng, n, len(memory) - 1)
    memory[0] = nodes[0]
    for node, following, value in zip(nodes, [*nodes[1:], 0], values, strict=True):
        memory[node] = following
        memory[node + 1] = value
    return values
