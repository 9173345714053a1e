"""Helpers of the tasks' symbolic forms, which describe all inputs at once in terms of z3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nram.lazy import z3
from nram.tasks.base import SymbolicCase, Term


def variables(name: str, count: int) -> list[Term]:
    return [z3.Int(f"{name}{i}") for i in range(count)]


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
        for index, one in enumerate(addresses)
        for other in addresses[:index]
    ]


def selected(index: Term, values: Sequence[Term]) -> Term:
    """values[index], for an index within the list."""
    chosen = values[-1]
    for position in range(len(values) - 2, -1, -1):
        chosen = z3.If(index == position, values[position], chosen)
    return chosen


def linked_list(n: int, memory_size: Term) -> tuple[list[Term], list[Term], list[Any]]:
    """Addresses and values of the nodes of a list from address 3 on, and the assumptions on them."""
    nodes, values = variables("node", n), variables("value", n)
    return (
        nodes,
        values,
        [
            *within(nodes, 3, memory_size - 2),
            *apart(nodes, width=2),
            *within(values, 1, memory_size - 1),
        ],
    )


def describes(case: SymbolicCase, memory: Sequence[int], output: Sequence[int], cells: Sequence[int]) -> bool:
    """Whether the case includes this input, with this answer in these cells."""
    addresses = range(len(memory))

    def holds(values: Sequence[int], address: Term, value: Term) -> Any:
        return z3.Or(*(z3.And(address == cell, value == values[cell]) for cell in addresses))

    solver = z3.Solver()
    solver.set("ctrl_c", False)  # z3 would take the signal, and answer 'unknown'
    solver.add(*case.assumptions)
    solver.add(*(holds(memory, address, value) for address, value in case.cells))
    solver.add(*(holds(output, address, value) for address, value in case.expected))
    for cell in addresses:
        rest = 0 if case.trash is None else case.trash(cell)
        named = [address == cell for address, _ in case.cells]
        solver.add(z3.Or(*named, memory[cell] == rest))
    for cell in cells:
        solver.add(z3.Or(*(address == cell for address, _ in case.expected)))
    return solver.check() == z3.sat
