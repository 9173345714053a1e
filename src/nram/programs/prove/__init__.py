"""Proofs for every length: a program is right for every n, every memory size and every input of its task.

invariant     what holds at every moment of every run
step          one row carried out on terms
instances     the assumptions of a task, where they matter
obligations   what must be proven, in SMT-LIB 2: the part to trust
certificate   the file with all of it, and what can be wrong with one
shipped       the certificates of the zoo
own_claims    what users' tasks claim, compared with their own inputs and answers
solvers       z3 and cvc5, which check obligations
runs, bank, guess, earlier, compared, questions, houdini, changes, search, deadline   find an invariant; no trust needed
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

from nram.errors import NramError, UsageError, check_budget
from nram.limits import StepLimit
from nram.programs.ir import Program
from nram.programs.library import as_program, limit_for, task_of
from nram.programs.prove.certificate import Certificate, altered, made_certificate, obligation_in_words
from nram.programs.prove.obligations import Problem
from nram.programs.prove.own_claims import check_claim
from nram.programs.prove.search import find_invariant
from nram.programs.prove.shipped import load_certificate, same_table, shipped_certificate
from nram.programs.prove.solvers import answer, solvers
from nram.programs.verify import Counterexample, verify, why_no_proof
from nram.tasks import Task

__all__ = [
    "Certificate",
    "Check",
    "Proof",
    "check_certificate",
    "find_proof",
    "load_certificate",
    "prove",
    "same_table",
    "shipped_certificate",
]

TESTED_UP_TO = 50  # before a proof is tried
SECONDS_OF_TESTS = 2.0

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Check:
    """What the solvers said about the obligations of a certificate."""

    certificate: Certificate
    problem: str | None
    """Why the certificate is refused; None: it is right."""
    seconds: dict[str, float] = field(default_factory=dict)
    """By solver."""

    @property
    def right(self) -> bool:
        return self.problem is None

    def to_json(self) -> dict[str, Any]:
        return {
            "right": self.right,
            "claim": self.certificate.claim,
            "program": self.certificate.program.name,
            "fingerprint": self.certificate.program.fingerprint,
            "task": self.certificate.task,
            "obligations": len(self.certificate.obligations),
            "solvers": {name: round(seconds, 3) for name, seconds in self.seconds.items()},
            "problem": self.problem,
        }


@dataclass(frozen=True)
class Proof:
    """The outcome of an attempt to prove a program right for every length."""

    program: Program
    task: Task
    limit: StepLimit
    check: Check | None
    """Of the certificate that was found, if one was."""
    failures: tuple[str, ...]
    """The obligations that were not proven in the best attempt."""
    counterexample: Counterexample | None
    """An input on which the program is wrong."""
    seconds: float

    @property
    def proven(self) -> bool:
        return self.check is not None and self.check.right

    @property
    def certificate(self) -> Certificate | None:
        return self.check.certificate if self.check is not None and self.check.right else None

    def to_json(self) -> dict[str, Any]:
        return {
            "proven": self.proven,
            "claim": self.certificate.claim if self.certificate is not None else None,
            "task": self.task.name,
            "program": self.program.name,
            "fingerprint": self.program.fingerprint,
            "limit": str(self.limit),
            "obligations": len(self.certificate.obligations) if self.certificate is not None else None,
            "solvers": self.check.to_json()["solvers"] if self.check is not None else {},
            "not_proven": list(self.failures),
            "counterexample": self.counterexample.to_json() if self.counterexample is not None else None,
            "seconds": round(self.seconds, 2),
        }


def prove(
    program: Program | str | PathLike[str],
    task: Task | str | None = None,
    *,
    budget: float = 120.0,
    progress: Progress | None = None,
) -> Proof:
    """Try to prove that a program is right for every n, every memory size and every input of a task.

    `task` defaults to the program's. `budget` is the time in seconds for the search of an invariant. First the program
    is tested: if it is wrong on some input, that input is the answer. A proof that is not found says nothing about the
    program.
    """
    check_budget(budget)
    program = as_program(program)
    task = task if isinstance(task, Task) else task_of(program, task)
    reason = why_no_proof(program, task, every_length=True)
    if reason is not None:
        raise NramError(f"a proof for every length cannot be tried: {reason}")
    check_claim(task)
    told = progress or (lambda line: None)
    began = time.monotonic()
    told("testing")
    tested = verify(program, task, budget=SECONDS_OF_TESTS, symbolic_up_to=0, largest=TESTED_UP_TO, every_length=False)
    limit = limit_for(program, task)
    if tested.counterexample is not None or tested.harmful:
        return Proof(program, task, limit, None, (), tested.counterexample, time.monotonic() - began)
    checked, failures = find_proof(program, task, limit, budget, told)
    return Proof(program, task, limit, checked, failures, None, time.monotonic() - began)


def find_proof(
    program: Program, task: Task, limit: StepLimit, seconds: float, told: Progress
) -> tuple[Check | None, tuple[str, ...]]:
    """Look for an invariant and check its certificate, without tests before it. With what the best guess leaves open.

    A certificate holds no evidence of the program: it is all that there is to check.
    """
    problem = Problem(replace(program, verified=()), task, limit)
    attempt = find_invariant(problem, time.monotonic() + seconds, told)
    if attempt.invariant is None:
        return None, attempt.failures
    if attempt.failures:
        return None, tuple(obligation_in_words(name, attempt.invariant) for name in attempt.failures)
    checked = check_certificate(made_certificate(problem, attempt.invariant), task=task, progress=told)
    return checked, () if checked.problem is None else (checked.problem,)


def check_certificate(
    certificate: Certificate | str | PathLike[str],
    *,
    program: Program | str | PathLike[str] | None = None,
    task: Task | str | None = None,
    progress: Progress | None = None,
) -> Check:
    """Check a certificate with every solver that is installed.

    `certificate` is a file, or the name of a program of the zoo. `program`: the program that it must be of. `task` is
    needed where the task is a file; otherwise it is found by name.
    """
    if not isinstance(certificate, Certificate):
        certificate, of = load_certificate(certificate)
        program = of if program is None else program
    if not isinstance(task, Task):
        # The name in a certificate never makes nram execute a file: a user names it.
        task = task_of(replace(certificate.program, task=certificate.task), task)
    if task.name != certificate.task:
        raise UsageError(f"the certificate is about the task {certificate.task}, not about {task.name}")
    if program is not None:
        program = as_program(program)
        if not same_table(program, certificate.program):
            other = f"{program.name}, fingerprint {program.fingerprint}"
            return Check(certificate, f"it is of another program than {other}")
        if (limit := limit_for(program, task)) != certificate.limit:
            return Check(certificate, f"it is about T(n) = {certificate.limit}, not {limit}")
    reason = why_no_proof(certificate.program, task, every_length=True)
    if reason is not None:
        raise NramError(f"the certificate cannot be checked: {reason}")
    check_claim(task)
    installed = solvers()
    wrong = altered(certificate, task)
    if wrong is not None:
        return Check(certificate, wrong)
    seconds: dict[str, float] = {}
    for solver in installed:
        began = time.monotonic()
        if progress is not None:
            progress(f"{solver}: {len(certificate.obligations)} obligations")
        for name, text in certificate.obligations:
            said = answer(solver, text)
            if said != "unsat":
                return Check(certificate, f"{solver} does not prove the obligation '{name}': it says {said}", seconds)
        seconds[solver] = time.monotonic() - began
    return Check(certificate, None, seconds)
