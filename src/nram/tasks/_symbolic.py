"""What the tasks share where they describe all inputs at once, in terms of z3.

This module imports z3: the task files import it only inside their functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import z3

from nram.tasks.base import SymbolicCase, Term


def variables(name: str, count: int) -> list[Term]:
    return [z3.Int(f"{name}{i}") for i in range(count)]


def variable(name: str) -> Term:
    return z3.Int(name)


def trash(name: str) -> Any:
    """A value for every address."""
    return z3.Function(name, z3.IntSort(), z3.IntSort())


def within(terms: Sequence[Term], low: Term, high: Term) -> list[Any]:
    """Each term lies in low..high."""
    return [condition for term in terms for condition in (term >= low, term <= high)]


def ascending(terms: Sequence[Term]) -> list[Any]:
    return [one <= following for one, following in zip(terms, terms[1:], strict=False)]


def distinct(terms: Sequence[Term]) -> list[Any]:
    return [z3.Distinct(*terms)] if len(terms) > 1 else []


def apart(addresses: Sequence[Term], width: int) -> list[Any]:
    """Blocks of this width at these addresses do not overlap."""
    return [
        z3.Or(one + width <= other, other + width <= one)
        for place, one in enumerate(addresses)
        for other in addresses[:place]
    ]


def any_of(conditions: Sequence[Any]) -> Any:
    return z3.Or(*conditions)


def either(condition: Any, yes: Term, no: Term) -> Term:
    return z3.If(condition, yes, no)


def selected(index: Term, values: Sequence[Term]) -> Term:
    """values[index], for an index within the list."""
    chosen = values[-1]
    for place in range(len(values) - 2, -1, -1):
        chosen = z3.If(index == place, values[place], chosen)
    return chosen


def smallest(terms: Sequence[Term]) -> Term:
    least = terms[0]
    for term in terms[1:]:
        least = z3.If(term < least, term, least)
    return least


def larger(one: Term, other: Term) -> Term:
    return z3.If(one < other, other, one)


def describes(case: SymbolicCase, memory: Sequence[int], output: Sequence[int], cells: Sequence[int]) -> bool:
    """Whether the case holds this very input, with this answer in these cells."""
    places = range(len(memory))

    def holds(values: Sequence[int], address: Term, value: Term) -> Any:
        return z3.Or(*(z3.And(address == place, value == values[place]) for place in places))

    solver = z3.Solver()
    solver.add(*case.assumptions)
    solver.add(*(holds(memory, address, value) for address, value in case.cells))
    solver.add(*(holds(output, address, value) for address, value in case.expected))
    for place in places:
        rest = 0 if case.trash is None else case.trash(place)
        named = [address == place for address, _ in case.cells]
        solver.add(z3.Or(*named, memory[place] == rest))
    for cell in cells:
        solver.add(z3.Or(*(address == cell for address, _ in case.expected)))
    return solver.check() == z3.sat
