"""Which toolchain for the search's inner loop: LLVM through Numba and llvmlite, as in the package, or C?

    .venv/bin/python benchmarks/search/toolchains.py [--json]

The same chains in both (kernel.c is the same algorithm, its sixteen lanes in GCC's vectors), in one run. First both
must agree to the bit: the table, the counts, the cost and the order of the instances after chains on several tasks and
structures. Then they take turns on one core. Last come the times until each is ready, in processes of their own. All
times are the processor's, so that other work on the machine disturbs them little. It needs gcc.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

from nram.extensions import get_task
from nram.search.chains import anneal, blocks_of, random_table, shape_of
from nram.search.instances import Pool, task_pool
from nram.search.kernel import Annealing, Blocks
from nram.search.schedule import BY_LENGTH, BY_STEPS, Strategy
from nram.search.structure import Structure

OPTIONS = ("-O3", "-march=native", "-ffp-contract=off")  # a fused multiplication would round differently

# What is compared to the bit: task, structure, cost of an operation, instances in play at first.
AGREEMENT = (
    ("access", Structure(2), 0.0, 3),
    ("copy", Structure(3), 0.0, 16),
    ("reverse", Structure(3), 0.03, 1),
    ("listk", Structure(2, states=2), 0.0, 16),
    ("swap", Structure(4, 2), 0.0, 2),
    ("permutation", Structure(3, 2), 0.03, 32),
    ("merge", Structure(4, 3), 0.03, 100),
    ("walkbst", Structure(3, 2, states=2), 0.01, 7),
    ("increment", Structure(5, 2, states=2), 0.0, 16),
)
# What is timed: chains in the strategy that finds these programs.
SPEED = (
    ("copy", Structure(3), BY_STEPS),
    ("permutation", Structure(3, 2), BY_LENGTH),
    ("merge", Structure(4, 3), BY_LENGTH),
)

READY = """
import time
began = time.process_time()
from nram.search.chains import Annealing, anneal, blocks_of, random_table, shape_of
from nram.search.structure import Structure
imported = time.process_time()
import numpy as np
from nram.search.instances import task_pool
from nram.extensions import get_task
pool, structure = task_pool(get_task("access"), 0), Structure(2)
blocks, genes = blocks_of(pool), np.zeros((structure.rows, structure.width), np.int16)
before = time.process_time()
shape_of(structure)
lanes = time.process_time()
anneal(structure, genes, blocks, len(pool), Annealing(1, 1, 0.3, 0.1, 0.0, 16))
print(imported - began, lanes - before, time.process_time() - lanes)
"""


class Ending(NamedTuple):
    """What a chain gave, as far as both count it."""

    fits: bool
    candidates: int
    runs: int
    best: float
    active: int
    genes: bytes
    instances: bytes
    """In the places that they have at the end."""


@dataclass(frozen=True)
class Job:
    """One chain."""

    structure: Structure
    pool: Pool
    order: tuple[int, ...]
    """Of the instances."""
    genes: np.ndarray
    """At the start; not changed."""
    seed: int
    budget: int
    strategy: Strategy
    must_fit: bool = False

    def fresh(self) -> tuple[np.ndarray, Blocks]:
        """What a chain changes."""
        return self.genes.copy(), blocks_of(self.pool, self.order)


class Timed(NamedTuple):
    """A chain's end, and the seconds of the processor that it took."""

    ending: Ending
    seconds: float
    unchanged: int | None


# ---- the two


def with_llvm(job: Job) -> Timed:
    genes, blocks = job.fresh()
    strategy = job.strategy
    settings = Annealing(
        job.seed, job.budget, strategy.hot, strategy.cold, strategy.length_cost, strategy.at_first, job.must_fit
    )
    began = time.process_time()
    end = anneal(job.structure, genes, blocks, len(job.pool), settings)
    seconds = time.process_time() - began
    return Timed(Ending(*end, genes.tobytes(), _bytes(blocks)), seconds, None)


class CStructure(ctypes.Structure):
    _fields_ = [("operations", ctypes.c_void_p)] + [
        (name, ctypes.c_int64) for name in ("count", "registers", "states", "rows", "width")
    ]


class CInstances(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("starts", "sizes", "limits", "cells", "wanted", "counts")] + [
        (name, ctypes.c_int64) for name in ("blocks", "total", "most_cells", "most_outputs")
    ]


class CResult(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("fits", "candidates", "runs", "active", "unchanged")] + [
        ("best", ctypes.c_double)
    ]


