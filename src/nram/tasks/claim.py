"""What a task asks for at every complexity and every memory size at once, for proofs.

A claim is written in terms (`nram.terms`): n, M, and the memory at the start as a function of the address. Where the
answer needs a loop, as the node after i hops of a list, the claim names a function of i and says how it continues.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature

from nram.terms import Term, between, both, call, equal, implies, number, variable

N, SIZE = variable("n"), variable("M")


def memory(address: Term | int) -> Term:
    """The cell at this address at the start."""
    return call("memory", address)


@dataclass(frozen=True)
class Assumption:
    """A condition that holds for all whole numbers in place of its variables."""

    variables: tuple[Term, ...]
    condition: Term
    triggers: tuple[Term, ...] = ()
    """Which cells and values of functions suggest what stands for the variables; left out: all in the condition."""


def always(
    condition: Callable[..., Term] | Term, triggers: Callable[..., tuple[Term, ...]] | None = None
) -> Assumption:
    """An assumption; the arguments of a function are its variables."""
    if isinstance(condition, Term):
        return Assumption((), condition)
    given = [name for name, one in signature(condition).parameters.items() if one.default is one.empty]
    names = tuple(variable(f"any_{name}") for name in given)
    return Assumption(names, condition(*names), () if triggers is None else triggers(*names))


def holds_from(least: Term | int, most: Term | int, condition: Callable[[Term], Term]) -> Assumption:
    """The condition holds for all whole numbers from `least` to `most`."""
    return always(lambda i: implies(between(least, i, most), condition(i)))


@dataclass(frozen=True)
class Claim:
    """The assumptions about the input, and what the output cells must hold."""

    assumptions: tuple[Assumption, ...]
    is_output: Callable[[Term], Term]
    """Address -> whether it is an output cell."""
    expected: Callable[[Term], Term]
    """Address of an output cell -> what it must hold at the end."""
    numbers: Mapping[str, Callable[[Sequence[int], int], int]] = field(default_factory=dict)
    """Numbers that the assumptions are about, as the length of a path: (memory, n) -> its value."""
    functions: Mapping[str, Callable[[Sequence[int], int], Sequence[int]]] = field(default_factory=dict)
    """Functions of 0, 1, ... that the assumptions are about: (memory, n) -> their values."""


VALUES_FIT = always(lambda i: between(0, memory(i), SIZE - 1))
"""Every cell holds a number below M."""
NOTHING_OUTSIDE = always(lambda i: between(0, i, SIZE - 1) | equal(memory(i), 0))
"""There are no cells outside 0..M-1. Whatever the function says there, it might as well be 0."""


def positive_from(first: Term | int, last: Term | int, largest: Term | int = SIZE - 1) -> Assumption:
    """The cells of an array, with values from 1 to `largest`."""
    return holds_from(first, last, lambda i: between(1, memory(i), largest))


def zero_from(first: Term | int) -> Assumption:
    """All cells from here to the end hold 0."""
    return holds_from(first, SIZE - 1, lambda i: equal(memory(i), 0))


def linked_list() -> tuple[Assumption, ...]:
    """A list of n nodes `next, value` from address 3 on; node_at(n) is 0."""
    return (
        always(equal(node_at(0), memory(0))),
        always(equal(node_at(N), 0)),
        holds_from(0, N - 1, lambda i: between(3, node_at(i), SIZE - 2)),
        holds_from(0, N - 1, lambda i: equal(memory(node_at(i)), node_at(i + 1))),
        holds_from(0, N - 1, lambda i: between(1, memory(node_at(i) + 1), SIZE - 1)),
        apart(N - 1, 2),
    )


def node_at(i: Term | int) -> Term:
    """The address of the node after i hops."""
    return call("node", i)


def apart(last: Term, width: int) -> Assumption:
    """The nodes 0 to `last` have `width` cells each and do not overlap."""

    def condition(i: Term, j: Term) -> Term:
        apart = (node_at(i) + (width - 1) < node_at(j)) | (node_at(j) + (width - 1) < node_at(i))
        return implies(both(number(0) <= i, i < j, j <= last), apart)

    return always(condition)


def list_nodes(memory: Sequence[int], n: int) -> list[int]:
    """The values of `node`."""
    nodes = [memory[0]]
    for _ in range(n):
        nodes.append(memory[nodes[-1]])
    return nodes
