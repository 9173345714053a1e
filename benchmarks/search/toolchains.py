"""Which toolchain for the search's inner loop: Numba, as in the package, or C? The same chains in both, in one run.

    .venv/bin/python benchmarks/search/toolchains.py [--json]

First both must agree to the bit: the table, the counts and the cost of chains on several tasks and structures. Then
they take turns on one core. Last come Numba's times of compiling, in processes of their own. It needs gcc.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nram.search.instances import Arrays, task_pool
from nram.search.kernel import random_genes, run_chain
from nram.search.structure import Structure
from nram.tasks import get_task

OPTIONS = ("-O3", "-march=native", "-ffp-contract=off")  # a fused multiplication would round differently
HOT, COLD = 0.3, 0.1

# What is compared to the bit: task, structure, cost of an operation.
AGREEMENT = (
    ("access", Structure(2), 0.0),
    ("copy", Structure(3), 0.0),
    ("reverse", Structure(3), 0.002),
    ("listk", Structure(2, states=2), 0.0),
    ("swap", Structure(4, 2), 0.0),
    ("permutation", Structure(3, 2), 0.002),
    ("merge", Structure(3, 3), 0.0),
    ("walkbst", Structure(3, 2, states=2), 0.0),
)
SPEED = (("copy", Structure(3)), ("swap", Structure(4, 2)), ("permutation", Structure(3, 2)))

COMPILING = """
import time
began = time.perf_counter()
import numpy as np
from nram.search.instances import task_pool
from nram.search.kernel import run_chain
from nram.search.structure import Structure
from nram.tasks import get_task
imported = time.perf_counter()
arrays, structure = task_pool(get_task("access"), 0).arrays, Structure(2)
ready = time.perf_counter()
genes = np.zeros((structure.rows, structure.width), np.int16)
run_chain(1, structure.codes, structure.arity, 2, 1, genes, *arrays, 1, 0.3, 0.1, 0.0, False, np.zeros(4))
print(imported - began, time.perf_counter() - ready)
"""


class Ending(NamedTuple):
    """What a chain gave, as far as both count it."""

    fits: bool
    candidates: int
    runs: int
    best: float
    active: int
    genes: bytes


class Job(NamedTuple):
    """One chain."""

    structure: Structure
    arrays: Arrays
    genes: np.ndarray
    """At the start; not changed."""
    seed: int
    budget: int
    length_cost: float = 0.0
    must_fit: bool = False


# ---- the two


def with_numba(job: Job) -> Ending:
    genes, shape = job.genes.copy(), job.structure
    fits, candidates, runs, best, active = run_chain(
        job.seed,
        shape.codes,
        shape.arity,
        shape.registers,
        shape.states,
        genes,
        *job.arrays,
        job.budget,
        HOT,
        COLD,
        job.length_cost,
        job.must_fit,
        np.zeros(4),
    )
    return Ending(fits, candidates, runs, best, active, genes.tobytes())


class CStructure(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("modules", "arity")] + [
        (name, ctypes.c_int64) for name in ("count", "registers", "states", "rows", "width")
    ]


class CInstances(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("starts", "sizes", "limits", "cells", "wanted", "cell_counts")] + [
        (name, ctypes.c_int64) for name in ("total", "memory_width", "cells_width")
    ]


class CResult(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("fits", "candidates", "runs", "active", "unchanged")] + [
        ("best", ctypes.c_double)
    ]


class WithC:
    """The chain of kernel.c. `last` is what it said of the last one."""

    def __init__(self, library: Path):
        self.function = ctypes.CDLL(str(library)).run_chain
        self.last = CResult()

    def __call__(self, job: Job) -> Ending:
        genes, shape, arrays, result = job.genes.copy(), job.structure, job.arrays, CResult()
        structure = CStructure(
            shape.codes.ctypes.data,
            shape.arity.ctypes.data,
            len(shape.codes),
            shape.registers,
            shape.states,
            shape.rows,
            shape.width,
        )
        addresses = [array.ctypes.data for array in arrays]
        instances = CInstances(*addresses, len(arrays.sizes), arrays.starts.shape[1], arrays.cells.shape[1])
        refused = self.function(
            ctypes.c_int64(job.seed),
            ctypes.byref(structure),
            ctypes.c_void_p(genes.ctypes.data),
            ctypes.byref(instances),
            ctypes.c_int64(job.budget),
            ctypes.c_double(HOT),
            ctypes.c_double(COLD),
            ctypes.c_double(job.length_cost),
            ctypes.c_int64(job.must_fit),
            ctypes.byref(result),
        )
        if refused:
            sys.exit("kernel.c has no room for this structure")
        self.last = result
        return Ending(bool(result.fits), result.candidates, result.runs, result.best, result.active, genes.tobytes())


@contextmanager
def with_c():
    """kernel.c, compiled."""
    if shutil.which("gcc") is None:
        sys.exit("this measurement needs gcc")
    with tempfile.TemporaryDirectory(prefix="nram-") as folder:
        library = Path(folder, "kernel.so")
        source = Path(__file__).with_name("kernel.c")
        subprocess.run(["gcc", *OPTIONS, "-shared", "-fPIC", "-o", library, source, "-lm"], check=True)
        yield WithC(library)


# ---- measuring


def job_for(task: str, structure: Structure, seed: int, budget: int, **rest: Any) -> Job:
    genes = np.zeros((structure.rows, structure.width), np.int16)
    random_genes(seed, structure.codes, structure.registers, structure.states, genes)
    return Job(structure, task_pool(get_task(task), 0).arrays, genes, seed, budget, **rest)


def check_agreement(c: WithC, seeds: int, budget: int) -> int:
    """Run chains in both; the number of those that were equal, or an end with the first that was not."""
    equal = 0
    for task, structure, length_cost in AGREEMENT:
        for seed in range(1, seeds + 1):
            job = job_for(task, structure, seed, budget, length_cost=length_cost)
            first, second = with_numba(job), c(job)
            if first != second:
                sys.exit(
                    f"{task}, {structure}, seed {seed}: Numba gave {first[:-1]}, C {second[:-1]}, "
                    f"tables {'equal' if first.genes == second.genes else 'different'}: "
                    "kernel.c must follow src/nram/search/kernel.py"
                )
            equal += 1
            if first.fits:
                found = np.frombuffer(first.genes, np.int16).reshape(job.genes.shape)
                shorten = job._replace(genes=found, length_cost=0.002, must_fit=True, budget=budget // 4)
                if with_numba(shorten) != c(shorten):
                    sys.exit(f"{task}, {structure}, seed {seed}: shortening differs between Numba and C")
                equal += 1
    return equal


def measure_speed(c: WithC, task: str, structure: Structure, chains: int, budget: int) -> dict[str, Any]:
    """Both on the same chains, in turns."""
    seconds = {"numba": 0.0, "c": 0.0}
    calls: dict[str, Callable[[Job], Ending]] = {"numba": with_numba, "c": c}
    candidates = runs = unchanged = 0
    for seed in range(1, chains + 1):
        job = job_for(task, structure, seed, budget)
        for name, call in calls.items():
            began = time.process_time()
            call(job)
            seconds[name] += time.process_time() - began
        candidates += c.last.candidates
        runs += c.last.runs
        unchanged += c.last.unchanged
    return {
        "task": task,
        "structure": str(structure),
        "candidates": candidates,
        "unchanged": unchanged / candidates,
        "runs_per_evaluated": runs / (candidates - unchanged),
        **{f"{name}_per_s": candidates / value for name, value in seconds.items()},
        "c_to_numba": seconds["numba"] / seconds["c"],
    }


def measure_compiling() -> dict[str, float]:
    """Seconds until the first chain can start: the first time ever, and with the cache of an earlier process."""
    with tempfile.TemporaryDirectory(prefix="nram-") as folder:
        said = [
            subprocess.run(
                [sys.executable, "-c", COMPILING],
                env={**os.environ, "NUMBA_CACHE_DIR": folder},
                capture_output=True,
                text=True,
                check=True,
            ).stdout.split()
            for _ in range(2)
        ]
    return {"import": float(said[1][0]), "cold": float(said[0][1]), "cached": float(said[1][1])}


def main() -> None:
    parser = argparse.ArgumentParser(description="Numba and C on the inner loop of the search.")
    parser.add_argument("--json", action="store_true", help="print one JSON value")
    parser.add_argument("--chains", type=int, default=8, help="of each task and measurement (default: %(default)s)")
    parser.add_argument("--budget", type=int, default=500_000, help="candidates of a chain (default: %(default)s)")
    arguments = parser.parse_args()
    with with_c() as c:
        equal = check_agreement(c, 3, 100_000)
        speed = [measure_speed(c, *what, arguments.chains, arguments.budget) for what in SPEED]
    compiling = measure_compiling()
    if arguments.json:
        print(json.dumps({"equal_chains": equal, "options": OPTIONS, "speed": speed, "numba_seconds": compiling}))
        return
    print(f"{equal} chains gave the same table, counts and cost in both\n")
    print("| | candidates | unchanged | runs of an instance for each other | Numba, k/s | C, k/s | C / Numba |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for row in speed:
        print(
            f"| {row['task']} {row['structure']} | {row['candidates']:,} | {row['unchanged']:.0%} "
            f"| {row['runs_per_evaluated']:.2f} | {row['numba_per_s'] / 1e3:,.0f} | {row['c_per_s'] / 1e3:,.0f} "
            f"| {row['c_to_numba']:.2f} |"
        )
    print(
        f"\nNumba: {compiling['cold']:.1f} s to compile the first time, {compiling['cached']:.2f} s from its cache, "
        f"after {compiling['import']:.1f} s of imports"
    )


if __name__ == "__main__":
    main()