class WithC:
    """The chain of kernel.c."""

    def __init__(self, library: Path, compiling: float):
        self.function = ctypes.CDLL(str(library)).run_chain
        self.compiling = compiling
        """Seconds of the processor, like all times here."""

    def __call__(self, job: Job) -> Timed:
        shape, result, watch = job.structure, CResult(), np.zeros(4)
        operations = shape_of(shape).operations
        genes, blocks = job.fresh()
        structure = CStructure(
            operations.ctypes.data,
            len(operations),
            shape.registers,
            shape.states,
            shape.rows,
            shape.width,
        )
        starts, cells = blocks[0], blocks[3]
        addresses = [array.ctypes.data for array in blocks]
        instances = CInstances(*addresses, len(starts), len(job.pool), starts.shape[1], cells.shape[1])
        arguments = (
            ctypes.c_int64(job.seed),
            ctypes.byref(structure),
            ctypes.c_void_p(genes.ctypes.data),
            ctypes.byref(instances),
            ctypes.c_int64(job.budget),
            ctypes.c_double(job.strategy.hot),
            ctypes.c_double(job.strategy.cold),
            ctypes.c_double(job.strategy.length_cost),
            ctypes.c_int64(job.strategy.at_first),
            ctypes.c_int64(job.must_fit),
            ctypes.c_void_p(watch.ctypes.data),
            ctypes.byref(result),
        )
        began = time.process_time()
        refused = self.function(*arguments)
        seconds = time.process_time() - began
        if refused:
            sys.exit("kernel.c has no room for this structure")
        fits, candidates, runs, best = bool(result.fits), result.candidates, result.runs, result.best
        ending = Ending(fits, candidates, runs, best, result.active, genes.tobytes(), _bytes(blocks))
        return Timed(ending, seconds, result.unchanged)


def _bytes(blocks: Blocks) -> bytes:
    return b"".join(array.tobytes() for array in blocks)


@contextmanager
def with_c() -> Iterator[WithC]:
    """kernel.c, compiled."""
    if shutil.which("gcc") is None:
        sys.exit("this measurement needs gcc")
    with tempfile.TemporaryDirectory(prefix="nram-") as folder:
        library = Path(folder, "kernel.so")
        source = Path(__file__).with_name("kernel.c")
        began = os.times()
        subprocess.run(["gcc", *OPTIONS, "-shared", "-fPIC", "-o", library, source, "-lm"], check=True)
        ended = os.times()
        yield WithC(library, sum(ended[2:4]) - sum(began[2:4]))


# ---- measuring


def job_for(task: str, structure: Structure, strategy: Strategy, seed: int, budget: int) -> Job:
    pool, rng = task_pool(get_task(task), 0), Random(seed)
    order = pool.shortest_first(rng) if strategy.small_first else rng.sample(range(len(pool)), len(pool))
    return Job(structure, pool, tuple(order), random_table(structure, seed), seed, budget, strategy)


def check_agreement(c: WithC, seeds: int, budget: int) -> int:
    """Run chains in both; the number of those that were equal, or an end with the first that was not."""
    equal = 0
    for task, structure, length_cost, at_first in AGREEMENT:
        strategy = BY_LENGTH._replace(length_cost=length_cost, at_first=at_first)
        for seed in range(1, seeds + 1):
            job = job_for(task, structure, strategy, seed, budget)
            ending = _same(c, job, f"{task}, {structure}, seed {seed}")
            equal += 1
            if ending.fits:
                found = np.frombuffer(ending.genes, np.int16).reshape(job.genes.shape)
                shorten = replace(
                    job, genes=found, strategy=strategy._replace(length_cost=0.02), must_fit=True, budget=budget // 4
                )
                _same(c, shorten, f"{task}, {structure}, seed {seed}, shortening")
                equal += 1
    return equal


def _same(c: WithC, job: Job, what: str) -> Ending:
    first, second = with_llvm(job).ending, c(job).ending
    if first != second:
        differing = [name for name in Ending._fields if getattr(first, name) != getattr(second, name)]
        sys.exit(
            f"{what}: LLVM gave {first[:5]}, C {second[:5]}; different: {', '.join(differing)}: "
            "kernel.c must follow src/nram/search/kernel.py and lanes.py"
        )
    return first


