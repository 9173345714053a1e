"""Leave out of an invariant the addresses that the program may change, where the others are enough.

The guess lists the cells of each write by themselves, so it often says the same twice.
"""

from __future__ import annotations

from dataclasses import replace

from nram.programs.prove.deadline import check_time
from nram.programs.prove.invariant import Invariant, Range
from nram.programs.prove.obligations import Obligation, Problem
from nram.programs.prove.questions import Solver, Translated
from nram.terms import both, negated, shown


def fewer_changes(problem: Problem, invariant: Invariant, deadline: float) -> Invariant:
    """The invariant with only the ranges that are needed. Single cells are left out before ranges, long terms first."""
    translated: Translated = {}

    def proven(one: Obligation) -> bool:
        solver = Solver(deadline, translated)
        solver.add(*one.known, *one.facts, negated(both(*one.goals)))
        return solver.check() == "unsat"

    def length(change: Range) -> tuple[bool, int]:
        return change.first != change.last, -len(shown(change.first) + shown(change.last))

    for change in sorted(invariant.changes, key=length):
        check_time(deadline)
        fewer = replace(invariant, changes=tuple(one for one in invariant.changes if one != change))
        obligations = (problem.changes_at(fewer, index) for index in range(len(fewer.places)))
        if all(one is None or proven(one) for one in obligations):
            invariant = fewer
    return invariant
