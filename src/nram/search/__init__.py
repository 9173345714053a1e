"""Search: programs found straight in the discrete space, without a network.

    from nram.search import find_program

    outcome = find_program("copy", seconds=60)
    print(outcome.program)

Importing this package imports neither Numba nor LLVM.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nram.programs.ir import Program
    from nram.search.engine import Outcome
    from nram.search.structure import Structure
    from nram.tasks.base import Instance, Task

__all__ = ["find_program"]


def find_program(
    source: str | Path | Task | Sequence[Instance],
    *,
    seconds: float = 60.0,
    seed: int = 0,
    workers: int | None = None,
    structures: Sequence[Structure] | None = None,
    start: Program | None = None,
    most_candidates: int | None = None,
) -> Outcome:
    """Search for a program that solves a task (an object, a name or a file), or fits instances (a list, a JSONL file).

    A program for a task has passed fresh and larger instances; `nram.programs.verify.verify` says more of it. The same
    seed and number of candidates give the same program, however many workers there are. `start` is a program to be
    repaired. `structures` are tried in turn instead of the usual ones.
    """
    from nram.search.engine import Search
    from nram.search.for_task import judge_of, source_of
    from nram.search.schedule import STRUCTURES
    from nram.search.structure import embed

    task, pool = source_of(source, seed)
    place = None if start is None else embed(start)
    return Search(
        pool,
        judge_of(task, seed),
        seed=seed,
        structures=(place[0],) if place is not None else structures or STRUCTURES,
        start=place,
        workers=workers or len(os.sched_getaffinity(0)),
        seconds=seconds,
        most_candidates=most_candidates,
    ).run()