def measure_speed(
    c: WithC, task: str, structure: Structure, strategy: Strategy, chains: int, budget: int, repeats: int
) -> dict[str, Any]:
    """Both on the same chains, in turns; the medians of what all chains took."""
    calls: dict[str, Callable[[Job], Timed]] = {"llvm": with_llvm, "c": c}
    jobs = [job_for(task, structure, strategy, seed, budget) for seed in range(1, chains + 1)]
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name in seconds:
            seconds[name].append(0.0)
        for job in jobs:
            for name, call in calls.items():
                seconds[name][-1] += call(job).seconds
    counted = [c(job) for job in jobs]
    candidates = sum(one.ending.candidates for one in counted)
    unchanged = sum(one.unchanged or 0 for one in counted)
    medians = {name: statistics.median(all_of_them) for name, all_of_them in seconds.items()}
    return {
        "task": task,
        "structure": str(structure),
        "candidates": candidates,
        "unchanged": unchanged / candidates,
        "runs_per_evaluated": sum(one.ending.runs for one in counted) / (candidates - unchanged),
        **{f"{name}_per_s": candidates / value for name, value in medians.items()},
        "c_to_llvm": medians["llvm"] / medians["c"],
        "c_to_llvm_range": _range([one / other for one, other in zip(seconds["llvm"], seconds["c"], strict=True)]),
    }


def _range(values: list[float]) -> tuple[float, float]:
    return min(values), max(values)


def measure_ready(c: WithC) -> dict[str, float]:
    """Seconds until the first chain can start: the first time ever, and with Numba's cache of an earlier process."""
    with tempfile.TemporaryDirectory(prefix="nram-") as folder:
        said = [
            [
                float(word)
                for word in subprocess.run(
                    [sys.executable, "-c", READY],
                    env={**os.environ, "NUMBA_CACHE_DIR": folder},
                    capture_output=True,
                    text=True,
                    check=True,
                ).stdout.split()
            ]
            for _ in range(4)
        ]
    imports, lanes, cached = (statistics.median(column) for column in zip(*said[1:], strict=True))
    return {
        "imports": imports,
        "lanes": lanes,
        "numba_first_time": said[0][2],
        "numba_cached": cached,
        "gcc": c.compiling,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="LLVM (Numba and llvmlite) and C on the inner loop of the search.")
    parser.add_argument("--json", action="store_true", help="print one JSON value")
    parser.add_argument("--chains", type=int, default=4, help="of each task and repeat (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=5, help="of a measurement (default: %(default)s)")
    parser.add_argument("--budget", type=int, default=300_000, help="candidates of a chain (default: %(default)s)")
    arguments = parser.parse_args()
    sizes = arguments.chains, arguments.budget, arguments.repeats
    if min(sizes) < 1:
        parser.error("--chains, --repeats and --budget must be 1 or more")
    with with_c() as c:
        equal = check_agreement(c, 3, 100_000)
        speed = [measure_speed(c, *what, *sizes) for what in SPEED]
        ready = measure_ready(c)
    compiler = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True, check=True).stdout.strip()
    if arguments.json:
        said = {"equal_chains": equal, "gcc": compiler, "options": OPTIONS, "speed": speed, "seconds_to_ready": ready}
        print(json.dumps(said))
        return
    print(f"{equal} chains gave the same table, counts, cost and order of instances in both (gcc {compiler})\n")
    columns = (
        "",
        "candidates",
        "unchanged",
        "instances run for each other",
        "LLVM, k/s",
        "C, k/s",
        "C / LLVM",
        "from, to",
    )
    print(f"| {' | '.join(columns)} |")
    print("| --- " * len(columns) + "|")
    for row in speed:
        low, high = row["c_to_llvm_range"]
        print(
            f"| {row['task']} {row['structure']} | {row['candidates']:,} | {row['unchanged']:.0%} "
            f"| {row['runs_per_evaluated']:.2f} | {row['llvm_per_s'] / 1e3:,.0f} | {row['c_per_s'] / 1e3:,.0f} "
            f"| {row['c_to_llvm']:.2f} | {low:.2f} to {high:.2f} |"
        )
    print("\n| seconds until it is ready | |")
    print("| --- | --- |")
    print(f"| imports of Numba, llvmlite and the package | {ready['imports']:.2f} |")
    print(f"| LLVM: the lanes, in every process | {ready['lanes']:.2f} |")
    print(f"| Numba: the chain, the first time ever | {ready['numba_first_time']:.2f} |")
    print(f"| Numba: the chain, from its cache | {ready['numba_cached']:.2f} |")
    print(f"| gcc: all of it, once, when the package is built | {ready['gcc']:.2f} |")


if __name__ == "__main__":
    main()
