"""Probes: fresh inputs of the examples' form that fill what the examples leave open. Nobody knows their right outputs.

Programs that fit the examples are compared on them. They are made from the examples alone: values up to the largest
that the memory holds, lists of other lengths, other orders, more room.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from nram.learning.columns import Record
from nram.learning.review import Facts

Limit = Callable[[int, int], int]
"""The step limit of an example, from its size and the number of its cells."""

TRIES = 500
BEYOND = 6  # lists may be so much longer than those of the examples
LONG = (1.5, 2, 3, 4, 6)  # times the longest list: the series on which steps are measured
OF_EACH_LENGTH = 4
OF_EACH_EDGE = 12  # tries with a column that is 0 or empty, where no example has that
MOST_LENGTH = 200
SPARE = (0, 0, 0, 1, 3, 8)  # cells more than in an example


@dataclass(frozen=True)
class Probe:
    """A fresh input."""

    input: list[int]
    steps: int
    """The step limit that an example with this input would have."""
    unlike: tuple[str, ...]
    """In which respects no example is like it."""
    size: int


def make_probes(facts: Facts, limit: Limit, seed: int = 0) -> list[Probe]:
    """Different probes, those most like the examples first, then the smallest."""
    maker = _Maker(facts, Random(seed), limit)
    edges = [None] * TRIES + [name for name in (*facts.never_zero, *facts.never_empty) for _ in range(OF_EACH_EDGE)]
    made = [maker.probe(edge) for edge in edges if facts.records]
    probes = {tuple(one.input): one for one in made if one is not None}
    known = {tuple(example.instance.input) for example in facts.examples}
    fresh = [probe for memory, probe in probes.items() if memory not in known]
    return sorted(fresh, key=lambda probe: (len(probe.unlike), len(probe.input), probe.input))


def make_long_probes(facts: Facts, limit: Limit, seed: int = 0) -> list[Probe]:
    """Probes of growing size with as little room as the examples have: how steps grow is measured on them."""
    maker = _Maker(facts, Random(seed), limit)
    longest = max((max(lengths) for lengths in facts.lengths.values()), default=0)
    lengths = {min(MOST_LENGTH, round(times * longest)) for times in LONG if maker.can_resize}
    made = [maker.long_probe(length) for length in sorted(lengths) for _ in range(OF_EACH_LENGTH)]
    return [probe for probe in made if probe is not None]


class _Maker:
    """Draws records and lays them out as memories."""

    def __init__(self, facts: Facts, rng: Random, limit: Limit):
        self.facts, self.rng, self.limit = facts, rng, limit
        self.can_resize = any(len(one) > 1 for one in facts.lengths.values())
        tight: dict[int, int] = {}
        for index, example in enumerate(facts.examples):
            if example.size not in tight or example.cells < facts.examples[tight[example.size]].cells:
                tight[example.size] = index
        self.tight = list(tight.values())  # the examples with the least room of each size

    def probe(self, edge: str | None = None) -> Probe | None:
        """A probe of about the size of an example. The column `edge` is 0, or empty with all that are as long as it."""
        index = self.rng.randrange(len(self.facts.examples))
        room = self.rng.choice(SPARE)
        cells = self.facts.examples[index].cells + room
        within = self.rng.random() < 0.3  # values as in the examples
        change = (self.can_resize and self.rng.random() < 0.6) * self.rng.randint(-3, BEYOND)
        lengths = {name: len(lists[index]) + change for name, lists in self.facts.lists.items()}
        if edge in lengths:
            lengths |= dict.fromkeys(self.facts.as_long_as(edge), 0)
        return self._laid_out(index, lengths, cells, within, room, edge)

    def long_probe(self, length: int) -> Probe | None:
        index = max(self.tight, key=lambda i: (self.facts.examples[i].size, -i))
        lengths = dict.fromkeys(self.facts.lists, length)
        cells = self.facts.examples[index].cells + length
        return self._laid_out(index, lengths, cells, True, 0)

    def _laid_out(
        self, index: int, lengths: dict[str, int], cells: int, within: bool, room: int, edge: str | None = None
    ) -> Probe | None:
        """A record of these lengths in a memory with as much room as an example has, and `room` more."""
        columns, example = self.facts.columns, self.facts.examples[index]
        least = 0 if edge in lengths else 1
        if columns is None or min(lengths.values(), default=1) < least:
            return None
        record: Record = {}
        for name, value in self.facts.records[index].items():
            bound = self.facts.bounds[name]
            size = example.size + sum(lengths.values()) - sum(len(lists[index]) for lists in self.facts.lists.values())
            most = size + bound.high if bound.by_size else bound.high
            if isinstance(value, list):
                high = min(most, cells - 1) if within else cells - 1
                record[name] = self._list(value, lengths[name], bound.low, high)
            else:  # indices, and cells that are always 0, stay what they are
                high = cells - 1 if most > 0 and not bound.by_size and not within else min(most, cells - 1)
                record[name] = self._number(bound.low, high, record)
        if edge is not None and edge not in lengths:
            record[edge] = 0
        memory = columns.memory(record, example.instance.input, room)
        if memory is None:
            return None
        size = columns.size(memory)
        return Probe(memory, self.limit(size, len(memory)), tuple(self.facts.unlike(record, len(memory))), size)

    def _number(self, low: int, high: int, record: Record) -> int:
        values = [number for value in record.values() if isinstance(value, list) for number in value]
        common = [number for number in values if low <= number <= high]
        if common and self.rng.random() < 0.4:  # programs often look for a number in a list
            return self.rng.choice(common)
        return self.rng.randint(min(low, high), high)

    def _list(self, value: list[int], length: int, low: int, high: int) -> list[int]:
        drawn = [self.rng.randint(min(low, high), high) for _ in range(length)]
        way = self.rng.randrange(5)
        if way == 0:  # some values of the example stay
            drawn[: len(value)] = value[:length]
        elif way == 1:
            drawn = [self.rng.choice(drawn[:2]) for _ in drawn]  # many equal values
        elif way == 2:
            drawn.sort(reverse=self.rng.random() < 0.5)
        return drawn
