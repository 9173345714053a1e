"""How the wires lie in shared memory: where each begins, and in which order it has its values.

A wire is a row of weights that begins at a multiple of four: first the weights of values that may be any number, then
those of truth values, then those of constants. The output layer of the controller has its columns in the same order,
with columns of zeros in between, so that its results are the logits where they belong.

Every wire also has a slot, in the order in which the backward pass comes to the wires. Eight neighbouring slots are
read at the same time, so their wires begin in different banks of the memory as far as possible.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache, cached_property
from random import Random

from nram.machine.kernels.common.specification import Support
from nram.machine.wiring import Wiring

QUAD, GROUP, HALF = 4, 8, 16
BANKS = 32
DRAWN = 200  # random orders from which the best is taken


@dataclass(frozen=True)
class Arrangement:
    """The wires of a machine, followed by the halting scalar and the logits of an automaton's next state."""

    wiring: Wiring
    supports: tuple[Support, ...]
    states: int

    @cached_property
    def _order(self) -> list[int]:
        """All values: those that may be any number, truth values, constants."""
        return sorted(range(len(self.supports)), key=lambda v: (self._kind(v), v))

    def _kind(self, value: int) -> int:
        support = self.supports[value]
        return ("all", "truth").index(support) if isinstance(support, str) else 2

    def choices(self, wire: int) -> list[int]:
        """The values that a wire chooses from, in the order of their weights."""
        return [v for v in self._order if v < self.wiring.lengths[wire]]

    def counts(self, wire: int) -> tuple[int, int]:
        """How many of its values may be any number, and how many are truth values."""
        kinds = Counter(self._kind(v) for v in self.choices(wire))
        return kinds[0], kinds[1]

    @cached_property
    def slots(self) -> tuple[int, ...]:
        """The wires in the order in which the backward pass comes to them: registers, then modules from the last on."""
        wire = self.wiring.wires - self.wiring.registers
        found = list(range(wire, self.wiring.wires))
        for module in reversed(self.wiring.modules):
            wire -= module.arity
            found += range(wire, wire + module.arity)
        return tuple(found)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Where each wire begins."""
        return _starts(self.wiring.lengths, self.slots)

    @cached_property
    def end(self) -> int:
        """Where the last wire ends; the halting scalar stands there."""
        return sum(-(-length // QUAD) * QUAD for length in self.wiring.lengths)

    @property
    def state_place(self) -> int:
        return self.end + QUAD

    @property
    def width(self) -> int:
        """The length of the wires and of everything behind them."""
        return self.state_place + self.states if self.states else self.end + 1

    def sources(self, length: int) -> tuple[int, ...]:
        """For each of `length` columns the index of the controller's output that belongs there, or -1."""
        found, first = [-1] * length, 0
        for wire, start in enumerate(self.starts):
            for place, v in enumerate(self.choices(wire), start):
                found[place] = first + v
            first += self.wiring.lengths[wire]
        for number, place in enumerate([self.end, *range(self.state_place, self.state_place + self.states)]):
            found[place] = first + number
        return tuple(found)

    def tables(self, length: int) -> list[tuple[int, ...]]:
        """Two tables with an integer for each of `length` slots. The halves of the first integer are the start and the
        length of the slot's wire. The halves of the second say how many of the wire's values may be any number, and how
        many are truth values. Slots without a wire have length 0."""
        lengths = self.wiring.lengths
        places = [(lengths[wire] << HALF) | self.starts[wire] for wire in self.slots]
        kinds = [(truths << HALF) | dense for dense, truths in map(self.counts, self.slots)]
        rest = (0,) * (length - len(places))
        return [(*places, *rest), (*kinds, *rest)]


@cache
def _starts(lengths: tuple[int, ...], slots: tuple[int, ...]) -> tuple[int, ...]:
    """The best of some random orders; always the same, because the seed is fixed."""
    random = Random(0)
    found, _cost = min((_drawn(lengths, slots, random) for _ in range(DRAWN)), key=lambda drawn: drawn[1])
    return tuple(found[wire] for wire in range(len(lengths)))


def _drawn(lengths: tuple[int, ...], slots: tuple[int, ...], random: Random) -> tuple[dict[int, int], int]:
    """Wires one after the other. The next is always one whose group of eight has the fewest wires in the bank at hand.
    Also returns the cost: how often a bank is read once more because two wires of a group begin in it."""
    taken: Counter[tuple[int, int]] = Counter()
    left, found, free = list(enumerate(slots)), {}, 0
    random.shuffle(left)
    while left:
        bank = free % BANKS
        chosen = min(left, key=lambda wire: taken[wire[0] // GROUP, bank])
        left.remove(chosen)
        taken[chosen[0] // GROUP, bank] += 1
        found[chosen[1]] = free
        free += -(-lengths[chosen[1]] // QUAD) * QUAD
    groups = {group for group, _bank in taken}
    return found, sum(max(count for (other, _), count in taken.items() if other == group) - 1 for group in groups)
