"""An invariant of a program: what holds at every moment of every run, whatever n, M and the input are.

A *place* is a row of the program together with the rows carried out just before. Its visits are counted. The invariant
says for every place what holds when a run comes there: conditions on the registers, on the counts of visits, and on a
few memory cells that are followed by name. The rest of the memory has one form for all places: arrays that the program
has written so far, and the input everywhere else.

A fact with k in it holds for every whole number k: `(not (0 <= k < visits4) or 1 <= written1(k))` says that the first
visits4 values that went to the first array are positive. `written1` is one function for the whole run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from nram.programs.ir import Program
from nram.tasks.claim import memory
from nram.terms import Term, both, call, choose, equal, substituted, total, variable, variables

INDEX = variable("k")  # of an element of an array that the program writes; in a fact, any whole number
TAIL = re.compile(r"written[0-9]+")  # the functions of `Array.tail`

RowId = tuple[int, int]
"""The state of a row, and its number there."""


@dataclass(frozen=True)
class History:
    """What tells places with the same row apart."""

    last: int = 1
    """So many rows that were carried out before."""
    seen: bool = False
    """All rows that were carried out so far, in any order."""
    toggle: RowId | None = None
    """Whether this row was carried out an even or an odd number of times: a program may exchange the roles of two
    registers again and again."""


@dataclass(frozen=True)
class Place:
    """A row, and what was carried out before it."""

    seen: frozenset[RowId]
    """The rows carried out before, if they count."""
    last: tuple[RowId, ...]
    """The last rows carried out before, the oldest first, if they count."""
    odd: bool
    """The row that counts as a toggle was carried out an odd number of times."""
    row: RowId

    def then(self, row: RowId, history: History) -> Place:
        """The place that follows when this row is next."""
        seen = self.seen | {self.row} if history.seen else self.seen
        last = (*self.last, self.row)[-history.last :] if history.last else ()
        return Place(seen, last, self.odd != (self.row == history.toggle), row)


def first_place(row: RowId) -> Place:
    """The place where a run begins."""
    return Place(frozenset(), (), False, row)


@dataclass(frozen=True)
class Cell:
    """A memory cell that is followed by name. Its address depends on the input alone."""

    address: Term

    @property
    def value(self) -> Term:
        """The variable with what it holds now."""
        return variable(f"cell[{self.address!r}]")


@dataclass(frozen=True)
class Array:
    """Cells that the program writes one after the other: the k-th write goes to start + slope k."""

    start: Term
    slope: int
    writers: tuple[tuple[int, int], ...]
    """The writes: index of the place, index of the operation in its row."""
    value: Term
    """Of the k-th write, as a term of k."""

    def tail(self, index: int) -> Term:
        """What the k-th write wrote, for values that no other term says; `index` is that of the array."""
        return call(f"written{index + 1}", INDEX)

    def position(self, address: Term) -> Term:
        """The k that belongs to an address."""
        return (address - self.start) * self.slope

    def written(self, visits: list[Term]) -> Term:
        """How many cells have been written."""
        return total(*((visits[place], 1) for place, _ in self.writers))


@dataclass(frozen=True)
class Range:
    """Addresses that the program may change, from the first to the last. Both depend on the input alone."""

    first: Term
    last: Term


@dataclass(frozen=True)
class Invariant:
    """What holds at every place."""

    history: History
    halts: bool
    """It proves that every run halts within T(n); otherwise, that the result is right from T(n) on."""
    places: tuple[Place, ...]
    facts: tuple[tuple[Term, ...], ...]
    """Of each place."""
    cells: tuple[Cell, ...]
    arrays: tuple[Array, ...]
    changes: tuple[Range, ...]

    @property
    def visits(self) -> list[Term]:
        """The variables that count the visits of each place, without the present one."""
        return [visits_of(index) for index in range(len(self.places))]

    @property
    def steps(self) -> Term:
        """How many steps were carried out so far."""
        return total(*((count, 1) for count in self.visits))

    def memory_now(self, address: Term, visits: list[Term], cells: list[Term]) -> Term:
        """What a cell holds when the places were visited so often and the cells by name hold this."""
        found = memory(address)
        for array in self.arrays:
            k = array.position(address)
            covered = both(k >= 0, k < array.written(visits))
            found = choose(covered, substituted(array.value, {INDEX: k}), found)
        for cell, value in zip(reversed(self.cells), reversed(cells), strict=True):
            found = choose(equal(address, cell.address), value, found)
        return found


def visits_of(index: int) -> Term:
    """The variable that counts the visits of a place."""
    return variable(f"visits{index + 1}")


def is_about_every_k(fact: Term) -> bool:
    """Whether the fact holds for every whole number in place of k."""
    return INDEX.parts[0] in variables([fact])


def register_variables(program: Program) -> list[Term]:
    """Registers have any names: those that could mean something else here are put in brackets."""
    usual = re.compile(r"r[0-9]+")
    return [variable(name if usual.fullmatch(name) else f"register[{name}]") for name in program.registers]
