"""Say with fewer and narrower ranges which addresses a program may change.

The guess lists the cells of each write by themselves, so it often says the same twice. And it knows the end of an array
only where all runs that it has seen end alike.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import permutations

from nram.programs.prove.deadline import check_time
from nram.programs.prove.instances import ground_instances
from nram.programs.prove.invariant import Invariant, Range
from nram.programs.prove.obligations import Problem
from nram.programs.prove.questions import Solver, Translated
from nram.tasks.claim import SIZE, N
from nram.terms import Term, both, negated, shown

OFFSETS = range(-2, 14)  # from n or 2n, where a range may end

Proves = Callable[[Sequence[Term], Sequence[Term]], bool]
"""Whether the goals follow from what is known."""


def fewer_changes(problem: Problem, invariant: Invariant, deadline: float) -> Invariant:
    """The invariant with only the ranges that are needed, none up to the end of the memory if less is enough."""
    translated: Translated = {}

    def proves(known: Sequence[Term], goals: Sequence[Term]) -> bool:
        check_time(deadline)
        solver = Solver(deadline, translated)
        solver.add(*known, negated(both(*goals)))
        return solver.check() == "unsat"

    def enough(changes: tuple[Range, ...]) -> bool:
        obligations = (problem.changes_at(replace(invariant, changes=changes), i) for i in range(len(invariant.places)))
        return all(one is None or proves((*one.known, *one.facts), one.goals) for one in obligations)

    changes = _narrower(_needed(invariant.changes, enough), enough)
    return replace(invariant, changes=_joined(problem, changes, proves))


def _needed(changes: tuple[Range, ...], enough: Callable[[tuple[Range, ...]], bool]) -> tuple[Range, ...]:
    """Leave out what the others cover: single cells before ranges, long terms first."""

    def length(change: Range) -> tuple[bool, int]:
        return change.first != change.last, -len(shown(change.first) + shown(change.last))

    for change in sorted(changes, key=length):
        fewer = tuple(one for one in changes if one != change)
        if enough(fewer):
            changes = fewer
    return changes


def _narrower(changes: tuple[Range, ...], enough: Callable[[tuple[Range, ...]], bool]) -> tuple[Range, ...]:
    """Let ranges that go up to the end of the memory end at n or 2n, or a few cells later."""
    for change in changes:
        others = tuple(one for one in changes if one != change)
        for factor in (1, 2) if change.last == SIZE - 1 else ():
            ends = [(*others, replace(change, last=factor * N + offset)) for offset in OFFSETS]
            if enough(ends[-1]):
                first = bisect_left(ends, True, key=enough)  # where an end is enough, a later one is too
                return _narrower(ends[first], enough)
    return changes


def _joined(problem: Problem, changes: tuple[Range, ...], proves: Proves) -> tuple[Range, ...]:
    """Make one range of two that overlap or are neighbours, for every n and every input."""
    for one, other in permutations(changes, 2):
        goals = (one.first <= other.first, other.first <= one.last + 1, one.last <= other.last)
        if proves(ground_instances(problem.assumptions, goals), goals):
            rest = tuple(change for change in changes if change not in (one, other))
            return _joined(problem, (*rest, Range(one.first, other.last)), proves)
    return changes
