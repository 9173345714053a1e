"""The search beside what one would pick instead: z3-based synthesis and random search, on the same job in one run.

    .venv/bin/python benchmarks/search/rivals.py [--tasks access,copy] [--timeout SECONDS] [--seeds N] [--json]

All have the same examples, the same instruction set, the same structure (given) and one core, and all go on after a
program that fits until one passes the same fresh and larger instances. The time of the search includes making its
program short. The search without a named structure is there too, as `nram search TASK` runs it, but for one worker.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from random_search import draw
from z3_synthesis import synthesise

from nram.search.engine import Search
from nram.search.for_task import find_counterexamples
from nram.search.instances import task_pool
from nram.search.schedule import STRUCTURES
from nram.search.structure import Structure
from nram.tasks import get_task
from nram.tasks.base import Task

JOBS = {
    "access": Structure(2, 1),
    "increment": Structure(2, 1),
    "copy": Structure(3, 1),
    "reverse": Structure(3, 1),
    "swap": Structure(4, 2),
}

Method = Callable[[Task, Structure, int, float], float | None]
"""(task, structure, seed, timeout) -> seconds to a program that fits and generalises, or None."""


def search_seconds(task: Task, structures: Sequence[Structure], seed: int, timeout: float) -> float | None:
    pool = task_pool(task, seed)

    def check(program):
        return find_counterexamples(program, task, seed)

    outcome = Search(pool, check, seed=seed, structures=structures, seconds=timeout).run()
    return None if outcome.program is None else outcome.seconds


def given(task: Task, structure: Structure, seed: int, timeout: float) -> float | None:
    return search_seconds(task, (structure,), seed, timeout)


def free(task: Task, _structure: Structure, seed: int, timeout: float) -> float | None:
    return search_seconds(task, STRUCTURES, seed, timeout)


def solver(task: Task, structure: Structure, seed: int, timeout: float) -> float | None:
    done = synthesise(task, structure, seed, timeout)
    return None if done.program is None else done.seconds


def at_random(task: Task, structure: Structure, seed: int, timeout: float) -> float | None:
    done = draw(task, structure, seed, timeout)
    return None if done.program is None else done.seconds


METHODS: dict[str, Method] = {
    "search": given,
    "search, structure not given": free,
    "z3": solver,
    "random": at_random,
}


def measure(name: str, seeds: int, timeout: float) -> dict[str, Any]:
    """One task by every method, seeds one after another."""
    task, structure = get_task(name), JOBS[name]
    times: dict[str, list[float | None]] = {}
    for method, seconds in METHODS.items():
        times[method] = []
        for seed in range(1, seeds + 1):
            times[method].append(seconds(task, structure, seed, timeout))
            print(f"{name}, {method}, seed {seed}: {_shown(times[method][-1], timeout)}", file=sys.stderr, flush=True)
    return {"task": name, "structure": str(structure), "seconds": times}


def _shown(seconds: float | None, timeout: float) -> str:
    return f"not in {timeout:.0f} s" if seconds is None else f"{seconds:.2f} s"


def _summary(times: Sequence[float | None], timeout: float) -> str:
    """The median, and how many found one where not all did."""
    found = [seconds for seconds in times if seconds is not None]
    median = statistics.median([timeout + 1 if seconds is None else seconds for seconds in times])
    text = _shown(None if median > timeout else median, timeout)
    return text if len(found) in (0, len(times)) else f"{text} ({len(found)} of {len(times)} seeds)"


def main() -> None:
    parser = argparse.ArgumentParser(description="The search beside z3 and random search.")
    parser.add_argument("--tasks", default=",".join(JOBS), help="which (default: %(default)s)")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds of each attempt (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="attempts of each (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print one JSON value")
    arguments = parser.parse_args()
    names = arguments.tasks.split(",")
    unknown = [name for name in names if name not in JOBS]
    if unknown:
        parser.error(f"no job {', '.join(unknown)}: there are {', '.join(JOBS)}")
    given(get_task("access"), JOBS["access"], 0, 60.0)  # compiled, or loaded, before the clock starts
    began = time.monotonic()
    rows = [measure(name, arguments.seeds, arguments.timeout) for name in names]
    if arguments.json:
        print(json.dumps({"timeout": arguments.timeout, "seeds": arguments.seeds, "tasks": rows}))
        return
    print("| median seconds |", " | ".join(METHODS), "|")
    print("| --- " * (1 + len(METHODS)) + "|")
    for row in rows:
        cells = [_summary(row["seconds"][method], arguments.timeout) for method in METHODS]
        print(f"| {row['task']} {row['structure']} |", " | ".join(cells), "|")
    print(f"\n{arguments.seeds} seeds, {time.monotonic() - began:.0f} s in all", file=sys.stderr)


if __name__ == "__main__":
    main()
