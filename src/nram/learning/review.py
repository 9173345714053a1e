"""The review of examples: what they leave open, in sentences. A program may do anything there and still fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import factorial, prod
from statistics import median

from nram.learning.columns import Columns, Record, columns_of
from nram.learning.parts import FEW_OF_A_SIZE, by_size, counted
from nram.tasks.example_files import Example
from nram.tasks.layout import Layout

CHANCE = 1e-4  # what varied data would show with a smaller chance is not taken for chance
MOST_NAMED = 8  # sizes in a sentence


@dataclass(frozen=True)
class Facts:
    """What holds for every example, though nothing says that it must."""

    examples: tuple[Example, ...]
    columns: Columns | None

    @property
    def named(self) -> bool:
        """Whether columns have the names of the user."""
        return self.columns is not None and self.columns.named

    @cached_property
    def records(self) -> list[Record]:
        return [] if self.columns is None else [self.columns.record(one.instance.input) for one in self.examples]

    @cached_property
    def lists(self) -> dict[str, list[list[int]]]:
        """The lists of every column that has lists."""
        names = [name for name, value in self.records[0].items() if isinstance(value, list)] if self.records else []
        return {name: [value for one in self.records if isinstance(value := one[name], list)] for name in names}

    @cached_property
    def memories(self) -> set[int]:
        """The numbers of cells."""
        return {example.cells for example in self.examples}

    @cached_property
    def highest(self) -> int:
        """The largest value of any input."""
        return max(max(example.instance.input) for example in self.examples)

    @cached_property
    def low_values(self) -> bool:
        """Whether values stay so low that it cannot be chance, though the memories allow larger ones."""
        high = self.highest
        room = [example.cells - 1 for example in self.examples for value in example.instance.input if value]
        return high < max(self.memories) // 2 and prod(min(1.0, high / most) for most in room) < CHANCE

    @cached_property
    def orders(self) -> dict[str, str]:
        """By the name of a column, the only order in which its lists come."""
        found = {}
        for name, lists in self.lists.items():
            long = [one for one in lists if len(set(one)) > 1]
            unlikely = prod(1 / factorial(len(set(one))) for one in long) < CHANCE
            if unlikely and all(one == sorted(one) for one in long):
                found[name] = "ascending"
            elif unlikely and all(one == sorted(one, reverse=True) for one in long):
                found[name] = "descending"
        return found

    @cached_property
    def distinct(self) -> set[str]:
        """The columns whose lists never hold a value twice."""
        found = set()
        for name, lists in self.lists.items():
            # The chance that values drawn freely, up to the largest of the column, are all different.
            most = max((max(one) for one in lists if one), default=0)
            chance = prod((most - i) / most for one in lists for i in range(1, len(one)) if most > i)
            if chance < CHANCE and all(len(set(one)) == len(one) for one in lists):
                found.add(name)
        return found

    @cached_property
    def constant(self) -> dict[str, int]:
        """The columns with one number that never changes. 0 is no input: results begin so."""
        found = {}
        for name, value in self.records[0].items() if len(self.records) > 1 else ():
            if isinstance(value, int) and value != 0 and all(one[name] == value for one in self.records):
                found[name] = value
        return found

    @cached_property
    def lengths(self) -> dict[str, set[int]]:
        return {name: set(map(len, lists)) for name, lists in self.lists.items()}

    def unlike(self, record: Record, cells: int) -> list[str]:
        """In which respects an input is like no example, in words."""
        told = []
        numbers = [n for value in record.values() for n in (value if isinstance(value, list) else [value])]
        if max(numbers, default=0) > self.highest:
            told.append(f"a value above {self.highest}")
        for name, value in record.items():
            if isinstance(value, list):
                if len(value) not in self.lengths[name]:
                    told.append(f"{len(value)} {'value' if len(value) == 1 else 'values'} in {name}")
                order = self.orders.get(name)
                if order and value != sorted(value, reverse=order == "descending"):
                    told.append(f"{name} not {order}")
                if name in self.distinct and len(set(value)) < len(value):
                    told.append(f"equal values in {name}")
            elif value != self.constant.get(name, value):
                told.append(f"{name} not {self.constant[name]}")
        if not min(self.memories) <= cells <= max(self.memories):
            told.append(f"a memory of {cells} cells")
        return told


def facts_of(examples: Sequence[Example], layout: Layout | None = None) -> Facts:
    return Facts(tuple(examples), columns_of(examples, layout))


def review(facts: Facts) -> list[str]:
    """What the examples leave open, each with what to add."""
    told = []
    if facts.low_values:
        most = max(facts.memories)
        larger = "larger values" if facts.named else f"values up to {most - 1}"
        told.append(
            f"no value is above {facts.highest}, though the memories have up to {most} cells: add examples with "
            f"{larger}"
        )
    if len(facts.memories) == 1:
        told.append(f"all memories have {min(facts.memories)} cells: add examples with more room")
    told += _about_sizes(facts)
    for name, order in facts.orders.items():
        told.append(f"{_named(facts, name)} always in {order} order: add others, unless that is part of the problem")
    for name in sorted(facts.distinct):
        told.append(f"{_named(facts, name)} never equal: add examples with equal values, unless there are none")
    for name, value in facts.constant.items():
        told.append(f"{name} is {value} in every input: add examples with other values, or leave it out")
    return told + _about_outputs(facts)


def _named(facts: Facts, name: str) -> str:
    return f"the values of {name} are" if facts.named else f"the values from {name} are"


def _lists(facts: Facts, name: str) -> str:
    return f"{name} is" if facts.named else f"the list from {name} is"


def _about_sizes(facts: Facts) -> list[str]:
    """Gaps between the sizes, and sizes with few examples. The lengths of lists tell more than sizes, if known."""
    told = []
    for name, lengths in facts.lengths.items():
        if missing := [length for length in range(min(lengths), max(lengths)) if length not in lengths]:
            told.append(f"{_lists(facts, name)} never {_numbers(missing)} long: add such examples to fill the gap")
    groups = by_size(facts.examples)
    sizes = sorted(groups)
    steps = [after - size for size, after in zip(sizes, sizes[1:], strict=False)]
    usual = median(steps) if steps else 1  # sizes may go by twos, as in linked lists
    for size, step in zip(sizes, steps, strict=False):
        if not facts.lengths and step > usual + 1:
            told.append(f"no example has a size between {size} and {size + step}: add some to fill the gap")
    thin = [size for size in sizes if sum(len(groups.get(size + i, ())) for i in (-1, 0, 1)) < FEW_OF_A_SIZE]
    if thin:
        told.append(f"few examples have size {_numbers(thin)}: give at least {FEW_OF_A_SIZE} of each")
    return told


def _about_outputs(facts: Facts) -> list[str]:
    """Output cells that never change from example to example."""
    seen: dict[int, set[int]] = {}
    counts: dict[int, int] = {}
    for example in facts.examples:
        for cell in example.instance.cells:
            changed = example.instance.output[cell] != example.instance.input[cell]
            seen.setdefault(cell, set()).add(example.instance.output[cell])
            counts[cell] = counts.get(cell, 0) + changed
    fixed = [
        cell for cell in sorted(seen) if len(seen[cell]) == 1 and counts[cell] > len(facts.examples) // 2 and cell < 3
    ]
    return [
        f"cell {cell} is {min(seen[cell])} in every output: a program may write that without looking" for cell in fixed
    ]


def _numbers(numbers: Sequence[int]) -> str:
    named = ", ".join(map(str, numbers[:MOST_NAMED]))
    return f"{named} and {counted(len(numbers) - MOST_NAMED, 'other')}" if len(numbers) > MOST_NAMED else named
