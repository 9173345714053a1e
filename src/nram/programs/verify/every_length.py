"""The highest level: a proof for every length, from a certificate or from a new search for an invariant."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from nram.errors import NramError, UsageError
from nram.programs.verify.findings import Finding, Part, Skipped, emitted_forms
from nram.programs.verify.verification import Verification

if TYPE_CHECKING:
    from nram.programs.prove import Certificate


def given_certificate(verification: Verification, name: str | os.PathLike[str]) -> Certificate:
    """The certificate that a user names, a file or a program of the zoo. Refused if it is about something else."""
    certificate, _ = _prover().load_certificate(name)
    about = {
        "another program": _prover().same_table(certificate.program, verification.program),
        f"the task {certificate.task}": certificate.task == verification.task.name,
        f"T(n) = {certificate.limit}, not {verification.limit}": certificate.limit == verification.limit,
    }
    for other, same in about.items():
        if not same:
            raise UsageError(f"the certificate {name} is about {other}")
    return certificate


def prove_every_length(verification: Verification, given: Certificate | None, seconds: float) -> Part:
    """Check the certificate that is given, or the one that the zoo has of this program; otherwise look for a proof.

    `seconds` is the time for the search alone. If the certificate that is given does not hold, that is an error.
    """
    program, task, limit = verification.program, verification.task, verification.limit
    prover, began = _prover(), time.monotonic()
    every_n = task.min_complexity, None

    def told(words: str) -> None:
        verification.progress(f"inductive: {words}")

    checked = None
    certificate = given or prover.shipped_certificate(program, task, limit)
    if certificate is not None:
        checked = prover.check_certificate(certificate, task=task, progress=told)
        if given is not None and checked.problem is not None:
            raise NramError(f"the certificate is refused: {checked.problem}")
    if checked is None or not checked.right:
        checked, _ = prover.find_proof(program, task, limit, seconds, told)
    took = time.monotonic() - began
    if checked is None or not checked.right:
        why = f"no proof was found in {took:.0f} s, which says nothing about the program; nram prove tries longer"
        return Part(skipped=[Skipped("inductive", every_n, "", why)])
    halts = checked.certificate.invariant.halts
    finding = Finding("inductive", every_n, None, None, True, ("every",), halts, took)
    return Part([finding], emitted_forms(program, every_n, "inductive"))


def _prover():
    from nram.programs import prove

    return prove
