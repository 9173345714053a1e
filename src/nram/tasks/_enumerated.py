"""What the tasks share where they list every input: values, blocks at all addresses, linked lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, permutations, product

from nram.tasks.base import Term


def all_values(count: int, largest: int) -> Iterator[tuple[int, ...]]:
    """All ways to draw `count` values of 1..largest."""
    return product(range(1, largest + 1), repeat=count)


def all_placements(count: int, width: int, first: int, memory_size: int) -> Iterator[tuple[int, ...]]:
    """All addresses that `_plain.place_blocks` can draw."""
    items = memory_size - first - count * (width - 1)
    for chosen in combinations(range(items), count):
        yield from permutations(first + item + before * (width - 1) for before, item in enumerate(chosen))


def memory_of(cells: Iterable[tuple[int, int]], memory_size: int) -> list[int]:
    """A memory with these values at these addresses and 0 elsewhere."""
    memory = [0] * memory_size
    for address, value in cells:
        memory[address] = value
    return memory


def list_cells(nodes: Sequence[Term], values: Sequence[Term]) -> list[tuple[Term, Term]]:
    """Addresses and values of a linked list: its head in cell 0, and its nodes `next, value`."""
    cells = [(0, nodes[0])]
    for node, following, value in zip(nodes, [*nodes[1:], 0], values, strict=True):
        cells += [(node, following), (node + 1, value)]
    return cells
