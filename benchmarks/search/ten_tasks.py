"""Searches all ten tasks with many seeds and no given structure: how often, how fast, and are the programs right?

    python benchmarks/search/ten_tasks.py --out results/search-ten-tasks.jsonl [--tasks access,copy] [--seeds 5]
    python benchmarks/tables.py ten-tasks results/search-ten-tasks.jsonl

A program is exact if it is right and halts under T(n) on 10,000 fresh instances of all n up to 50 and on three of n =
100,000. `--keep FOLDER` keeps the programs. A second call continues. Run nothing else on the machine meanwhile.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from nram import find_program
from nram.extensions import get_task, task_names
from nram.programs.execute import execute
from nram.programs.files import save_program
from nram.programs.ir import Program
from nram.runtime import cpu_cores, versions
from nram.search.instances import exact
from nram.tasks.base import Task

FRESH, LARGEST = 10_000, 50
HUGE, HUGE_INSTANCES = 100_000, 3


def main() -> None:
    parser = argparse.ArgumentParser(description="The search on all tasks.")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="one line of JSON for each search")
    parser.add_argument("--tasks", default=",".join(task_names()), help="which (default: all)")
    parser.add_argument("--seeds", type=int, default=5, help="of each task (default: %(default)s)")
    parser.add_argument("--budget", type=float, default=900.0, help="seconds of each (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=2, help="threads of each (default: %(default)s)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the programs")
    arguments = parser.parse_args()
    lines = arguments.out.read_text().splitlines() if arguments.out.exists() else []
    known = {(line["subject"], line["seed"]) for line in map(json.loads, lines)}
    for seed in range(arguments.seeds):
        for name in arguments.tasks.split(","):
            if (name, seed) not in known:
                line = attempt(arguments, name, seed)
                with arguments.out.open("a") as file:
                    file.write(json.dumps(line) + "\n")
                print(f"{name}, seed {seed}: {line}", file=sys.stderr, flush=True)


def attempt(arguments: argparse.Namespace, name: str, seed: int) -> dict[str, Any]:
    task = get_task(name)
    outcome = find_program(task, budget=arguments.budget, seed=seed, workers=arguments.workers)
    line: dict[str, Any] = {
        "subject": name,
        "seed": seed,
        "command": f"nram search {name} --seed {seed} --workers {arguments.workers} --budget {arguments.budget:g}",
        "seconds": round(outcome.seconds, 2),
        "candidates": outcome.state.candidates,
        "found": outcome.program is not None,
        "exact": False,
    }
    if outcome.program is not None:
        if arguments.keep:
            arguments.keep.mkdir(parents=True, exist_ok=True)
            named = replace(outcome.program, name=name, task=name, limit=task.step_limit)
            save_program(named, arguments.keep / f"{name}-{seed}.nram")
        line |= {"structure": str(outcome.structure)} | looked_at(outcome.program, task)
    return line | {"device": f"{cpu_cores()} x {platform.machine()} CPU", "versions": versions()}


def looked_at(program: Program, task: Task) -> dict[str, Any]:
    """The size of a program, and how many fresh instances it gets right."""
    sizes = range(task.min_complexity, LARGEST + 1)
    each = -(-FRESH // len(sizes))
    fresh = [count_right(program, task, n, each, task.least_memory(n) + n % 7) for n in sizes]
    huge = count_right(program, task, HUGE, HUGE_INSTANCES, task.least_memory(HUGE))
    exact = sum(fresh) == each * len(sizes) and huge == HUGE_INSTANCES
    return {"operations": program.operations, "rows": program.rows, "exact": exact}


def count_right(program: Program, task: Task, n: int, count: int, memory_size: int) -> int:
    instances = task.sample(n, count, 1_234_567 + n, memory_size)
    result = execute(program, [instance.input for instance in instances], instances[0].steps)
    return sum(
        fine and bool(halted) for fine, halted in zip(exact(instances, result.memory), result.halted, strict=True)
    )


if __name__ == "__main__":
    main()
