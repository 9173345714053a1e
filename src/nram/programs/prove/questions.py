"""Questions for z3 about terms."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

from nram.lazy import z3
from nram.terms import Term

SECONDS = 5.0  # for one question


Translated = dict[Term, Any]
"""Terms for z3. Solvers share them: most questions of a search are about the same terms."""


class Solver:
    """A solver of z3 that takes terms."""

    def __init__(self, deadline: float, known: Translated) -> None:
        self.deadline = deadline
        self.solver = z3.SimpleSolver()  # for many small questions: its parts for large ones take longer
        self.known = known

    def add(self, *conditions: Term) -> None:
        self.solver.add(*(self.term(one) for one in conditions))

    def check(self, *conditions: Term) -> str:
        """Whether the conditions can hold together with what was added: sat, unsat or unknown."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            return "unknown"
        self.solver.set("timeout", max(1, int(1000 * min(SECONDS, left))))
        return str(self.solver.check(*(self.term(one) for one in conditions)))

    def core(self, conditions: Sequence[Term]) -> set[int]:
        """The numbers of conditions that cannot hold together with what was added; all if the solver does not know."""
        self.solver.set("unsat_core", True)
        for number, condition in enumerate(conditions):
            self.solver.assert_and_track(self.term(condition), f"condition{number}")
        if self.check() != "unsat":
            return set(range(len(conditions)))
        return {int(str(name).removeprefix("condition")) for name in self.solver.unsat_core()}

    def false_in_model(self, conditions: Iterable[Term]) -> list[int]:
        """Which of the conditions are false in the model that was found last."""
        model = self.solver.model()
        return [
            number
            for number, condition in enumerate(conditions)
            if not z3.is_true(model.eval(self.term(condition), model_completion=True))
        ]

    def term(self, term: Term) -> Any:
        """The term for z3."""
        found = self.known.get(term)
        if found is None:
            found = self.known[term] = self._made(term)
        return found

    def _made(self, term: Term) -> Any:
        parts = term.parts
        match term.op:
            case "int":
                return z3.IntVal(parts[0])
            case "var":
                return z3.Int(parts[0])
            case "sum":
                return z3.Sum([z3.IntVal(parts[0]), *(factor * self.term(part) for part, factor in parts[1])])
            case "call":
                return z3.Function(parts[0], z3.IntSort(), z3.IntSort())(self.term(parts[1]))
            case "if":
                return z3.If(*map(self.term, parts))
            case "times":
                return self.term(parts[0]) * self.term(parts[1])
            case "mod":
                return self.term(parts[0]) % self.term(parts[1])
            case "div":
                return self.term(parts[0]) / self.term(parts[1])
            case "le":
                return self.term(parts[0]) <= self.term(parts[1])
            case "eq":
                return self.term(parts[0]) == self.term(parts[1])
            case "and":
                return z3.And(*map(self.term, parts))
            case "or":
                return z3.Or(*map(self.term, parts))
            case "not":
                return z3.Not(self.term(parts[0]))
            case _:
                return z3.BoolVal(term.op == "true")
