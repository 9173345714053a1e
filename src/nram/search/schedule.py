"""Which structures are tried, for how long: small ones first, chains that double, every structure its fair share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nram.search.structure import Structure

STRUCTURES = (
    Structure(2, 1),
    Structure(3, 1),
    Structure(3, 2),
    Structure(4, 1),
    Structure(4, 2),
    Structure(3, 3),
    Structure(2, 1, states=2),
    Structure(5, 2),
    Structure(4, 3),
    Structure(3, 1, states=3),
    Structure(3, 2, states=2),
)
FIRST_STRUCTURES = 3  # of them are tried in the first round, and one more in every further round
FIRST_BUDGET = 100_000  # candidates of a chain in the first round
LARGEST_BUDGET = 25_600_000
TEMPERATURES = ((0.3, 0.1), (0.5, 0.1), (0.15, 0.1))  # hot and cold, in wholly wrong instances


class Chain(NamedTuple):
    """One run of the annealer."""

    structure: Structure
    budget: int
    hot: float
    cold: float
    seed: int


def round_of_chains(number: int, seed: int, structures: Sequence[Structure]) -> list[Chain]:
    """The chains of one round. They depend on nothing but these arguments."""
    budget = min(FIRST_BUDGET << number, LARGEST_BUDGET)
    chains = []
    for place, structure in enumerate(structures[: FIRST_STRUCTURES + number]):
        hot, cold = TEMPERATURES[(number + place) % len(TEMPERATURES)]
        chains.append(Chain(structure, budget, hot, cold, (seed * 1_000_003 + number) * 1009 + place))
    return chains
