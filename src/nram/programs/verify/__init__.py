"""Verification: does a program solve a task, for which sizes, and under which step limits?

exhaustive    runs every legal input of small sizes
symbolic      proves small sizes for all values at once, and where possible for all memory sizes (`proving` plans the
              proofs, `machine` carries out the program on terms)
sampling      runs random instances, up to very large ones
every_length  proves it for every n, every memory size and every input at once
report        says what was proven, what was only tested, and what was not checked
"""

from __future__ import annotations

import time
from os import PathLike

from nram.errors import check_budget, check_whole
from nram.extras import missing
from nram.programs.ir import Method, Program
from nram.programs.library import as_program, task_of
from nram.programs.verify.counterexample import Counterexample, confirmed
from nram.programs.verify.every_length import given_certificate, prove_every_length
from nram.programs.verify.exhaustive import run_all
from nram.programs.verify.findings import Failure, Finding, Part, Skipped, merged, merged_skips
from nram.programs.verify.report import Report, Verdict
from nram.programs.verify.sampling import find_smaller, run_sampled
from nram.programs.verify.verification import Progress, Verification, verification
from nram.tasks import Task

PROOFS = ("symbolic", "inductive")

__all__ = ["Counterexample", "Finding", "Report", "Skipped", "Verdict", "verify"]


def verify(
    program: Program | str | PathLike[str],
    task: Task | str | None = None,
    *,
    budget: float = 20.0,
    exhaustive_up_to: int | None = None,
    symbolic_up_to: int = 6,
    largest: int = 100_000,
    every_length: bool = True,
    certificate: str | PathLike[str] | None = None,
    extra: int = 2,
    seed: int = 0,
    engine: str = "auto",
    progress: Progress | None = None,
) -> Report:
    """Check whether a program solves a task: on all small inputs, by proofs, on random instances, and for every length.

    `program` is a program, its name or its file.
    `task` defaults to the program's task. `budget` is the time in seconds for each of the four methods, so the
    whole takes up to four times as long. `exhaustive_up_to` is the largest n of the exhaustive part (default: as
    far as the time allows), `symbolic_up_to` the largest n to prove, `largest` the largest n to sample; 0 leaves a
    part out. Exhaustive runs, and proofs that do not succeed for all M at once, take M from the least up to `extra`
    more. `every_length` says whether a proof for every length is tried, as `nram.prove` does. `certificate` is one
    that was found before; those of the zoo's programs are known. After a failure at T(n) the remaining parts are
    skipped; after a failure under a larger limit they check T(n) alone.
    """
    check_budget(budget)
    check_whole(0, exhaustive_up_to=exhaustive_up_to, symbolic_up_to=symbolic_up_to, largest=largest, extra=extra)
    check_whole(0, seed=seed)
    program = as_program(program)
    checked = verification(program, task if isinstance(task, Task) else task_of(program, task), engine, progress)
    given = None if certificate is None else given_certificate(checked, certificate)
    began = time.monotonic()
    whole = Part()

    def add(part: Part) -> None:
        whole.findings += merged(part.findings)
        whole.skipped += part.skipped
        whole.failures += part.failures

    def wanted(method: Method, up_to: int | None) -> bool:
        smallest = checked.task.min_complexity
        if whole.fails(at_first=True):
            why = "the program is wrong already"
        elif up_to == 0:
            why = "not asked for"
        elif up_to is not None and up_to < smallest:
            why = f"asked for only up to n = {up_to}"
        elif method == "inductive" and whole.fails(at_first=False):
            why = "it must be stopped at T(n)"
        elif method in PROOFS and (reason := why_no_proof(program, checked.task, method == "inductive")) is not None:
            why = reason
        else:
            return True
        whole.skipped.append(Skipped(method, (smallest, None), "", why))
        return False

    if wanted("exhaustive", exhaustive_up_to):
        add(run_all(checked, largest=exhaustive_up_to, extra=extra, seconds=budget))
    if wanted("symbolic", symbolic_up_to):
        from nram.programs.verify.proving import prove_sizes  # it imports z3

        beyond = not whole.fails(at_first=False)
        add(prove_sizes(checked, largest=symbolic_up_to, extra=extra, seconds=budget, beyond=beyond))
    if wanted("random", largest):
        beyond = not whole.fails(at_first=False)
        part = run_sampled(checked, largest=largest, seed=seed, seconds=budget, beyond=beyond)
        part.failures += [find_smaller(checked, failure, seed=seed, seconds=budget) for failure in part.failures]
        add(part)
    if wanted("inductive", None if every_length or certificate is not None else 0):
        part = prove_every_length(checked, given, budget)
        whole.findings[:0] = part.findings  # the strongest comes first
        whole.skipped += part.skipped
    return Report(
        program=program,
        task=checked.task,
        limit=checked.limit,
        findings=tuple(whole.findings),
        skipped=tuple(merged_skips(whole.skipped)),
        counterexample=_smallest(checked, whole.failures),
        seconds=time.monotonic() - began,
    )


def why_no_proof(program: Program, task: Task, every_length: bool = False) -> str | None:
    """Why nothing can be proven for small n, or for every length.

    A library that is not installed comes last: installing it alone may not help.
    """
    if every_length and task.claim is None:
        return f"the task {task.name} does not say what it asks for at every length (claim of its Task, docs/proof.md)"
    if not every_length and task.symbolic is None:
        return f"the task {task.name} has no symbolic inputs"
    for module in program.modules:
        if not module.built_in and not module.emits:
            return f"the module {module.name} has no emitted form, from which formulas are made (emit of its Module)"
    library = missing("verify")
    return None if library is None else f"a proof needs {library}"


def _smallest(checked: Verification, failures: list[Failure]) -> Counterexample | None:
    if not failures:
        return None
    smallest = min(failures, key=lambda failure: (not failure.at_first, failure.size))
    return confirmed(checked.program, checked.task, smallest)
