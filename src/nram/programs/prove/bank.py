"""Terms by their values: which term equals what was seen at all recorded points?

Terms are made level by level from simpler ones: sums, cells and values of functions at sums, sums with those and so on.
Of terms with the same values at all points, only the first is kept. The values of a level are one matrix; a term itself
is made when it is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nram.programs.prove.runs import Inputs
from nram.tasks.claim import SIZE
from nram.terms import INVALID, Term, call, choose, evaluated, number

OFFSETS = (0, 1, -1, 2, -2, 3, -3)
FIRST_CALLS = 300  # that are added to other terms
PAIRED_CALLS = 120  # that are added to one another
MOST_POINTS = 100  # by which terms are told apart; what is found is then compared at all points
FIRST_ROOM = 1 << 14  # terms


class Bank:
    """Terms over some atoms, with their values at the points."""

    def __init__(self, inputs: Inputs, instances: np.ndarray, atoms: Mapping[Term, np.ndarray]):
        """`instances` says to which input each point belongs; `atoms` has their values at the points."""
        rng = np.random.default_rng(0)
        self.inputs, self.instances, self.all_atoms = inputs, instances, atoms
        self.chosen = np.sort(rng.permutation(len(instances))[:MOST_POINTS])
        _, self.functions = inputs.at(instances[self.chosen])
        self.sizes = inputs.sizes(instances[self.chosen])
        self.weights = rng.integers(1, 2**62, len(self.chosen), dtype=np.int64)
        self.values = np.empty((FIRST_ROOM, len(self.chosen)), np.int64)
        self.recipes: list[tuple[str, int, int]] = []
        """How each term is made: a kind, the number of a term, and another one or an offset."""
        self.atoms = [*map(number, (0, 1, 2)), *atoms]
        self.names = list(self.functions)
        self.found: dict[int, int] = {}
        constants = [np.full(len(self.chosen), value, np.int64) for value in (0, 1, 2)]
        rows = np.stack([*constants, *(array[self.chosen].astype(np.int64) for array in atoms.values())])
        simple = self._add("atom", rows, np.arange(len(rows)))
        shifted = self._shifted(simple, OFFSETS[1:])
        near = np.concatenate([simple, shifted[: 2 * len(simple)]])
        variables = simple[simple > 2]
        pairs = self._pairs(variables, variables, minus=True)
        linear = np.concatenate([simple, shifted, pairs, self._shifted(pairs, OFFSETS[1:])])
        calls = self._calls(np.concatenate([linear, self._wrapped(linear)]))
        moved = self._shifted(calls, (1, -1, 2))
        sums = self._pairs(calls[:FIRST_CALLS], near)
        wrapped = self._wrapped(np.concatenate([moved, sums]))
        second = self._calls(np.concatenate([calls, moved, sums, wrapped]))
        self._shifted(second, (1, -1))
        self._shifted(self._pairs(calls[:PAIRED_CALLS], calls[:PAIRED_CALLS]), (1, 2))

    def find(self, values: np.ndarray) -> Term | None:
        """The simplest term with these values."""
        index = self.found.get(int(self._hashes(values[self.chosen][None].astype(np.int64))[0]))
        if index is None:
            return None
        term = self.term(index)
        return term if (self.everywhere(term) == values).all() else None

    def cover(self, values: np.ndarray, most: int) -> list[Term] | None:
        """Few terms of which one has the right value at each point, or None."""
        found: list[Term] = []
        hits = self.values[: len(self.recipes)] == values[self.chosen]
        missing = np.ones(len(self.chosen), bool)
        while missing.any():
            counts = (hits & missing).sum(axis=1)
            best = int(counts.argmax())
            if len(found) == most or not counts[best]:
                return None
            found.append(self.term(best))
            missing &= ~hits[best]
        right = np.logical_or.reduce([self.everywhere(term) == values for term in found])
        return found if right.all() else None

    def everywhere(self, term: Term) -> np.ndarray:
        """The values of a term at all points."""
        numbers, functions = self.inputs.at(self.instances)
        return evaluated(term, {}, functions, {**numbers, **self.all_atoms})

    def term(self, index: int) -> Term:
        """The term with this number."""
        kind, first, second = self.recipes[index]
        match kind:
            case "atom":
                return self.atoms[first]
            case "shift":
                return self.term(first) + second
            case "plus":
                return self.term(first) + self.term(second)
            case "minus":
                return self.term(first) - self.term(second)
            case "wrap":
                inner = self.term(first)
                return choose(inner < SIZE, choose(inner < 0, inner + SIZE, inner), inner - SIZE)
            case _:
                return call(self.names[second], self.term(first))

    def _hashes(self, rows: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return rows @ self.weights

    def _add(self, kind: str, rows: np.ndarray, first: np.ndarray, second: np.ndarray | None = None) -> np.ndarray:
        """Add terms with these values, and return the numbers of those that are new and have a value everywhere."""
        second = np.zeros(len(rows), np.int64) if second is None else second
        kept, start = [], len(self.recipes)
        for i, key in enumerate(self._hashes(rows).tolist()):
            if key not in self.found:
                self.found[key] = start + len(kept)
                kept.append(i)
        end = start + len(kept)
        if end > len(self.values):
            more = np.empty((2 * end, self.values.shape[1]), np.int64)
            more[:start] = self.values[:start]
            self.values = more
        self.values[start:end] = rows[kept]
        self.recipes += [(kind, int(first[i]), int(second[i])) for i in kept]
        return start + np.flatnonzero(self.values[start:end].min(axis=1, initial=0) > INVALID // 2)

    def _shifted(self, terms: np.ndarray, offsets: tuple[int, ...]) -> np.ndarray:
        second = np.repeat(np.array(offsets), len(terms))
        first = np.tile(terms, len(offsets))
        return self._add("shift", self.values[first] + second[:, None], first, second)

    def _pairs(self, some: np.ndarray, others: np.ndarray, minus: bool = False) -> np.ndarray:
        first, second = np.repeat(some, len(others)), np.tile(others, len(some))
        added = self._add("plus", self.values[first] + self.values[second], first, second)
        if not minus:
            return added
        return np.concatenate([added, self._add("minus", self.values[first] - self.values[second], first, second)])

    def _wrapped(self, terms: np.ndarray) -> np.ndarray:
        """Terms modulo M, where that makes a difference."""
        rows = self.values[terms]
        outside = ((rows >= self.sizes) | (rows < 0)).any(axis=1)
        rows, terms = rows[outside], terms[outside]
        return self._add(
            "wrap", np.where(rows < 0, rows + self.sizes, np.where(rows < self.sizes, rows, rows - self.sizes)), terms
        )

    def _calls(self, terms: np.ndarray) -> np.ndarray:
        """All functions of the first term, then of the second, and so on."""
        rows = np.stack([function(self.values[terms]) for function in self.functions.values()], axis=1)
        first = np.repeat(terms, len(self.names))
        second = np.tile(np.arange(len(self.names)), len(terms))
        return self._add("call", rows.reshape(len(first), len(self.chosen)), first, second)


def affine(target: np.ndarray, columns: list[np.ndarray]) -> tuple[int, list[int]] | None:
    """Whole numbers with target = constant + factors * columns at all points, or None."""
    matrix = np.stack([np.ones(len(target)), *columns], axis=1).astype(float)
    found, *_ = np.linalg.lstsq(matrix, target.astype(float), rcond=None)
    factors = np.rint(found).astype(np.int64)
    if np.abs(factors).max() > 50 or not np.array_equal(matrix.astype(np.int64) @ factors, target):
        return None
    return int(factors[0]), [int(factor) for factor in factors[1:]]


def independent(columns: Mapping[Term, np.ndarray]) -> tuple[list[Term], dict[Term, Term]]:
    """A basis of the columns, and the other columns as terms of it. Earlier columns come into the basis first."""
    basis: list[Term] = []
    dependent: dict[Term, Term] = {}
    for name, column in columns.items():
        found = affine(column, [columns[one] for one in basis])
        if found is None:
            basis.append(name)
            continue
        constant, factors = found
        term = number(constant)
        for one, factor in zip(basis, factors, strict=True):
            term = term + one * factor
        dependent[name] = term
    return basis, dependent
