"""Find the part of a guessed invariant that proves itself, and of that the part that the claim needs.

Nothing here has to be trusted: what is found becomes a certificate, which is checked by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from nram.programs.prove.guess import Guess
from nram.programs.prove.invariant import History, Invariant
from nram.programs.prove.obligations import Obligation, Problem
from nram.programs.prove.runs import Recorded, explore, record
from nram.programs.prove.solver import Solver
from nram.terms import TRUE, Term, both, negated


@dataclass(frozen=True)
class Attempt:
    """What came of a guess."""

    invariant: Invariant
    failures: tuple[str, ...]
    """The obligations that were not proven."""


def find_invariant(problem: Problem, deadline: float, progress: Callable[[str], None]) -> Attempt:
    """Guess with one kind of history after the other, until the claim is proven. Otherwise the best attempt."""
    recorded = record(problem.program, problem.task, problem.limit)
    best: Attempt | None = None
    tried = plans(recorded)
    for number, (history, compare) in enumerate(tried, 1):
        progress(f"guess {number} of {len(tried)}")
        if best is not None and time.monotonic() > deadline:
            break
        guess = Guess(problem.program, problem.task, problem.limit, recorded, history, compare)
        attempt = consistent_part(problem, guess.invariant(), deadline)
        if not attempt.failures:
            return Attempt(needed_part(problem, attempt.invariant, deadline), ())
        if best is None:
            explore(recorded, problem.task, problem.limit)
        if best is None or len(attempt.failures) < len(best.failures):
            best = attempt
    assert best is not None
    return best


def plans(recorded: Recorded) -> list[tuple[History, bool]]:
    """What to try, one after the other: how places are told apart, and whether cells are compared."""
    plain = [History(), History(0, seen=True), History(2)]
    toggles = [History(toggle=row) for row in recorded.depending_rows()]
    return [*((one, False) for one in plain), *((one, True) for one in (*toggles, History(), History(1, seen=True)))]


def consistent_part(problem: Problem, invariant: Invariant, deadline: float) -> Attempt:
    """Drop the facts that do not follow, until the rest proves itself (the Houdini algorithm)."""
    facts = [list(one) for one in invariant.facts]

    def drop(obligation: Obligation) -> bool:
        """Whether facts were dropped."""
        assert obligation.target is not None
        before = facts[obligation.target]
        facts[obligation.target] = _proven(obligation, before, deadline)
        return len(facts[obligation.target]) < len(before)

    start = problem.start(invariant)
    if start.target is not None:
        drop(start)
    waiting = dict.fromkeys(range(len(invariant.places)))
    while waiting:
        index = next(iter(waiting))
        del waiting[index]
        now = replace(invariant, facts=tuple(map(tuple, facts)))
        for obligation in problem.at_place(now, index):
            if obligation.target is not None and drop(obligation):
                waiting[obligation.target] = None
                if obligation.target == index:
                    break
    invariant = replace(invariant, facts=tuple(map(tuple, facts)))
    others = [one for one in problem.obligations(invariant) if one.target is None]
    failures = tuple(one.name for one in others if not _holds(one, deadline))
    return Attempt(invariant, failures)


def _proven(obligation: Obligation, facts: list[Term], deadline: float) -> list[Term]:
    """The facts whose goals follow."""
    solver = Solver(deadline)
    solver.add(*obligation.known, *obligation.facts)
    pairs = list(zip(facts, obligation.goals, strict=True))
    while pairs:
        answer = solver.check(negated(both(*(goal for _, goal in pairs))))
        if answer == "unsat":
            break
        wrong = set(solver.false_in_model(goal for _, goal in pairs)) if answer == "sat" else set()
        if not wrong:  # the solver does not know: ask for each
            return [fact for fact, goal in pairs if goal == TRUE or solver.check(negated(goal)) == "unsat"]
        pairs = [pair for i, pair in enumerate(pairs) if i not in wrong]
    return [fact for fact, _ in pairs]


def _holds(obligation: Obligation, deadline: float) -> bool:
    solver = Solver(deadline)
    solver.add(*obligation.known, *obligation.facts)
    return solver.check(negated(both(*obligation.goals))) == "unsat"


def needed_part(problem: Problem, invariant: Invariant, deadline: float) -> Invariant:
    """The facts without which the claim, or another needed fact, would not be proven."""
    needed: list[set[Term]] = [set() for _ in invariant.places]
    every = [(index, one) for index in range(len(invariant.places)) for one in problem.at_place(invariant, index)]
    waiting: list[tuple[int, Obligation, list[Term]]] = []
    for index, one in every:
        if one.target is None:
            waiting.append((index, one, list(one.goals)))
    while waiting:
        index, one, goals = waiting.pop()
        new = {invariant.facts[index][i] for i in _core(one, goals, deadline)} - needed[index]
        needed[index] |= new
        if not new:
            continue
        for source, other in every:
            if other.target == index:
                pairs = zip(invariant.facts[index], other.goals, strict=True)
                waiting.append((source, other, [goal for fact, goal in pairs if fact in new]))
    facts = tuple(
        tuple(fact for fact in facts if fact in kept) for facts, kept in zip(invariant.facts, needed, strict=True)
    )
    return replace(invariant, facts=facts)


def _core(obligation: Obligation, goals: list[Term], deadline: float) -> set[int]:
    """Numbers of facts from which the goals follow; all of them if the solver does not say which."""
    solver = Solver(deadline)
    solver.add(*obligation.known)
    solver.add(negated(both(*goals)))
    return solver.core(obligation.facts)
