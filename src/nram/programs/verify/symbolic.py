"""Proofs by symbolic execution: a program is right on every input of complexity n, whatever the values.

The program runs on terms. Where a register may be 0 or not, both paths are followed; a path is dropped only if the
solver says that it is impossible. At the step limit, and after every later step that changes them, the output cells
must equal what the task expects: the solver shows that they cannot differ. If the memory size is a term too, the proof
holds for every memory that is large enough.

If the solver does not decide within its time, nothing counts as proven. Contradictory assumptions would prove
anything, so they are checked first.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import z3

from nram.programs.ir import Program
from nram.programs.verify.machine import (
    Configuration,
    Facts,
    OutOfTime,
    SymbolicMachine,
    Undecided,
    key_of,
    lifted,
)
from nram.programs.verify.verification import Verification
from nram.tasks.base import SymbolicCase, Term


@dataclass(frozen=True)
class Outcome:
    """The result of an attempt to prove a program for one n."""

    proven: tuple[str, ...] = ()
    """The names of the limits under which it is right on all inputs, or 'every'."""
    halts: bool = False
    """Every run halts by itself."""
    refuted: tuple[tuple[list[int], int], ...] = ()
    """Memories on which it is wrong, each with the limit."""
    why: str = ""
    """Why not more was proven; empty if everything was."""


class _Refuted(Exception):
    """An input was found on which the program is wrong at T(n)."""


@dataclass(frozen=True)
class _Path:
    """One path through the program, as far as it was followed."""

    configuration: Configuration
    outputs: tuple[Term, ...] = ()
    """The output cells that were last proven right."""
    anchor: Configuration | None = None
    """An earlier configuration; the run loops if it comes again (Brent's algorithm)."""
    lap: int = 1


def prove(
    verification: Verification,
    n: int,
    memory_size: int | None,
    seconds: float,
    *,
    beyond: bool = True,
    split: bool = False,
) -> Outcome:
    """Try to prove a program right for complexity n, on one memory size or, if it is None, on all at once.

    `beyond`: also under the limits above T(n). `split` follows both paths at every condition instead of merging
    values into larger terms.
    """
    task, limit = verification.task, verification.limit
    assert task.symbolic is not None
    size: Term = z3.Int("M") if memory_size is None else memory_size
    first = limit(n)
    horizon = limit.longest(n) if beyond else first
    attempt = _Attempt(verification.program, size, task.least_memory(n), first, horizon, split)
    attempt.deadline = time.monotonic() + seconds
    try:
        cases = 0
        for case in task.symbolic(n, size):
            attempt.add(case)
            cases += 1
        if cases == 0:
            attempt.why = "the task has no cases"
    except _Refuted:
        pass
    except OutOfTime:
        attempt.why = "out of time"
    failures = tuple(attempt.refuted)
    if attempt.why or any(steps == first for _, steps in failures):
        return Outcome(refuted=failures, why=attempt.why)
    if failures:
        return Outcome(("T",), refuted=failures)
    if attempt.closed:
        return Outcome(("every",), attempt.halts)
    return Outcome(tuple(limit.ascending(n)) if beyond else ("T",), attempt.halts)


class _Attempt:
    """The proof of all cases up to one horizon."""

    deadline: float
    case: SymbolicCase
    facts: Facts
    machine: SymbolicMachine

    def __init__(self, program: Program, size: Term, least: int, first: int, horizon: int, split: bool):
        self.program = program
        self.size = size
        self.least = least
        self.first = first
        self.horizon = horizon
        self.split = split
        self.apart: dict[Any, SymbolicCase] = {}
        """Layouts whose cells are proven distinct. The case is kept alive so that z3 does not reuse its term ids."""
        self.refuted: list[tuple[list[int], int]] = []
        self.halts = True
        self.closed = True
        """Every run was followed to its end, or round a loop."""
        self.why = ""

    def add(self, case: SymbolicCase) -> None:
        """Prove one case, or note why that failed."""
        sizes = () if isinstance(self.size, int) else (self.size >= self.least,)
        self.case = case
        self.facts = Facts((*sizes, *case.assumptions), self.deadline)
        problem = self._ill_formed()
        if problem:
            self.why = f"{problem} ({case.shape})" if case.shape else problem
            return
        self.machine = SymbolicMachine(self.program, self.size, self.facts, self.split)
        path = self._arrived(_Path(self.machine.start(case)))
        if path is not None:
            self._explore(path)

    def _ill_formed(self) -> str:
        """Why a proof of this case would be unsound; empty if it is sound."""
        if self.facts.find_witness() != z3.sat:
            return "no input was found that fulfils the assumptions"
        terms = [lifted(term) for cell in self.case.cells for term in cell]
        if self.facts.ask(z3.Or(*(z3.Or(term < 0, term >= self.size) for term in terms))) != z3.unsat:
            return "the cells could not be proven to lie within the memory"
        return "" if self._are_distinct() else "the cells could not be proven distinct"

    def _are_distinct(self) -> bool:
        """Whether no two cells of the layout coincide. Cases that differ only in values share the answer."""
        addresses = [address for address, _ in self.case.cells]
        assumed = tuple(condition.get_id() for condition in self.case.assumptions)
        key = assumed, frozenset(map(key_of, addresses))
        if key not in self.apart:
            if self.facts.ask(z3.Not(z3.Distinct(*map(lifted, addresses)))) != z3.unsat:
                return False
            self.apart[key] = self.case
        return len(key[1]) == len(addresses)

    def _explore(self, path: _Path) -> None:
        """Follow a path, and all its branches, to the end."""
        waiting: list[tuple[_Path, Any, int]] = [(path, None, 0)]
        while waiting:
            path, condition, depth = waiting.pop()
            self.facts.back_to(depth)
            if condition is None or self.facts.assume(condition):
                fork = self._follow(path)
                if fork is not None:
                    path, condition = fork
                    depth = self.facts.depth
                    waiting += [(path, z3.Not(condition), depth), (path, condition, depth)]

    def _follow(self, path: _Path) -> tuple[_Path, Any] | None:
        """Follow a path to its end, or to a fork: the path up to there, with the condition."""
        now: _Path | None = path
        while now is not None:
            path = now
            try:
                configuration = self.machine.step(path.configuration)
            except Undecided as fork:
                return path, fork.condition
            now = self._arrived(replace(path, configuration=configuration))
        return None

    def _arrived(self, path: _Path) -> _Path | None:
        """Check a configuration that was reached; None if the path ends with it."""
        now = path.configuration
        if now.steps < self.first and not now.halted:
            return path
        outputs = tuple(self.machine.look(now.memory, address) for address, _ in self.case.expected)
        if [*map(key_of, outputs)] != [*map(key_of, path.outputs)] and not self._right(outputs, now.steps):
            return None
        if now.halted:
            return None
        if path.anchor is not None and now.key == path.anchor.key:
            self.halts = False  # it loops for ever, and every configuration of the loop was checked
            return None
        if now.steps >= self.horizon:
            self.halts = self.closed = False
            return None
        if path.anchor is None or now.steps - path.anchor.steps == path.lap:
            return _Path(now, outputs, anchor=now, lap=2 * path.lap)
        return replace(path, outputs=outputs)

    def _right(self, outputs: tuple[Term, ...], steps: int) -> bool:
        """Whether the output cells are proven right here; otherwise note what was found."""
        pairs = zip(outputs, (value for _, value in self.case.expected), strict=True)
        wrong = z3.Or(*(lifted(found) != lifted(expected) for found, expected in pairs))
        answer = self.facts.ask(wrong)
        if answer == z3.unsat:
            return True
        limit = max(steps, self.first)
        if answer == z3.sat:
            self.refuted.append((self._smallest(wrong), limit))
            if limit == self.first:
                raise _Refuted
            self.horizon = self.first  # larger limits are refuted; only a failure at T(n) would add something
        else:
            self.why = self.why or "the solver could not tell whether the output is right"
        return False

    # ---- counterexamples

    def _smallest(self, wrong: Any) -> list[int]:
        """A memory on this path that fulfils a condition: the smallest size, then the smallest values in order."""
        model = self.facts.solver.model()
        conditions = [wrong]
        ordered = sorted(self.case.cells, key=lambda cell: (not isinstance(cell[0], int), str(cell[0])))
        try:
            for term in (self.size, *(value for _, value in ordered)):
                if not isinstance(term, int):
                    model = self._minimise(term, model, conditions)
        except OutOfTime:
            pass  # any model is a counterexample, if not the smallest
        return self._memory(model)

    def _minimise(self, term: Any, model: Any, conditions: list[Any]) -> Any:
        """A model in which the term is as small as possible; a condition fixes that value."""
        low, high = 0, _integer(model, term)
        while low < high:
            middle = (low + high) // 2
            if self.facts.ask(*conditions, term <= middle) == z3.sat:
                model = self.facts.solver.model()
                high = _integer(model, term)
            else:
                low = middle + 1
        conditions.append(term == high)
        return model

    def _memory(self, model: Any) -> list[int]:
        size = _integer(model, self.size)
        trash = self.case.trash
        memory = [0] * size
        if trash is not None:
            # In cells that the run did not read, the model may hold anything; the layout needs 1..M-1.
            found = [_integer(model, trash(lifted(address))) for address in range(size)]
            memory = [value if 1 <= value < size else 1 for value in found]
        for address, value in self.case.cells:
            memory[_integer(model, address)] = _integer(model, value)
        return memory


def _integer(model: Any, term: Term) -> int:
    return term if isinstance(term, int) else model.eval(term, model_completion=True).as_long()
