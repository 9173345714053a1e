"""Helpers of the tasks on plain integers: random and enumerated values, blocks at addresses, linked lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, permutations, product
from random import Random

from nram.tasks.base import Term


def random_values(rng: Random, count: int, largest: int) -> list[int]:
    """`count` values, each uniform in 1..largest."""
    return rng.choices(range(1, largest + 1), k=count)


def all_values(count: int, largest: int) -> Iterator[tuple[int, ...]]:
    """All ways to draw `count` values of 1..largest."""
    return product(range(1, largest + 1), repeat=count)


def padded(cells: Sequence[int], memory_size: int) -> list[int]:
    """The cells at the start of a memory that is 0 elsewhere."""
    return [*cells, *[0] * (memory_size - len(cells))]


def memory_of(cells: Iterable[tuple[int, int]], memory_size: int) -> list[int]:
    """A memory with these values at these addresses and 0 elsewhere."""
    memory = [0] * memory_size
    for address, value in cells:
        memory[address] = value
    return memory


# A placement of blocks that do not overlap, all in first..memory_size-1: shrink every block to one item. A placement is
# then a choice of which items are blocks.


def place_blocks(rng: Random, count: int, width: int, first: int, memory_size: int) -> list[int]:
    """Random addresses of blocks, in random order. Every placement is equally likely."""
    items = memory_size - first - count * (width - 1)
    addresses = _addresses(sorted(rng.sample(range(items), count)), width, first)
    rng.shuffle(addresses)
    return addresses


def all_placements(count: int, width: int, first: int, memory_size: int) -> Iterator[tuple[int, ...]]:
    """All addresses that `place_blocks` can draw."""
    items = memory_size - first - count * (width - 1)
    for chosen in combinations(range(items), count):
        yield from permutations(_addresses(chosen, width, first))


def _addresses(chosen: Sequence[int], width: int, first: int) -> list[int]:
    return [first + item + before * (width - 1) for before, item in enumerate(chosen)]


def list_cells(nodes: Sequence[Term], values: Sequence[Term]) -> list[tuple[Term, Term]]:
    """Addresses and values of a linked list: its head in cell 0, and its nodes `next, value`."""
    cells = [(0, nodes[0])]
    for node, following, value in zip(nodes, [*nodes[1:], 0], values, strict=True):
        cells += [(node, following), (node + 1, value)]
    return cells


def write_linked_list(rng: Random, n: int, memory: list[int]) -> list[int]:
    """Write a random list of n nodes from address 3 on, and its head to cell 0; return the values."""
    nodes = place_blocks(rng, n, width=2, first=3, memory_size=len(memory))
    values = random_values(rng, n, len(memory) - 1)
    for address, value in list_cells(nodes, values):
        memory[address] = value
    return values
