"""Planning proofs: which are tried for which sizes, within the time limit."""

from __future__ import annotations

import time

from nram.programs.verify.counterexample import is_confirmed
from nram.programs.verify.findings import Failure, Finding, Part, Skipped, emitted_forms
from nram.programs.verify.symbolic import Outcome, prove
from nram.programs.verify.verification import Verification

SHARE = 1 / 2  # of the remaining time, for one attempt


def prove_sizes(verification: Verification, *, largest: int, extra: int, seconds: float, beyond: bool) -> Part:
    """Prove the program right for n = smallest, ..., `largest`.

    For each n it first tries all memory sizes at once up to T(n), which is enough if the program halts by then. Where
    that fails or does not suffice, it tries M = least, ..., least + extra one by one under all limits, and then, if
    time remains, all sizes at once. `beyond`: also prove the limits above T(n).
    """
    task = verification.task
    every_n = task.min_complexity, None
    prover = _Prover(verification, time.monotonic() + seconds, beyond)
    prover.run(range(task.min_complexity, largest + 1), extra)
    taken = emitted_forms(verification.program, every_n, "symbolic")
    return Part(list(prover.found.values()), [*prover.undecided.values(), *taken], prover.failures)


class _Prover:
    def __init__(self, verification: Verification, deadline: float, beyond: bool):
        self.verification = verification
        self.deadline = deadline
        self.beyond = beyond
        self.found: dict[tuple[int, int | None], Finding] = {}
        """What is proven, by n and the number of cells beyond the least memory; None: every size at once."""
        self.undecided: dict[tuple[int, int | None], Skipped] = {}
        self.failures: list[Failure] = []
        self.hopeless: set[tuple[bool, bool, bool]] = set()
        """Kinds of proofs that ran out of time at a smaller n: (all memory sizes, beyond T(n), split)."""

    def run(self, complexities: range, extra: int) -> None:
        for n in complexities:
            self._decide(n, None, beyond=False)
            if self._fails(at_first=True):
                return
        for n in complexities:
            if not self._is_complete(n, None) and not self._decide_one_by_one(n, extra):
                break  # larger ones take longer
        for n in complexities:
            if (n, None) in self.found and not self._is_complete(n, None) and not self._fails(at_first=True):
                self._decide(n, None, beyond=True)

    def _decide_one_by_one(self, n: int, extra: int) -> bool:
        """Whether the proofs for each memory size from the least up succeed."""
        for more in range(extra + 1):
            for beyond in (False, True):
                if not self._is_complete(n, more):
                    self._decide(n, more, beyond)
                if self._fails(at_first=True) or (n, more) in self.undecided:
                    return False
        return True

    def _fails(self, at_first: bool) -> bool:
        return any(failure.at_first == at_first for failure in self.failures)

    def _is_complete(self, n: int, more: int | None) -> bool:
        """Whether there is nothing more to prove for this size."""
        finding = self.found.get((n, more))
        if finding is None:
            return False
        return finding.limits != ("T",) or not self.beyond or self._fails(at_first=False)

    def _decide(self, n: int, more: int | None, beyond: bool) -> None:
        """Prove a size up to T(n) or beyond it, or note why that failed."""
        began = time.monotonic()
        where = "every M at once" if more is None else f"M = least+{more}" if more else "M = least"
        outcome = self._attempt(n, more, beyond)
        key = n, more
        known = self.found.get(key)
        if outcome.proven:
            under = "every limit" if outcome.proven == ("every",) else ", ".join(outcome.proven)
            self.verification.progress(f"symbolic: n = {n}, {where}: proven under {under}")
            seconds = time.monotonic() - began + (known.seconds if known else 0)
            extra = None if more is None else (more, more)
            self.found[key] = Finding("symbolic", (n, n), extra, None, True, outcome.proven, outcome.halts, seconds)
            self.undecided.pop(key, None)
        elif outcome.why and not outcome.refuted:
            what = "limits above T(n)" if known else "all limits"
            self.verification.progress(f"symbolic: n = {n}, {where}: {what} not proven: {outcome.why}")
            self.undecided[key] = Skipped("symbolic", (n, n), f"{where}, {what}", outcome.why)

    def _attempt(self, n: int, more: int | None, beyond: bool) -> Outcome:
        """The outcome of the first kind of proof that decides it, or of the last one tried."""
        outcome = Outcome(why="out of time")  # if every kind ran out of time at a smaller n
        verification = self.verification
        size = None if more is None else verification.task.least_memory(n) + more
        for split in (False, True):
            kind = (size is None, beyond, split)
            if kind in self.hopeless:
                continue
            left = self.deadline - time.monotonic()
            outcome = prove(verification, n, size, SHARE * left, beyond=beyond, split=split)
            failures = [
                Failure(n, tuple(memory), limit, limit == verification.limit(n), "symbolic")
                for memory, limit in outcome.refuted
            ]
            if not all(is_confirmed(verification.program, verification.task, failure) for failure in failures):
                outcome = Outcome(why="the interpreter did not confirm the solver's counterexample")
                continue
            self.failures += failures
            if not outcome.why or failures:
                break
            if outcome.why == "out of time":
                self.hopeless.add(kind)
        return outcome
