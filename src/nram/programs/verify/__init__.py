"""What can be shown of a program: that it solves a task, for which sizes, and under which step limits.

exhaustive  every legal input of small sizes is run
symbolic    a proof for all values, and where it succeeds for all memory sizes, at once (`proving` plans them,
            `machine` carries the program out on terms)
sampling    random instances, up to very large ones
report      what was proven, what was only tested, and what was not looked at
"""

from __future__ import annotations

import time

from nram.programs.ir import Program
from nram.programs.library import task_of
from nram.programs.verify.counterexample import Counterexample, confirmed
from nram.programs.verify.exhaustive import run_all
from nram.programs.verify.findings import Failure, Finding, Method, Part, Progress, Skipped, merged, merged_skips
from nram.programs.verify.question import Question, question
from nram.programs.verify.report import Report, Verdict
from nram.programs.verify.sampling import find_smaller, run_sampled
from nram.tasks import Task

__all__ = ["Counterexample", "Finding", "Report", "Skipped", "Verdict", "verify"]


def verify(
    program: Program,
    task: Task | str | None = None,
    *,
    budget: float = 20.0,
    exhaustive_up_to: int | None = None,
    symbolic_up_to: int = 6,
    largest: int = 100_000,
    extra: int = 2,
    seed: int = 0,
    engine: str = "auto",
    progress: Progress | None = None,
) -> Report:
    """Show what can be shown of a program in the time there is.

    `task` is the program's own unless given. `budget` is the time in seconds for each of the three methods.
    `exhaustive_up_to` ends the exhaustive part before its time does, `symbolic_up_to` is the largest n to prove,
    `largest` the largest n to draw at random; 0 leaves a part out. Proofs that cannot be had for all M at once, and
    exhaustive runs, take M from the least up to `extra` more. Once a failure at T(n) is found the rest is left out;
    once one under a larger limit is found the rest is about T(n) alone.
    """
    asked = question(program, task if isinstance(task, Task) else task_of(program, task), engine, progress)
    began = time.monotonic()
    whole = Part()

    def add(part: Part) -> None:
        whole.findings += merged(part.findings)
        whole.skipped += part.skipped
        whole.failures += part.failures

    def wanted(method: Method, up_to: int | None) -> bool:
        smallest = asked.task.min_complexity
        if whole.fails(at_first=True):
            why = "it is wrong already"
        elif up_to == 0:
            why = "not asked for"
        elif up_to is not None and up_to < smallest:
            why = f"asked for up to n = {up_to} alone"
        else:
            return True
        whole.skipped.append(Skipped(method, (smallest, None), "", why))
        return False

    if wanted("exhaustive", exhaustive_up_to):
        add(run_all(asked, largest=exhaustive_up_to, extra=extra, seconds=budget))
    if wanted("symbolic", symbolic_up_to):
        from nram.programs.verify.proving import prove_sizes

        beyond = not whole.fails(at_first=False)
        add(prove_sizes(asked, largest=symbolic_up_to, extra=extra, seconds=budget, beyond=beyond))
    if wanted("random", largest):
        beyond = not whole.fails(at_first=False)
        part = run_sampled(asked, largest=largest, seed=seed, seconds=budget, beyond=beyond)
        part.failures += [find_smaller(asked, failure, seed=seed, seconds=budget) for failure in part.failures]
        add(part)
    return Report(
        program=program,
        task=asked.task,
        limit=asked.limit,
        findings=tuple(whole.findings),
        skipped=tuple(merged_skips(whole.skipped)),
        counterexample=_smallest(asked, whole.failures),
        seconds=time.monotonic() - began,
    )


def _smallest(asked: Question, failures: list[Failure]) -> Counterexample | None:
    if not failures:
        return None
    smallest = min(failures, key=lambda failure: (not failure.at_first, failure.size))
    return confirmed(asked.program, asked.task, smallest)
