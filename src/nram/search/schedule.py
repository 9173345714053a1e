"""Which structures are tried, how, and for how long: small ones first, chains that double, each its fair share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nram.search.structure import Structure

CHAINS_OF_ONE_STRUCTURE = 4  # in a round, where there is only one: work for several cores
STRUCTURES = (
    Structure(2, 1),
    Structure(3, 1),
    Structure(3, 2),
    Structure(4, 2),
    Structure(4, 3),
    Structure(2, 1, states=2),
    Structure(3, 2, states=2),
    Structure(5, 2),
)
EVERY_ROUND = 5  # so many of them; the others, which hold little that these do not, take part in three rounds of nine
FIRST_STRUCTURES = 3  # of them are tried in the first round, and one more in every further round
FIRST_BUDGET = 100_000  # candidates of a chain in the first round
BUDGET_PER_GENE = 1_000  # longer chains gain less than further ones


class Manner(NamedTuple):
    """How a chain goes about it."""

    small_first: bool
    """Whether it begins with the instances of least steps; otherwise with any."""
    at_first: int
    """Instances it begins with."""
    length_cost: float
    """Of an operation, in wholly wrong instances."""
    hot: float
    cold: float
    """The temperatures at its ends, in wholly wrong instances."""
    goes_on: bool = False
    """Whether it begins at the best table that chains with a price on length have left; otherwise at random."""


# From few small instances a chain learns quickly what to do, and where each answer is one cell there is no other way
# up. But it also learns tricks that only work there. Many instances of every size, and a price on every operation,
# make tricks dear: so are loops that compare and choose found. Neither finds what the other does. What such chains end
# with is often nearly right, and worth warming up again.
BY_STEPS = Manner(small_first=True, at_first=16, length_cost=0.0, hot=0.3, cold=0.1)
BY_LENGTH = Manner(small_first=False, at_first=32, length_cost=0.03, hot=0.3, cold=0.1)
FURTHER = BY_LENGTH._replace(hot=0.25, goes_on=True)
# From some round on chains are long enough to leave something worth it, and rounds come in threes: the first has many
# chains from the start, the other two go on from the best that these left.
FIRST_OF_THREES = 3
REPAIR = Manner(small_first=False, at_first=64, length_cost=0.01, hot=0.15, cold=0.05)


class Chain(NamedTuple):
    """One run of the annealer."""

    structure: Structure
    manner: Manner
    budget: int
    seed: int


def begins_anew(number: int) -> bool:
    """Whether what chains left before this round is forgotten."""
    return number >= FIRST_OF_THREES and number % 3 == FIRST_OF_THREES % 3


def manners_of(number: int) -> tuple[Manner, ...]:
    if number < FIRST_OF_THREES:
        return BY_STEPS, BY_LENGTH
    if begins_anew(number):
        return BY_STEPS, BY_LENGTH, BY_LENGTH, BY_LENGTH, BY_LENGTH
    return BY_STEPS, FURTHER, FURTHER


def round_of_chains(
    number: int, seed: int, structures: Sequence[Structure], manners: Sequence[Manner] | None = None
) -> list[Chain]:
    """The chains of one round. They depend on nothing but these arguments."""
    chains = []
    for place, structure in enumerate(structures[: FIRST_STRUCTURES + number]):
        if place >= EVERY_ROUND and number % 9 >= 3:
            continue
        most = BUDGET_PER_GENE * structure.rows * structure.width
        for manner in manners_of(number) if manners is None else manners:
            chain_seed = ((seed * 1_000_003 + number) * 1009 + len(chains)) % 2**62
            chains.append(Chain(structure, manner, min(FIRST_BUDGET << number, most), chain_seed))
    return chains
