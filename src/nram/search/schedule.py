"""The schedule of a search: which structures are tried, how, and for how long. Small structures come first, and chains
grow longer from round to round."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from nram.search.structure import Structure

CHAINS_OF_ONE_STRUCTURE = 4  # in a round, where only one structure is searched: work for several cores
# The modules in an order in which programs use them: follow a pointer, move on, compute the next address, read there,
# compare, count, write. In the paper's order the one READ comes first and comparisons come after ADD, so many rows need
# the modules two or three times. A row with these sixteen is shorter and has fewer wires to try.
FLOW = (
    *("READ", "INC", "DEC", "ADD", "SUB", "READ", "LESS-THAN", "LESS-OR-EQUAL-THAN", "EQUALITY-TEST", "MIN", "MAX"),
    *("INC", "DEC", "ADD", "WRITE", "WRITE"),
)
STRUCTURES = (
    Structure(2, 1),
    Structure(3, 1),
    Structure(3, modules=FLOW),
    Structure(4, modules=FLOW),
    Structure(4, 2, modules=FLOW),
    Structure(2, states=2, modules=FLOW),
    Structure(3, states=2, modules=FLOW),
    Structure(5, modules=FLOW),
)
# For modules that the user names: nothing is known about their order.
FOR_OTHER_MODULES = (
    Structure(2, 1),
    Structure(3, 1),
    Structure(3, 2),
    Structure(4, 2),
    Structure(4, 3),
    Structure(2, 1, states=2),
    Structure(3, 2, states=2),
    Structure(5, 2),
)
# For columns with names, whose lists a program walks along. The paper's order has one READ in a row, before all else,
# and ADD before the comparisons. To compare each value with another and to count takes two READs, a comparison and then
# an ADD. Rows with just these modules are found with a hundredth of the candidates.
COMPARE_AND_COUNT = ("READ", "READ", "INC", "EQUALITY-TEST", "ADD", "WRITE")
COMPARE_AND_CHOOSE = ("READ", "READ", "INC", "LESS-THAN", "EQUALITY-TEST", "ADD", "MIN", "MAX", "WRITE")
FOR_LISTS = (
    Structure(2, 1),
    Structure(3, 1, modules=COMPARE_AND_COUNT),
    Structure(3, 1),
    Structure(3, 1, modules=COMPARE_AND_CHOOSE),
    *STRUCTURES[2:],
)
EVERY_ROUND = 5  # so many take part in every round; the others, which add little, in three rounds of nine
FIRST_STRUCTURES = 3  # so many are tried in the first round, and one more in every further round
PROMISING = 3  # so many structures, those that came nearest, go on with all chains of a round; the others with one
FIRST_BUDGET = 100_000  # candidates of a chain in the first round; it doubles from round to round
BUDGET_PER_GENE = 1_000  # the most: longer chains gain less than more chains


class Strategy(NamedTuple):
    """How a chain is run. Costs and temperatures are in wholly wrong instances."""

    small_first: bool
    """Start with the instances that have the fewest steps; otherwise with any."""
    at_first: int
    """Instances in play from the start."""
    length_cost: float
    """Of an operation."""
    hot: float
    cold: float
    """The temperatures at the start and at the end."""
    goes_on: bool = False
    """Start at the best table that earlier chains with a price on length have left; otherwise at a random one."""
    known: bool = False
    """Start at a program of the library."""


# A chain on few small instances learns quickly what to do, and where the answer is a single cell nothing else works.
# But it also learns tricks that only work on those instances. Many instances of every size, with a price on every
# operation, make tricks expensive: such chains find the loops that compare and choose. Neither strategy finds all that
# the other finds. The tables that the second leaves are often nearly right, so later chains warm the best one up again,
# as long as this gains something.
BY_STEPS = Strategy(small_first=True, at_first=16, length_cost=0.0, hot=0.3, cold=0.1)
BY_LENGTH = Strategy(small_first=False, at_first=32, length_cost=0.03, hot=0.3, cold=0.1)
FURTHER = BY_LENGTH._replace(hot=0.25, goes_on=True)
REPAIR = Strategy(small_first=False, at_first=64, length_cost=0.01, hot=0.15, cold=0.05)
FIRST_USEFUL = 3  # from this round on, chains are long enough to leave tables from which others can go on
ENOUGH_GAIN = 0.97  # of the cost of a table, what is left after a round in which going on has paid


class Chain(NamedTuple):
    """One run of the annealer."""

    structure: Structure
    strategy: Strategy
    budget: int
    seed: int


def strategies_of(round_index: int, single_answers: bool = False, going_on: bool = False) -> tuple[Strategy, ...]:
    """The strategies of a structure in a round. `going_on` says that there is a table from which chains may go on.

    Where every answer is a single cell, only chains on small instances get anywhere.
    """
    if single_answers:
        if round_index < FIRST_USEFUL:
            return BY_STEPS, BY_STEPS
        return BY_STEPS, BY_STEPS, BY_STEPS._replace(known=True), BY_STEPS, BY_LENGTH
    if round_index < FIRST_USEFUL:
        return BY_STEPS, BY_LENGTH
    if going_on:
        return BY_STEPS, FURTHER, FURTHER
    return BY_STEPS, BY_LENGTH, BY_LENGTH._replace(known=True), BY_LENGTH, BY_LENGTH


def still_promising(
    round_index: int,
    before: Mapping[Structure, float],
    now: Mapping[Structure, float],
    tried: Collection[Structure],
) -> set[Structure]:
    """The structures whose best table is kept after a round, so that chains go on from it.

    Given are the costs of the best tables before the round and after it, and the structures that had chains. Where
    chains went on from a table and gained nothing, new ones begin at random.
    """
    if round_index < FIRST_USEFUL:
        return set()
    return {
        structure
        for structure, cost in now.items()
        if structure not in before or structure not in tried or cost < ENOUGH_GAIN * before[structure]
    }


def outdone(costs: Mapping[Structure, float]) -> set[Structure]:
    """Given the least cost of any table so far of each structure: all but those that came nearest."""
    return set(sorted(costs, key=lambda structure: costs[structure])[PROMISING:])


def round_of_chains(
    round_index: int,
    seed: int,
    structures: Sequence[Structure],
    strategies: Callable[[Structure], Sequence[Strategy]],
    passed_over: Collection[Structure] = (),
) -> list[Chain]:
    """The chains of one round. They depend on nothing but these arguments.

    Once chains are long, structures that are passed over have a single chain, of the first strategy.
    """
    chains = []
    for index, structure in enumerate(structures[: FIRST_STRUCTURES + round_index]):
        if index >= EVERY_ROUND and round_index % 9 >= 3:
            continue
        budget = min(FIRST_BUDGET << min(round_index, 40), BUDGET_PER_GENE * structure.free_genes)
        chosen = strategies(structure)
        if structure in passed_over and round_index >= FIRST_USEFUL:
            chosen = chosen[:1]
        for strategy in chosen:
            chain_seed = ((seed * 1_000_003 + round_index) * 1009 + len(chains)) % 2**62
            chains.append(Chain(structure, strategy, budget, chain_seed))
    return chains
