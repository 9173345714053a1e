"""Examples as columns: the numbers and lists in their memories, by the file's layout or inferred from the memories."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Protocol

from nram.errors import UsageError
from nram.tasks.base import Instance
from nram.tasks.example_files import Example, size_of
from nram.tasks.layout import Layout

Record = dict[str, int | list[int]]
"""The inputs of an example, by the name of each column."""

FARTHEST_BLOCK = 6  # cells before the list in a memory without a layout
LEAST_SIZES = 3  # different ones, before a number that always follows the size is believed to follow it


class Columns(Protocol):
    """Reads records from memories and makes memories from records."""

    named: bool
    """Whether the names are those of the user."""

    def size(self, memory: Sequence[int]) -> int:
        """The size of an example with this input."""
        ...

    def record(self, memory: Sequence[int]) -> Record: ...

    def memory(self, record: Record, like: Sequence[int], room: int) -> list[int] | None:
        """A memory with this record, with as many cells more than needed as the memory `like`, and `room` more."""
        ...

    def results(self, start: Sequence[int], end: Sequence[int]) -> Record:
        """What counts in a memory at the end, by name."""
        ...

    def answer(self, start: Sequence[int], end: Sequence[int]) -> tuple[list[int], list[int]]:
        """The expected memory if `end` is right, and the addresses that count."""
        ...


def columns_of(examples: Sequence[Example], layout: Layout | None) -> Columns | None:
    """The columns of examples; None if it is not known which addresses count in other memories."""
    return LayoutColumns(layout) if layout is not None else _inferred([example.instance for example in examples])


@dataclass(frozen=True)
class LayoutColumns:
    """The columns of a layout."""

    layout: Layout
    named = True

    def size(self, memory: Sequence[int]) -> int:
        return self.layout.size_of(self.record(memory))

    def record(self, memory: Sequence[int]) -> Record:
        return self.layout.given(memory)

    def memory(self, record: Record, like: Sequence[int], room: int) -> list[int] | None:
        try:
            spare = len(like) - self.layout.least_memory(self.record(like))
            return self.layout.memory(record, self.layout.least_memory(record) + spare + room)
        except UsageError:  # a list that its 0 would end, or a memory that the layout limits
            return None

    def results(self, start: Sequence[int], end: Sequence[int]) -> Record:
        return self.layout.results(start, end)

    def answer(self, start: Sequence[int], end: Sequence[int]) -> tuple[list[int], list[int]]:
        return self.layout.answer(start, self.results(start, end))


Rule = Callable[[int, int], int]
"""From the size and the number of cells to a number."""


@dataclass(frozen=True)
class PlainCells:
    """Memories without a form that is recognised, as those of linked lists: all that can be added is room."""

    cells: Callable[[int, int], Sequence[int]]
    """From the size and the number of cells to the addresses that count."""
    known: Callable[[int, int], bool]
    """Whether the addresses that count are known for a size and a number of cells."""
    named = False

    def size(self, memory: Sequence[int]) -> int:
        return size_of(memory)

    def record(self, memory: Sequence[int]) -> Record:
        return {}

    def memory(self, record: Record, like: Sequence[int], room: int) -> list[int] | None:
        return [*like, *[0] * room] if self.known(size_of(like), len(like) + room) else None

    def results(self, start: Sequence[int], end: Sequence[int]) -> Record:
        addresses = self.cells(size_of(start), len(start))
        if len(addresses) > 1:
            return {"cells": [end[address] for address in addresses]}
        return {f"cell {address}": end[address] for address in addresses}

    def answer(self, start: Sequence[int], end: Sequence[int]) -> tuple[list[int], list[int]]:
        addresses = list(self.cells(size_of(start), len(start)))
        expected = list(start)
        for address in addresses:
            expected[address] = end[address]
        return expected, addresses


@dataclass(frozen=True)
class InferredColumns(PlainCells):
    """Some cells with numbers, then a list of numbers above 0, then zeros: the form of many memories."""

    start: int
    """Where the list begins."""
    rules: dict[int, Rule]
    """Of the cells before it whose number follows from the size and the number of cells."""
    room_per_item: int
    """Zeros behind the list that every further item needs."""

    @property
    def list_name(self) -> str:
        return f"cell {self.start} on"

    def record(self, memory: Sequence[int]) -> Record:
        head: Record = {f"cell {i}": memory[i] for i in range(self.start) if i not in self.rules}
        return head | {self.list_name: list(memory[self.start : self.start + _run(memory, self.start)])}

    def memory(self, record: Record, like: Sequence[int], room: int) -> list[int] | None:
        values = record[self.list_name]
        assert isinstance(values, list)
        before = _run(like, self.start)
        zeros = len(like) - self.start - before + self.room_per_item * (len(values) - before) + room
        head = [record.get(f"cell {i}", 1) for i in range(self.start)]  # 1: not 0, for the size
        memory = [number for number in head if isinstance(number, int)] + values + [0] * max(zeros, 0)
        size, cells = size_of(memory), len(memory)
        for cell, rule in self.rules.items():
            memory[cell] = rule(size, cells)
        fits = zeros >= 0 and cells >= 3 and all(0 <= number < cells for number in memory) and 0 not in values
        return memory if fits and self.known(size, cells) else None


def _run(memory: Sequence[int], start: int) -> int:
    """How many cells from this address on are not 0."""
    return next((i for i, value in enumerate(memory[start:]) if value == 0), len(memory) - start)


@dataclass(frozen=True)
class Bound:
    """The range of the values in a column."""

    low: int
    high: int
    by_size: bool
    """The highest is the size plus `high`, as for an index."""


def bound_of(points: Sequence[tuple[int, int, int]]) -> Bound:
    """The range of values, from points of value, size and cells.

    Every size and memory has its largest value. The bound that most of them reach is believed: the number of cells, a
    constant, or the size.
    """
    kinds: dict[str, Callable[[int, int, int], int]] = {
        "cells": lambda value, size, cells: value - cells,
        "constant": lambda value, size, cells: value,
        "size": lambda value, size, cells: value - size,
    }
    highest = {kind: max(rest(*point) for point in points) for kind, rest in kinds.items()}
    reached = {kind: {point[1:] for point in points if rest(*point) == highest[kind]} for kind, rest in kinds.items()}
    kind = max(kinds, key=lambda one: len(reached[one]))
    by_size = kind == "size" and len({size for size, _ in reached[kind]}) >= LEAST_SIZES
    low = min(value for value, _, _ in points)
    return Bound(low, highest["size" if by_size else "constant"], by_size)


def _inferred(instances: Sequence[Instance]) -> PlainCells | None:
    counted = _counted_cells(instances)
    if counted is None:
        return None
    memories = [instance.input for instance in instances]
    least = min(map(len, memories))
    for start in range(min(FARTHEST_BLOCK, least)):
        runs = [_run(memory, start) for memory in memories]
        if min(runs) > 0 and all(not any(memory[start + run :]) for memory, run in zip(memories, runs, strict=True)):
            break
    else:
        return PlainCells(*counted)
    rules: dict[int, Rule] = {}
    for cell in range(least):
        rule = rule_for([(memory[cell], size_of(memory), len(memory)) for memory in memories])
        follows = cell < start or (cell == start and min(_run(memory, start) for memory in memories) > 1)
        if rule is None or not follows or (cell < start and not any(memory[cell] for memory in memories)):
            break
        rules[cell] = rule
        start = max(start, cell + 1)
    always = {cell: memories[0][cell] for cell in rules if len({memory[cell] for memory in memories}) == 1}
    shortest = min(_run(memory, start) for memory in memories)
    for cell in range(start, start + shortest - 1):  # indices before the list: numbers apart from its values
        if not bound_of([(memory[cell], size_of(memory), len(memory)) for memory in memories]).by_size:
            break
        start = cell + 1
    for cell, number in always.items():
        if number != start:  # a number that might be another; one that is, is the address of the list
            del rules[cell]
    zeros: dict[int, int] = {}
    for memory in memories:
        length = _run(memory, start)
        zeros[length] = min(zeros.get(length, len(memory)), len(memory) - start - length)
    growing = zeros[max(zeros)] - zeros[min(zeros)]
    return InferredColumns(*counted, start, rules, round(growing / max(1, max(zeros) - min(zeros))))


def rule_for(points: Sequence[tuple[int, int, int]]) -> Rule | None:
    """The rule a + b size + c cells that gives the first number of every point; None if it does not exist."""
    if len({size for _, size, _ in points}) < LEAST_SIZES:
        return None
    for b, c in sorted(product((0, 1, -1, 2), (0, 1, -1)), key=lambda factors: sum(map(abs, factors))):
        offsets = {number - b * size - c * cells for number, size, cells in points}
        if len(offsets) == 1:
            offset = offsets.pop()
            return lambda size, cells: offset + b * size + c * cells
    return None


def _counted_cells(
    instances: Iterable[Instance],
) -> tuple[Callable[[int, int], Sequence[int]], Callable[[int, int], bool]] | None:
    """Which addresses count in a memory that no example has, and where that is known."""
    seen = [(tuple(sorted(one.cells)), size_of(one.input), len(one.input)) for one in instances]
    if len({cells for cells, _, _ in seen}) == 1:
        same = seen[0][0]
        return (lambda size, cells: same), (lambda size, cells: cells > same[-1])
    if all(addresses == tuple(range(cells)) for addresses, _, cells in seen):
        return (lambda size, cells: range(cells)), (lambda size, cells: True)
    if all(addresses == tuple(range(addresses[0], addresses[-1] + 1)) for addresses, _, _ in seen):
        first = rule_for([(addresses[0], size, cells) for addresses, size, cells in seen])
        last = rule_for([(addresses[-1], size, cells) for addresses, size, cells in seen])
        if first is not None and last is not None:
            return (
                lambda size, cells: range(first(size, cells), last(size, cells) + 1),
                lambda size, cells: 0 <= first(size, cells) <= last(size, cells) < cells,
            )
    by_cells = {cells: addresses for addresses, _, cells in seen}
    if all(by_cells[cells] == addresses for addresses, _, cells in seen):
        return (lambda size, cells: by_cells[cells]), (lambda size, cells: cells in by_cells)
    always = sorted(set.intersection(*(set(addresses) for addresses, _, _ in seen)))
    return ((lambda size, cells: always), (lambda size, cells: cells > always[-1])) if always else None
