"""Searches all ten tasks with many seeds and no given structure: how often, how fast, and are the programs right?

    .venv/bin/python benchmarks/search/ten_tasks.py FOLDER [--tasks access,copy] [--seeds 10] [--budget SECONDS]

Every program must be exact and halt on 10,000 fresh instances of all n up to 50 and on instances of n = 100,000, under
T(n). FOLDER keeps programs and results as they arrive. A second call continues.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from nram import find_program
from nram.extensions import get_task, task_names
from nram.programs.execute import execute
from nram.programs.files import read_program, save_program
from nram.programs.ir import Program
from nram.search.instances import exact
from nram.tasks.base import Task

FRESH, LARGEST = 10_000, 50
HUGE, HUGE_INSTANCES = 100_000, 3


def main() -> None:
    parser = argparse.ArgumentParser(description="The search on all tasks.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tasks", default=",".join(task_names()), help="which (default: all)")
    parser.add_argument("--seeds", type=int, default=10, help="of each task (default: %(default)s)")
    parser.add_argument("--budget", type=float, default=900.0, help="seconds of each (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=2, help="threads of each (default: %(default)s)")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    log = arguments.folder / "results.jsonl"
    done = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    names = arguments.tasks.split(",")
    for seed in range(arguments.seeds):
        for name in names:
            if not any((one["task"], one["seed"]) == (name, seed) for one in done):
                done.append(one := attempt(arguments, name, seed))
                with log.open("a") as file:
                    file.write(json.dumps(one) + "\n")
                print(f"{name}, seed {seed}: {one}", file=sys.stderr, flush=True)
    print("| task | found | median | quickest, slowest | operations + rows | exact on fresh and huge |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in names:
        print(_line(name, [one for one in done if one["task"] == name]))


def attempt(arguments: argparse.Namespace, name: str, seed: int) -> dict[str, Any]:
    task = get_task(name)
    file = arguments.folder / f"{name}-{seed}.nram"
    outcome = find_program(task, budget=arguments.budget, seed=seed, workers=arguments.workers)
    result: dict[str, Any] = {
        "task": name,
        "seed": seed,
        "seconds": outcome.seconds,
        "candidates": outcome.state.candidates,
        "found": outcome.program is not None,
    }
    if outcome.program is not None:
        save_program(replace(outcome.program, name=name, task=name, limit=task.step_limit), file)
        result |= {"structure": str(outcome.structure)} | looked_at(read_program(file), task)
    return result


def looked_at(program: Program, task: Task) -> dict[str, Any]:
    """The size of a program, and how many fresh instances it gets right."""
    sizes = range(task.min_complexity, LARGEST + 1)
    each = -(-FRESH // len(sizes))
    fresh = [count_right(program, task, n, each, task.least_memory(n) + n % 7) for n in sizes]
    huge = count_right(program, task, HUGE, HUGE_INSTANCES, task.least_memory(HUGE))
    return {
        "operations": program.operations,
        "rows": program.rows,
        "fresh": each * len(sizes),
        "fresh_right": sum(fresh),
        "huge": HUGE_INSTANCES,
        "huge_right": huge,
    }


def count_right(program: Program, task: Task, n: int, count: int, memory_size: int) -> int:
    instances = task.sample(n, count, 1_234_567 + n, memory_size)
    result = execute(program, [instance.input for instance in instances], instances[0].steps)
    return sum(
        fine and bool(halted) for fine, halted in zip(exact(instances, result.memory), result.halted, strict=True)
    )


def _line(name: str, results: list[dict[str, Any]]) -> str:
    found = [one for one in results if one["found"]]
    times = [one["seconds"] if one["found"] else float("inf") for one in results]
    if not found:
        return f"| {name} | 0 of {len(results)} | | | | |"
    median = statistics.median(times)
    shortest = min(found, key=lambda one: one["operations"] + one["rows"])
    perfect = sum(one["fresh_right"] == one["fresh"] and one["huge_right"] == one["huge"] for one in found)
    return " | ".join(
        (
            f"| {name}",
            f"{len(found)} of {len(results)}",
            f"{median:.1f} s" if median < float("inf") else "not found",
            f"{min(one['seconds'] for one in found):.1f}, {max(one['seconds'] for one in found):.1f} s",
            f"{shortest['operations']} + {shortest['rows']}",
            f"{perfect} of {len(found)} |",
        )
    )


if __name__ == "__main__":
    main()
