"""The review of examples: what they leave open, in sentences. A program may do anything there and still fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import factorial, log, prod
from statistics import median

from nram.display import counted
from nram.learning.columns import Bound, Columns, Record, bound_of, columns_of
from nram.learning.parts import FEW_OF_A_SIZE, by_size
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
    def numbers(self) -> dict[str, list[tuple[int, int, int]]]:
        """The numbers of every column, each with the size and the cells of its example.

        Pointers that a layout writes are in no column. Memories of an unknown form are one column.
        """
        records = self.records
        if not records or not records[0]:
            records = [{"": one.instance.input} for one in self.examples]
        found: dict[str, list[tuple[int, int, int]]] = {name: [] for name in records[0]}
        for record, example in zip(records, self.examples, strict=True):
            for name, value in record.items():
                numbers = value if isinstance(value, list) else [value]
                found[name] += [(number, example.size, example.cells) for number in numbers]
        return found

    @cached_property
    def bounds(self) -> dict[str, Bound]:
        return {name: bound_of(points) for name, points in self.numbers.items() if points}

    @cached_property
    def highest(self) -> dict[str, int]:
        """The largest value of every column whose values do not follow the size, as indices do."""
        return {name: bound.high for name, bound in self.bounds.items() if not bound.by_size}

    @cached_property
    def low_values(self) -> dict[str, int]:
        """The columns whose values stay so low that it cannot be chance, though the memories allow larger ones."""
        found = {}
        for name, high in self.highest.items():
            points = [point for point in self.numbers[name] if point[0]]
            chance = prod(min(1.0, high / (cells - 1)) for _, _, cells in points)
            if chance < CHANCE and name not in self.constant and not _follows(points, high):
                found[name] = high
        return found

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
    def never_zero(self) -> list[str]:
        """The columns of the user with numbers that vary and are never 0."""
        if not self.named:
            return []
        seen = {name: [one[name] for one in self.records] for name in self.records[0] if name not in self.lists}
        return [name for name, numbers in seen.items() if 0 not in numbers and name not in self.constant]

    @cached_property
    def never_empty(self) -> list[str]:
        """The columns of the user with lists whose lengths vary and are never 0."""
        return [name for name, seen in self.lengths.items() if self.named and len(seen) > 1 and 0 not in seen]

    def as_long_as(self, name: str) -> list[str]:
        """The columns whose lists are as long as those of this column, in every example. It is one of them."""
        lengths = {other: list(map(len, lists)) for other, lists in self.lists.items()}
        return [other for other in lengths if lengths[other] == lengths[name]]

    @cached_property
    def lengths(self) -> dict[str, set[int]]:
        return {name: set(map(len, lists)) for name, lists in self.lists.items()}

    def where(self, name: str) -> str:
        """In which column a value is, in words: none if all columns have the same largest value."""
        if len({high for high in self.highest.values() if high}) < 2:
            return ""
        return f" from {name}" if name in self.lists and not self.named else f" in {name}"

    def unlike(self, record: Record, cells: int) -> list[str]:
        """In which respects an input is like no example, in words."""
        told = []
        for name, value in record.items():
            high = self.highest.get(name)
            if high is not None and max(value if isinstance(value, list) else [value], default=0) > high:
                told.append(f"a value above {high}{self.where(name)}")
            if isinstance(value, list):
                if not value and name in self.never_empty:
                    told.append(f"an empty list in {name}")
                elif len(value) not in self.lengths[name]:
                    told.append(f"{len(value)} {'value' if len(value) == 1 else 'values'} in {name}")
                order = self.orders.get(name)
                if order and value != sorted(value, reverse=order == "descending"):
                    told.append(f"{name} not {order}")
                if name in self.distinct and len(set(value)) < len(value):
                    told.append(f"equal values in {name}")
            elif value != self.constant.get(name, value):
                told.append(f"{name} not {self.constant[name]}")
            elif value == 0 and name in self.never_zero:
                told.append(f"{name} = 0")
        if not min(self.memories) <= cells <= max(self.memories):
            told.append(f"a memory of {cells} cells")
        return list(dict.fromkeys(told))


def _follows(points: Sequence[tuple[int, int, int]], high: int) -> bool:
    """Whether the size or the number of cells bounds the numbers of points more tightly than their largest does."""
    widths = len(points) * log(high)
    for which in (1, 2):
        more = max(point[0] - point[which] for point in points)
        if sum(log(point[which] + more) for point in points) < widths - 1e-9:
            return True
    return False


def facts_of(examples: Sequence[Example], layout: Layout | None = None) -> Facts:
    return Facts(tuple(examples), columns_of(examples, layout))


def review(facts: Facts) -> list[str]:
    """What the examples leave open, each with what to add."""
    told = []
    most = max(facts.memories)
    for name, high in facts.low_values.items():
        larger = "larger values" if facts.named else f"values up to {most - 1}"
        told.append(
            f"no value{facts.where(name)} is above {high}, though the memories have up to {most} cells: "
            f"add examples with {larger}"
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
    told += [f"{name} is never 0: add examples where it is, unless it cannot be" for name in facts.never_zero]
    told += [f"no list in {name} is empty: add examples, unless it cannot be" for name in facts.never_empty]
    return list(dict.fromkeys(told + _about_outputs(facts)))


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
    if not fixed:
        return []
    values = ", ".join(str(min(seen[cell])) for cell in fixed)
    what = f"cell {fixed[0]} is" if len(fixed) == 1 else f"cells {_numbers(fixed)} are"
    return [f"{what} {values} in every output: a program may write that without looking"]


def _numbers(numbers: Sequence[int]) -> str:
    named = ", ".join(map(str, numbers[:MOST_NAMED]))
    return f"{named} and {counted(len(numbers) - MOST_NAMED, 'other')}" if len(numbers) > MOST_NAMED else named
