"""Guess facts about all earlier visits of a loop: what stayed positive in each of them.

Where a program goes on after its work is done, the rows that may follow depend on every value that it met or wrote.
Such facts are about every k, the number of an earlier visit.
"""

from __future__ import annotations

from nram.programs.ir import Program
from nram.programs.prove.invariant import INDEX, Array, Place, register_variables, visits_of
from nram.programs.prove.step import row_of
from nram.terms import Term, both, calls, implies, number, substituted, variables


def earlier_visits(program: Program, places: list[Place], arrays: list[Array], facts: list[list[Term]]) -> list[Term]:
    """For programs that write values which no term says: guesses that may hold at any place."""
    found: dict[Term, None] = {}
    for index, array in enumerate(arrays):
        tail = array.tail(index)
        if tail in calls([array.value]):
            for place, _ in array.writers:
                found[_always_positive(tail, place)] = None
    if found:
        for place, own in enumerate(facts):
            for term in _tested(program, places[place], own):
                if set(variables([term])) & {visits_of(place).parts[0]} and calls([term]):
                    found[_always_positive(substituted(term, {visits_of(place): INDEX}), place)] = None
    counts = {visits_of(i).parts[0] for i in range(len(places))}
    return [fact for fact in found if len(counts & set(variables([fact]))) == 1]


def _always_positive(term: Term, place: int) -> Term:
    """The term of k was positive in each earlier visit of the place."""
    return implies(both(number(0) <= INDEX, visits_of(place) > INDEX), term >= 1)


def _tested(program: Program, place: Place, facts: list[Term]) -> list[Term]:
    """What the registers hold that must be positive for the row of this place."""
    wanted = row_of(program, place.row).when
    positive = [name for name, zero in zip(register_variables(program), wanted, strict=True) if zero is False]
    return [fact.parts[1] for fact in facts if fact.op == "eq" and fact.parts[0] in positive]
