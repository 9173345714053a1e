"""Compares the search with z3-based synthesis and random search, on the same tasks in one run.

    .venv/bin/python benchmarks/search/rivals.py [--tasks access,copy] [--timeout SECONDS] [--seeds N] [--json]

All methods get the same examples, the same modules and the same structure. All continue until a program passes the same
fresh and larger instances. The search also runs without a given structure, as `nram search TASK` does, with one worker.
The time of the search includes shortening its program.

Every attempt is a separate process on one core. Its clock starts when everything is imported and compiled, and it is
killed at the timeout. Attempts run one after another, so none takes time from another.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from random_search import draw
from z3_synthesis import synthesise

from nram.extensions import get_task
from nram.search.counterexamples import find_counterexamples
from nram.search.engine import Search
from nram.search.instances import task_pool
from nram.search.schedule import STRUCTURES
from nram.search.structure import Structure
from nram.tasks.base import Task

# From the easiest task to those that no method solves.
JOBS = {
    "access": Structure(2, 1),
    "increment": Structure(2, 1),
    "copy": Structure(3, 1),
    "reverse": Structure(3, 1),
    "listk": Structure(3, 1),
    "swap": Structure(4, 2),
    "permutation": Structure(3, 2),
}
WARMING = 60.0  # seconds for a first attempt on the easiest task, which compiles everything
STARTING = 300.0  # seconds until a process must be ready


class Job(NamedTuple):
    """One attempt."""

    method: str
    task: str
    seed: int
    timeout: float


# ---- the methods: (task, structure, seed, timeout) -> whether a program was found that fits and generalises


def search_structures(task: Task, structures: Sequence[Structure], seed: int, timeout: float) -> bool:
    pool = task_pool(task, seed)

    def check(program):
        return find_counterexamples(program, task, seed)

    return Search(pool, check, seed=seed, structures=structures, seconds=timeout).run().program is not None


def given(task: Task, structure: Structure, seed: int, timeout: float) -> bool:
    return search_structures(task, (structure,), seed, timeout)


def free(task: Task, _structure: Structure, seed: int, timeout: float) -> bool:
    return search_structures(task, STRUCTURES, seed, timeout)


def solver(task: Task, structure: Structure, seed: int, timeout: float) -> bool:
    return synthesise(task, structure, seed, timeout).program is not None


def at_random(task: Task, structure: Structure, seed: int, timeout: float) -> bool:
    return draw(task, structure, seed, timeout).program is not None


METHODS: dict[str, Callable[[Task, Structure, int, float], bool]] = {
    "search": given,
    "search-free": free,
    "z3": solver,
    "random": at_random,
}


# ---- an attempt in its process


def attempt(job: Job) -> float | None:
    """Seconds until a program fits and generalises; None if there is none at the timeout."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_work, args=(job, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        if not ours.poll(STARTING):
            raise SystemExit(f"{job.task}, {job.method}: not ready after {STARTING:.0f} s")
        ours.recv()
        found = ours.poll(job.timeout) and ours.recv()
    except EOFError:
        raise SystemExit(f"{job.task}, {job.method}, seed {job.seed}: the process ended without an answer") from None
    finally:
        process.kill()
        process.join()
    return found if found and found <= job.timeout else None


def _work(job: Job, parent: Connection) -> None:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    method = METHODS[job.method]
    method(get_task("access"), JOBS["access"], 0, WARMING)
    parent.send("ready")
    began = time.monotonic()
    found = method(get_task(job.task), JOBS[job.task], job.seed, job.timeout)
    parent.send(time.monotonic() - began if found else None)


# ---- all of them


def measure(name: str, methods: Sequence[str], seeds: int, timeout: float) -> dict[str, Any]:
    """One task by every method, seeds one after another."""
    times: dict[str, list[float | None]] = {}
    for method in methods:
        times[method] = []
        for seed in range(1, seeds + 1):
            times[method].append(attempt(Job(method, name, seed, timeout)))
            print(f"{name}, {method}, seed {seed}: {_shown(times[method][-1], timeout)}", file=sys.stderr, flush=True)
    return {"task": name, "structure": str(JOBS[name]), "seconds": times}


def _shown(seconds: float | None, timeout: float) -> str:
    return f"not in {timeout:.0f} s" if seconds is None else f"{seconds:.2f} s"


def _summary(times: Sequence[float | None], timeout: float) -> str:
    """The median, and how many attempts succeeded if not all did."""
    found = [seconds for seconds in times if seconds is not None]
    median = statistics.median_high([float("inf") if seconds is None else seconds for seconds in times])
    text = _shown(None if median > timeout else median, timeout)
    return text if len(found) in (0, len(times)) else f"{text} ({len(found)} of {len(times)} seeds)"


def _chosen(parser: argparse.ArgumentParser, words: str | None, known: Sequence[str], what: str) -> list[str]:
    names = list(known) if words is None else [word.strip() for word in words.split(",")]
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"no {what} {', '.join(unknown)}: there are {'; '.join(known)}")
    return names


def main() -> None:
    parser = argparse.ArgumentParser(description="The search beside z3 and random search.")
    parser.add_argument("--tasks", help=f"which, with commas (default: {','.join(JOBS)})")
    parser.add_argument("--methods", help="which: search, z3, random, with commas (default: all)")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds of each attempt (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="attempts of each (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print one JSON value")
    arguments = parser.parse_args()
    if arguments.timeout <= 0 or arguments.seeds < 1:
        parser.error("--timeout is above 0, and --seeds is at least 1")
    names = _chosen(parser, arguments.tasks, tuple(JOBS), "job")
    methods = _chosen(parser, arguments.methods, tuple(METHODS), "method")
    began = time.monotonic()
    rows = [measure(name, methods, arguments.seeds, arguments.timeout) for name in names]
    if arguments.json:
        print(json.dumps({"timeout": arguments.timeout, "seeds": arguments.seeds, "tasks": rows}))
        return
    print("| median seconds |", " | ".join(methods), "|")
    print("| --- " * (1 + len(methods)) + "|")
    for row in rows:
        cells = [_summary(row["seconds"][method], arguments.timeout) for method in methods]
        print(f"| {row['task']} {row['structure']} |", " | ".join(cells), "|")
    seeds = f"{arguments.seeds} seed{'' if arguments.seeds == 1 else 's'}"
    print(f"\n{seeds}, {time.monotonic() - began:.0f} s in all", file=sys.stderr)


if __name__ == "__main__":
    main()
