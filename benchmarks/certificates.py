"""Makes the certificates of the zoo, and writes what they show into the cards of its programs.

    python benchmarks/certificates.py                    # all programs of the zoo
    python benchmarks/certificates.py merge@searched     # some of them

The invariant of the old certificate is tried first, which takes seconds. Where there is none, or it is not enough any
more, a new one is searched for. A program that is not proven has no certificate, and its card does not claim one.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

import nram
from nram.errors import NramError
from nram.programs.files import save_program
from nram.programs.library import CERTIFICATE, ZooEntry, limit_for, zoo_entries
from nram.programs.prove import Certificate, check_certificate, prove
from nram.programs.prove.certificate import made_certificate, read_certificate
from nram.programs.prove.changes import fewer_changes
from nram.programs.prove.obligations import Problem

ZOO = Path(__file__).parent.parent / "src" / "nram" / "zoo"


def certificate_of(entry: ZooEntry, budget: float) -> Certificate | None:
    return renewed(entry) or prove(entry.program, budget=budget).certificate


def renewed(entry: ZooEntry) -> Certificate | None:
    """The obligations that the invariant of the old certificate leads to today, if the solvers prove them."""
    try:
        old = read_certificate(ZOO / entry.title / CERTIFICATE)
    except NramError:  # there is none, or it has another form
        return None
    task = nram.get_task(entry.name)
    problem = Problem(replace(entry.program, verified=()), task, limit_for(entry.program, task))
    try:
        invariant = fewer_changes(problem, old.invariant, time.monotonic() + 60)
        check = check_certificate(made_certificate(problem, invariant), task=task)
    except (NramError, LookupError):  # of another program
        return None
    return check.certificate if check.right else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="*", help="NAME@ORIGIN")
    parser.add_argument("--budget", type=float, default=600.0, help="seconds for the search of one invariant")
    chosen = parser.parse_args()
    unknown = set(chosen.program) - {entry.title for entry in zoo_entries()}
    if unknown:
        sys.exit(f"the zoo has no {', '.join(sorted(unknown))}")
    for entry in zoo_entries():
        if chosen.program and entry.title not in chosen.program:
            continue
        path = ZOO / entry.title / CERTIFICATE
        certificate = certificate_of(entry, chosen.budget)
        evidence = [one for one in entry.program.verified if one.method != "inductive"]
        if certificate is None:
            path.unlink(missing_ok=True)
        else:
            certificate.save(path)
            evidence[:0] = nram.verify(
                entry.program, certificate=path, exhaustive_up_to=0, symbolic_up_to=0, largest=0
            ).evidence()
        save_program(replace(entry.program, verified=tuple(evidence)), ZOO / entry.title / "program.nram")
        print(entry.title, "not proven" if certificate is None else certificate.claim, flush=True)


if __name__ == "__main__":
    main()
