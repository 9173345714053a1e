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

    For each n on all memory sizes at once up to T(n), which is enough if it halts by then. Where that does not
    succeed or does not suffice, on M = least, ..., least + extra one by one under all limits, and with the time that
    is left also on all sizes at once. `beyond`: look at the limits above T(n).
    """
    task = question.task
    if task.symbolic is None:
        why = f"the task {task.name} has no symbolic inputs"
        return Part(skipped=[Skipped("symbolic", (task.min_complexity, None), "", why)])
    own = [module for module in question.program.modules if not module.built_in]
    for module in own:
        if not module.emits:
            why = f"the module {module.name} has no emitted form, from which formulas are made (emit of its Module)"
            return Part(skipped=[Skipped("symbolic", (task.min_complexity, None), "", why)])
    prover = _Prover(question, time.monotonic() + seconds, beyond)
    prover.run(range(task.min_complexity, largest + 1), extra)
    part = prover.yielded()
    for module in own:
        what = f"that {module.name} as proofs take it, by its emit, is its integer meaning"
        part.skipped.append(Skipped("symbolic", (task.min_complexity, None), what, "only tested, on loading it"))
    return part


class _Prover:
    def __init__(self, question: Question, deadline: float, beyond: bool):
        self.question = question
        self.deadline = deadline
        self.beyond = beyond
        self.found: dict[tuple[int, int | None], Finding] = {}
        """What is proven, by n and how much more than the least memory there is; None: every size at once."""
        self.unsettled: dict[tuple[int, int | None], Skipped] = {}
        self.failures: list[Failure] = []
        self.hopeless: set[tuple[bool, bool, bool]] = set()
        """Ways of proving that ran out of time at a smaller n: (all memory sizes, beyond T(n), split)."""

    def run(self, complexities: range, extra: int) -> None:
        for n in complexities:
            self._settle(n, None, beyond=False)
            if self._fails(at_first=True):
                return
        for n in complexities:
            if not self._is_complete(n, None) and not self._take_one_by_one(n, extra):
                break  # larger ones take longer
        for n in complexities:
            if (n, None) in self.found and not self._is_complete(n, None) and not self._fails(at_first=True):
                self._settle(n, None, beyond=True)

    def _take_one_by_one(self, n: int, extra: int) -> bool:
        """Whether it went well on each memory size from the least up."""
        for more in range(extra + 1):
            for beyond in (False, True):
                if not self._is_complete(n, more):
                    self._settle(n, more, beyond)
                if self._fails(at_first=True) or (n, more) in self.unsettled:
                    return False
        return True

    def yielded(self) -> Part:
        return Part(list(self.found.values()), list(self.unsettled.values()), self.failures)

    def _fails(self, at_first: bool) -> bool:
        return any(failure.at_first == at_first for failure in self.failures)

    def _is_complete(self, n: int, more: int | None) -> bool:
        """Whether nothing more is to be shown of this size."""
        finding = self.found.get((n, more))
        if finding is None:
            return False
        return finding.limits != ("T",) or not self.beyond or self._fails(at_first=False)

    def _settle(self, n: int, more: int | None, beyond: bool) -> None:
        """Prove a size up to T(n) or beyond it, or note why not."""
        began = time.monotonic()
        where = "every M at once" if more is None else f"M = least+{more}" if more else "M = least"
        outcome = self._attempt(n, more, beyond)
        key = n, more
        known = self.found.get(key)
        if outcome.proven:
            under = "every limit" if outcome.proven == ("every",) else ", ".join(outcome.proven)
            self.question.progress(f"symbolic: n = {n}, {where}: proven under {under}")
            seconds = time.monotonic() - began + (known.seconds if known else 0)
            extra = None if more is None else (more, more)
            halts = outcome.halts
            self.found[key] = Finding("symbolic", (n, n), extra, None, True, outcome.proven, halts, seconds)
            self.unsettled.pop(key, None)
        elif outcome.why and not outcome.refuted:
            what = "limits above T(n)" if known else "all limits"
            self.question.progress(f"symbolic: n = {n}, {where}: {what} not proven: {outcome.why}")
            self.unsettled[key] = Skipped("symbolic", (n, n), f"{where}, {what}", outcome.why)

    def _attempt(self, n: int, more: int | None, beyond: bool) -> Outcome:
        """The outcome of the first way that settles it, or of the last one tried."""
        outcome = Outcome(why="out of time")  # at a smaller n, if no way is left
        size = None if more is None else self.question.task.least_memory(n) + more
        for split in (False, True):
            way = (size is None, beyond, split)
            if way in self.hopeless:
                continue
            left = self.deadline - time.monotonic()
            outcome = prove(self.question, n, size, SHARE * left, beyond=beyond, split=split)
            failures = [
                Failure(n, tuple(memory), limit, limit == self.question.limit(n), "symbolic")
                for memory, limit in outcome.refuted
            ]
            if not all(is_confirmed(self.question.program, self.question.task, failure) for failure in failures):
                outcome = Outcome(why="the interpreter did not confirm the solver's counterexample")
                continue
            self.failures += failures
            if not outcome.why or failures:
                break
            if outcome.why == "out of time":
                self.hopeless.add(way)
        return outcome
