"""Which proofs are tried for which sizes, in the time there is."""

from __future__ import annotations

import time

from nram.programs.verify.counterexample import is_confirmed
from nram.programs.verify.findings import Failure, Finding, Part, Skipped
from nram.programs.verify.question import Question
from nram.programs.verify.symbolic import Outcome, prove

SHARE = 1 / 2  # of the time that is left, for one attempt


def prove_sizes(question: Question, *, largest: int, extra: int, seconds: float, beyond: bool) -> Part:
    """Prove the program right for n = smallest, ..., `largest`.

    For each n on all memory sizes at once, and where that does not succeed on M = least, ..., least + extra one by
    one. `beyond`: also under the limits above T(n).
    """
    task = question.task
    prover = _Prover(question, extra, time.monotonic() + seconds, beyond)
    if task.symbolic is None:
        prover.part.skipped.append(
            Skipped("symbolic", (task.min_complexity, None), "", f"the task {task.name} has no symbolic inputs")
        )
        return prover.part
    for n in range(task.min_complexity, largest + 1):
        prover.take(n)
        if prover.part.fails(at_first=True):
            break
        if prover.left <= 0:
            if n < largest:
                prover.part.skipped.append(Skipped("symbolic", (n + 1, largest), "", "out of time"))
            break
    return prover.part


class _Prover:
    def __init__(self, question: Question, extra: int, deadline: float, beyond: bool):
        self.question = question
        self.extra = extra
        self.deadline = deadline
        self.beyond = beyond
        self.part = Part()
        self.hopeless: set[tuple[bool, bool, bool]] = set()
        """Ways of proving that ran out of time at a smaller n: (all memory sizes, beyond T(n), split)."""

    @property
    def left(self) -> float:
        return self.deadline - time.monotonic()

    def take(self, n: int) -> None:
        """Prove what can be proven for n."""
        if self._settle(n, None):
            return
        for more in range(self.extra + 1):
            if self.part.fails(at_first=True) or not self._settle(n, more):
                return

    def _settle(self, n: int, more: int | None) -> bool:
        """Whether all is proven or refuted on the least memory and so much more, or without a number on all sizes."""
        began = time.monotonic()
        where = "every M at once" if more is None else f"M = {self.question.task.least_memory(n) + more}"
        shown = self._attempt(n, more, beyond=False)
        more_to_show = self.beyond and not self.part.fails(at_first=False) and shown.proven not in ((), ("every",))
        best = shown if not more_to_show else self._stronger(shown, self._attempt(n, more, beyond=True))
        if best.proven:
            under = "every limit" if best.proven == ("every",) else ", ".join(best.proven)
            self.question.progress(f"symbolic: n = {n}, {where}: proven under {under}")
            extra = None if more is None else (more, more)
            seconds = time.monotonic() - began
            self.part.findings.append(Finding("symbolic", (n, n), extra, None, True, best.proven, best.halts, seconds))
        if best.why:
            what = "all limits" if not best.proven else "limits above T(n)"
            self.question.progress(f"symbolic: n = {n}, {where}: {what} not proven: {best.why}")
            self.part.skipped.append(Skipped("symbolic", (n, n), f"{where}, {what}", best.why))
        return not best.why

    def _stronger(self, first: Outcome, second: Outcome) -> Outcome:
        """What is known after the second attempt, which went further than the first."""
        if second.proven:
            return second
        return Outcome(first.proven, first.halts, second.refuted, "" if second.refuted else second.why)

    def _attempt(self, n: int, more: int | None, beyond: bool) -> Outcome:
        """The outcome of the first way that settles it, or of the last one tried."""
        outcome = Outcome(why="out of time")  # at a smaller n, if no way is left
        size = None if more is None else self.question.task.least_memory(n) + more
        for split in (False, True):
            way = (size is None, beyond, split)
            if way in self.hopeless:
                continue
            outcome = prove(self.question, n, size, SHARE * self.left, beyond=beyond, split=split)
            failures = [
                Failure(n, tuple(memory), limit, limit == self.question.limits.first(n), "symbolic")
                for memory, limit in outcome.refuted
            ]
            if not all(is_confirmed(self.question.program, self.question.task, failure) for failure in failures):
                outcome = Outcome(why="the interpreter did not confirm the solver's counterexample")
                continue
            self.part.failures += failures
            if not outcome.why or failures:
                break
            if outcome.why == "out of time":
                self.hopeless.add(way)
        return outcome
