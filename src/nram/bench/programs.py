"""Measuring programs: machine code against hand-written C, NumPy and the reference interpreter, in one run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
from llvmlite import binding

from nram.bench.rivals import FASTEST, NUMPY, SCALAR, Solve, find_compiler, hand_written
from nram.errors import NramError
from nram.extensions import get_task, known_task, task_names
from nram.limits import wrong_cells
from nram.programs.files import read_program
from nram.programs.interpret import interpret
from nram.programs.ir import Program
from nram.programs.library import zoo_entries
from nram.programs.memory import default_max_steps
from nram.programs.native.jit import Job, compiled
from nram.programs.text import from_text
from nram.runtime import cpu_cores, versions
from nram.tasks.base import Instance, Task

SUITE = Path(str(files("nram"))) / "examples" / "suite"

# Its steps only follow a pointer, so their time is the overhead of a step.
FOLLOW = from_text("nram program 1\nname: follow\nregisters: r1\n\nalways:\n    o1 = READ(r1)\n    r1 := o1\n")


class Sizes(NamedTuple):
    """How much is measured."""

    complexity: int = 100_000
    """Of the one large instance."""
    candidates: int = 3
    """So many large instances are drawn; the one on which the program takes most steps is measured."""
    small: tuple[int, int] = (10, 20)
    """The least and the largest complexity of the instances of a batch. All have the memory of the largest."""
    memories: int = 5_000
    """How many instances a batch has. All are different: the processor would learn the branches of a few by heart."""
    interpreted: int = 1_000
    """The complexity for the interpreter."""
    repeats: int = 31
    steps: int = 1_000_000
    """How often a pointer is followed, on each of the memory sizes."""
    memory_sizes: tuple[int, ...] = (100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)


QUICK = Sizes(complexity=2_000, candidates=1, memories=100, interpreted=50, repeats=2, steps=100_000)

LEAST_STEPS = 1_000
"""A large instance on which a program takes fewer steps is not measured: the call would take most of the time."""


def measure(sizes: Sizes, names: Sequence[str], progress: Callable[[str], None]) -> dict[str, Any]:
    """Measure the programs of these tasks beside their rivals, and the time of a step on memories of every size."""
    compiler, device = find_compiler(), f"{binding.get_host_cpu_name()}, {cpu_cores()} cores"
    made = {"command": "nram bench programs", "versions": versions(), "device": device}
    measured = []
    with hand_written(compiler) as solutions:
        for name in names:
            progress(name)
            measured += [line | made for line in measure_task(name, solutions(name), sizes)]
    progress("the time of a step")
    return {
        "processor": binding.get_host_cpu_name(),
        "compiler": None if compiler is None else compiler.version,
        "c_scalar": " ".join(SCALAR),
        "c_fastest": " ".join(FASTEST),
        "repeats": sizes.repeats,
        "tasks": measured,
        "step": [measure_step(size, sizes) for size in sizes.memory_sizes],
    }


def measured_names() -> list[str]:
    """The tasks of the paper, and the problems of the suite."""
    return [*task_names(), *(path.stem for path in sorted((SUITE / "programs").glob("*.nram")))]


def task_of(name: str) -> Task:
    return known_task(name) if name in task_names() else get_task(str(SUITE / f"{name}.py"))


def programs_for(name: str) -> list[Program]:
    """The programs of the zoo; of a problem of the suite, the one written by hand."""
    written = SUITE / "programs" / f"{name}.nram"
    if written.exists():
        return [read_program(written)]
    return [entry.program for entry in zoo_entries() if entry.name == name]


def measure_task(name: str, rivals: dict[str, Solve], sizes: Sizes) -> Iterator[dict[str, Any]]:
    """The programs of one task, each on one large instance and on a batch of small ones."""
    task = task_of(name)
    calls = rivals | ({"numpy": NUMPY[name]} if name in NUMPY else {})
    large, small = task.sample(sizes.complexity, sizes.candidates, seed=0), small_instances(task, sizes)
    for program in programs_for(name):
        about = {"subject": name, "seed": 0, "program": program.origin}
        longest = max(large, key=lambda instance: int(_job(program, _batch([instance])).steps[0]))
        interpreted = _interpreted(program, task, sizes)
        most = f"{sizes.small[0]} to {sizes.small[1]}"
        for shape, instances, n in (("one", [longest], str(sizes.complexity)), ("many", small, most)):
            found = measure_batch(program, instances, calls, sizes.repeats)
            if shape == "many" or found["steps"] >= LEAST_STEPS:
                yield about | {"shape": shape, "n": n} | found | {"interpreter_ns_per_step": interpreted}


def small_instances(task: Task, sizes: Sizes) -> list[Instance]:
    """Instances of every complexity from the least to the largest, in random order."""
    least, largest = sizes.small
    complexities = range(max(least, task.min_complexity), largest + 1)
    memory_size, each = task.least_memory(largest), sizes.memories // len(complexities) + 1
    instances = [instance for n in complexities for instance in task.sample(n, each, n, memory_size)]
    Random(0).shuffle(instances)
    return instances[: sizes.memories]


def measure_batch(
    program: Program, instances: Sequence[Instance], rivals: dict[str, Solve], repeats: int
) -> dict[str, Any]:
    """A program and its rivals in turn on the same memories. Times are of one call, in seconds of the processor."""
    fresh = _batch(instances)
    work = fresh.copy()
    job = _job(program, work)
    calls: dict[str, Callable[[], None]] = {"seconds": job.run}
    calls |= {name: lambda solve=solve: solve(work) for name, solve in rivals.items()}
    for name, call in calls.items():
        np.copyto(work, fresh)
        call()
        for cells, instance in zip(work, instances, strict=True):
            if wrong_cells(cells.tolist(), instance):
                raise NramError(f"{program.name}: {name} gave a wrong answer, so its time means nothing")
    return {
        "memories": len(work),
        "cells": work.shape[1],
        "steps": int(job.steps.sum()),
        **_times(calls, lambda: np.copyto(work, fresh), repeats),
    }


def _batch(instances: Sequence[Instance]) -> np.ndarray:
    return np.array([instance.input for instance in instances], np.int32)


def _job(program: Program, batch: np.ndarray) -> Job:
    """A run of a program on a batch, which has run once."""
    job = Job(compiled(program), batch, default_max_steps(batch.shape[1]))
    job.run()
    return job


def _times(calls: dict[str, Callable[[], None]], prepare: Callable[[], None], repeats: int) -> dict[str, float]:
    """The least time of the processor for each of the calls, which take turns."""
    times = dict.fromkeys(calls, float("inf"))
    for _ in range(repeats):
        for name, call in calls.items():
            prepare()
            times[name] = min(times[name], _seconds(call))
    return times


def _interpreted(program: Program, task: Task, sizes: Sizes) -> float:
    """Nanoseconds of the interpreter for a step."""
    instance = task.sample(sizes.interpreted, 1, seed=0)[0]
    limit = default_max_steps(len(instance.input))
    rates = []
    for _ in range(3):
        began = time.thread_time()
        steps = interpret(program, instance.input, limit).steps
        rates.append((time.thread_time() - began) / steps)
    return 1e9 * min(rates)


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
    """Time of the processor, which other processes on it do not add to."""
    began = time.thread_time()
    call()
    return time.thread_time() - began
