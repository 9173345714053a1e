"""Measuring programs: machine code against hand-written C, NumPy and the reference interpreter, in one run."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from llvmlite import binding

from nram.errors import NramError
from nram.extensions import known_task
from nram.limits import wrong_cells
from nram.programs.files import read_program
from nram.programs.interpret import interpret
from nram.programs.ir import Program
from nram.programs.library import zoo_entries
from nram.programs.memory import default_max_steps
from nram.programs.native.jit import Job, compiled
from nram.programs.text import from_text

HAND_WRITTEN = Path(__file__).parents[3] / "benchmarks" / "native"  # in a checkout, not in a wheel
SCALAR = ("-O2", "-fno-tree-vectorize", "-fno-tree-slp-vectorize", "-fno-tree-loop-distribute-patterns")
FASTEST = ("-O3", "-march=native")

# Its steps only follow a pointer, so their time is the overhead of a step.
FOLLOW = from_text("nram program 1\nname: follow\nregisters: r1\n\nalways:\n    o1 = READ(r1)\n    r1 := o1\n")


class Sizes(NamedTuple):
    """How much is measured."""

    complexity: int = 100_000
    """Of tasks that go through an array."""
    small: int = 20
    """Complexity of tasks that take a few steps; these are measured on many memories, one call each."""
    memories: int = 10_000
    interpreted: int = 1_000
    """The complexity, or the number of memories, for the interpreter."""
    repeats: int = 101
    steps: int = 1_000_000
    """How often a pointer is followed, on each of the memory sizes."""
    memory_sizes: tuple[int, ...] = (100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)


QUICK = Sizes(complexity=10_000, memories=1_000, interpreted=100, repeats=11, steps=100_000)


# ---- the same tasks in NumPy, each on all memories of a batch


def _numpy_access(batch: np.ndarray) -> None:
    rows = np.arange(len(batch))
    batch[:, 0] = batch[rows, batch[:, 0] + 1]


def _numpy_increment(batch: np.ndarray) -> None:
    for memory in batch:
        memory[: np.flatnonzero(memory == 0)[0]] += 1


def _numpy_copy(batch: np.ndarray) -> None:
    for memory in batch:
        p = int(memory[0])
        memory[p : 2 * p - 1] = memory[1:p]


def _numpy_reverse(batch: np.ndarray) -> None:
    for memory in batch:
        p = int(memory[0])
        memory[p : 2 * p - 1] = memory[p - 1 : 0 : -1]


def _numpy_swap(batch: np.ndarray) -> None:
    rows = np.arange(len(batch))
    p, q = batch[:, 0].copy(), batch[:, 1].copy()
    batch[rows, p], batch[rows, q] = batch[rows, q], batch[rows, p]


NUMPY: dict[str, Callable[[np.ndarray], None]] = {
    "access": _numpy_access,
    "increment": _numpy_increment,
    "copy": _numpy_copy,
    "reverse": _numpy_reverse,
    "swap": _numpy_swap,
}
FEW_STEPS = ("access", "swap")


# ---- measuring


def measure(sizes: Sizes, progress: Callable[[str], None]) -> dict[str, Any]:
    """Measure each program beside its rivals, and the time of a step on memories of every size."""
    compiler = _compiler()
    tasks = []
    for task in NUMPY:
        with hand_written(task, compiler) as rivals:
            for program in programs_for(task):
                progress(f"{task}, {program.origin}")
                tasks.append(measure_program(task, program, rivals, sizes))
    progress("the time of a step")
    return {
        "processor": binding.get_host_cpu_name(),
        "compiler": None if compiler is None else compiler.version,
        "c_scalar": " ".join(SCALAR),
        "c_fastest": " ".join(FASTEST),
        "repeats": sizes.repeats,
        "tasks": tasks,
        "step": [measure_step(size, sizes) for size in sizes.memory_sizes],
    }


def programs_for(task: str) -> list[Program]:
    """The programs of the zoo, and the one written by hand."""
    programs = [entry.program for entry in zoo_entries() if entry.name == task]
    written = HAND_WRITTEN / f"{task}.nram"
    if written.exists() and all(program.origin != "written" for program in programs):
        programs.append(read_program(written))
    return programs


Solve = Callable[[np.ndarray], None]


def measure_program(task_name: str, program: Program, rivals: dict[str, Solve], sizes: Sizes) -> dict[str, Any]:
    """One program on one task. Times are medians, in seconds, of one call on all memories."""
    task = known_task(task_name)
    few_steps = task_name in FEW_STEPS
    complexity, memories = (sizes.small, sizes.memories) if few_steps else (sizes.complexity, 1)
    instances = task.sample(complexity, min(memories, 100), seed=0)
    fresh = np.resize(
        np.array([instance.input for instance in instances], np.int32), (memories, len(instances[0].input))
    )
    work = fresh.copy()
    job = Job(compiled(program), work, default_max_steps(work.shape[1]))
    calls: dict[str, Callable[[], None]] = {"native": job.run, "numpy": lambda: NUMPY[task_name](work)}
    calls |= {name: lambda solve=solve: solve(work) for name, solve in rivals.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(sizes.repeats):
        for name, call in calls.items():
            np.copyto(work, fresh)
            times[name].append(_seconds(call))
            if len(times[name]) == 1:
                for cells, instance in zip(work, instances, strict=False):
                    if wrong_cells(cells.tolist(), instance):
                        raise NramError(f"{task_name}: {name} gave a wrong answer, so its time means nothing")
    medians = {name: float(np.median(values)) for name, values in times.items()}
    steps = int(job.steps.sum())
    others = {name: medians.get(name) for name in ("c_scalar", "c_fastest", "numpy")}
    native = medians["native"]
    return {
        "task": task_name,
        "origin": program.origin,
        "complexity": complexity,
        "memories": memories,
        "steps": steps,
        "native": native,
        **others,
        "native_ns_per_step": 1e9 * native / steps,
        "interpreter_ns_per_step": _interpreted(task_name, program, sizes),
        **{f"native_to_{name}": None if other is None else native / other for name, other in others.items()},
    }


def _interpreted(task_name: str, program: Program, sizes: Sizes) -> float:
    few_steps = task_name in FEW_STEPS
    complexity, memories = (sizes.small, sizes.interpreted) if few_steps else (sizes.interpreted, 1)
    instances = known_task(task_name).sample(complexity, memories, seed=0)
    rates = []
    for _ in range(5):
        began = time.perf_counter()
        steps = sum(interpret(program, instance.input, 64 * len(instance.input)).steps for instance in instances)
        rates.append((time.perf_counter() - began) / steps)
    return 1e9 * float(np.median(rates))


def measure_step(memory_size: int, sizes: Sizes) -> dict[str, Any]:
    """The time of a step that follows a pointer, to the next cell or to one far away."""
    order = np.random.default_rng(0).permutation(memory_size).astype(np.int32)
    scattered = np.empty(memory_size, np.int32)
    scattered[order] = np.roll(order, -1)  # one cycle through all cells
    local = np.roll(np.arange(memory_size, dtype=np.int32), -1)
    code = compiled(FOLLOW)
    result: dict[str, Any] = {"memory_size": memory_size}
    for name, memory in (("local_ns", local), ("scattered_ns", scattered)):
        job = Job(code, memory[None], sizes.steps)
        job.run()
        times = [_seconds(job.run) for _ in range(5)]
        result[name] = 1e9 * float(np.median(times)) / sizes.steps
    return result


def _seconds(call: Callable[[], None]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


# ---- hand-written C


class Compiler(NamedTuple):
    path: str
    version: str


def _compiler() -> Compiler | None:
    path = shutil.which("gcc") or shutil.which("cc")
    if path is None or not HAND_WRITTEN.is_dir():
        return None
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    return Compiler(path, said.splitlines()[0] if said else path)


@contextmanager
def hand_written(task: str, compiler: Compiler | None) -> Iterator[dict[str, Solve]]:
    """The hand-written C of a task, compiled in two ways; empty without a compiler."""
    if compiler is None:
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="nram-") as folder:
        rivals = {}
        for name, options in (("c_scalar", SCALAR), ("c_fastest", FASTEST)):
            library = Path(folder, f"{name}.so")
            sources = [str(HAND_WRITTEN / f"{task}.c"), str(HAND_WRITTEN / "batch.c")]
            command = [compiler.path, *options, "-shared", "-fPIC", "-o", str(library), *sources]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise NramError(f"{compiler.path} could not compile {sources[0]}: {done.stderr.strip()[-1000:]}")
            rivals[name] = _solver(library)
        yield rivals


def _solver(library: Path) -> Solve:
    function = ctypes.CDLL(str(library)).solve_batch
    function.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]
    function.restype = None
    return lambda batch: function(batch.ctypes.data, *batch.shape)
