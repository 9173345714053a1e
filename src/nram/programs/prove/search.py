"""Find an invariant that proves the claim: guess with one kind of history after the other.

Nothing here has to be trusted: what is found becomes a certificate, which is checked by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from nram.programs.prove.changes import fewer_changes
from nram.programs.prove.deadline import OutOfTime, check_time
from nram.programs.prove.guess import Guess
from nram.programs.prove.houdini import Houdini
from nram.programs.prove.invariant import History, Invariant
from nram.programs.prove.obligations import Problem
from nram.programs.prove.runs import Recorded, explore, record


@dataclass(frozen=True)
class Attempt:
    """What came of a guess."""

    invariant: Invariant | None
    """None: the time was over before there was one."""
    failures: tuple[str, ...]
    """The obligations that were not proven."""
    hopeless: bool = False
    """They would not even follow from all facts that were guessed."""


def find_invariant(problem: Problem, deadline: float, progress: Callable[[str], None]) -> Attempt:
    """Guess with one kind of history after the other, until the claim is proven. Otherwise the best attempt.

    `deadline` is a value of time.monotonic(). It is kept within a second or two.
    """
    best: Attempt | None = None
    try:
        for attempt in _attempts(problem, deadline, progress):
            if best is None or _rank(attempt) < _rank(best):
                best = attempt
            if not attempt.failures:
                break
    except OutOfTime:
        pass
    return best or Attempt(None, ("the whole claim: no guess was finished in the time",))


def _attempts(problem: Problem, deadline: float, progress: Callable[[str], None]) -> Iterator[Attempt]:
    """One guess after the other, as long as there is time."""
    recorded = record(problem.program, problem.task, problem.limit, deadline)
    tried = plans(recorded)
    for number, (history, compare) in enumerate(tried, 1):
        progress(f"guess {number} of {len(tried)}")
        check_time(deadline)
        guess = Guess(problem.program, problem.task, problem.limit, recorded, history, compare, deadline)
        if guess.unexplained and number > 1:
            continue  # no form of the memory
        yield tried_guess(problem, guess.invariant(), deadline)
        if number == 1:
            explore(recorded, problem.task, problem.limit, deadline)


def _rank(attempt: Attempt) -> tuple[bool, int]:
    return attempt.hopeless, len(attempt.failures)  # a proof comes first: nothing fails, so it is not hopeless


def plans(recorded: Recorded) -> list[tuple[History, bool]]:
    """What to try, one after the other: how places are told apart, and whether cells are compared."""
    plain = [History(), History(0, seen=True)]
    rows = recorded.depending_rows()
    toggles = [History(last, toggle=row) for last in (0, 1) for row in rows]
    compared = [*toggles, History(), History(1, seen=True)]
    return [*((one, False) for one in plain), *((one, True) for one in compared), (History(2), False)]


def tried_guess(problem: Problem, guess: Invariant, deadline: float) -> Attempt:
    """The part of a guess that proves itself, and of that the part that the claim needs."""
    houdini = Houdini(problem, guess, deadline)
    failures = houdini.refuted()
    if failures:
        return Attempt(guess, failures, hopeless=True)
    houdini.drop()
    failures = houdini.failures()
    if failures:
        return Attempt(houdini.invariant(), failures)
    try:
        return Attempt(fewer_changes(problem, houdini.needed_part(), deadline), ())
    except OutOfTime:  # it is proven all the same, with facts that it does not need
        return Attempt(houdini.invariant(), ())
