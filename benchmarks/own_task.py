"""How fast training is on a user-defined task: the same task with a traced sampler and with a sampler in Python.

    python benchmarks/own_task.py                                    # on a GPU: 512 members
    python benchmarks/own_task.py --population 8 --device cpu        # on two cores

Both train the first stage of a group of the recipe, in turn and in one process, with the step limit of its first
islands. The plain task is checked at every call, as a task from a file is. Rates are example-steps (one example through
one timestep) a second over whole rounds: training, the wait for examples, the check and culling. `draw_us` is the time
of one draw in Python.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

import nram
from nram.extensions.tasks import check_calls
from nram.runtime import device_name, prepare_devices
from nram.tasks import TASKS, Task, TracedInstance
from nram.training.group import Group, Hooks, example_steps
from nram.training.settings import load_config

WARM_UP = 10  # rounds: the first compiles, and so may those in which islands first clone or restart
MAXIMUM = Path(nram.__file__).parent / "examples" / "tasks" / "maximum.py"


def maximum_traced(key: Any, n: Any, memory_size: int) -> TracedInstance:
    """The sampler of the worked example, written for compiled code."""
    address = jnp.arange(memory_size)
    values = jax.random.randint(key, (memory_size,), 1, memory_size)
    start = jnp.where((address >= 1) & (address <= n), values, 0).astype(jnp.int32)
    cells = address == 0
    return TracedInstance(start, jnp.where(cells, start.max(), start), cells, cells)


def pair(name: str) -> tuple[Task, Task]:
    """The task with a traced sampler, and without: this process knows both by name."""
    task = nram.get_task(MAXIMUM if name == "maximum" else name)
    traced = replace(task, sample_traced=maximum_traced) if name == "maximum" else task
    plain = check_calls(replace(task, name=f"{name}-plain", sample_traced=None), name, None)
    for one in (traced, plain):
        TASKS[one.name] = one
    return traced, plain


def trained_group(task: Task, chosen: argparse.Namespace, devices: list[Any]) -> Group:
    """The group of the recipe in its first stage, which never ends."""
    config = load_config(task.name).group_configs[chosen.group]
    first = config.stages[0]
    cull = replace(first.cull, islands=min(first.cull.islands, max(1, chosen.population // 8)))
    stage = replace(first, steps=10**6, stop_at=0, population=chosen.population, cull=cull)
    hooks = Hooks(*[lambda *words: None] * len(Hooks._fields))
    return Group(replace(config, draw_steps=False, stages=(stage, *config.stages[1:])), devices, hooks, again=False)


def draw_seconds(task: Task, n: int, memory_size: int, count: int = 2000) -> float:
    rng, began = random.Random(0), time.perf_counter()
    for _ in range(count):
        task.solved(task.sample_input(rng, n, memory_size), n)
    return (time.perf_counter() - began) / count


def compare(name: str, chosen: argparse.Namespace, devices: list[Any]) -> dict[str, Any]:
    tasks = pair(name)
    groups = [trained_group(task, chosen, devices) for task in tasks]
    for group in groups:
        for _ in range(WARM_UP):
            group.round()
    seconds, rounds = [0.0, 0.0], [0, 0]
    for _ in range(chosen.turns):
        for i, group in enumerate(groups):
            began = time.perf_counter()
            while (took := time.perf_counter() - began) < chosen.seconds / chosen.turns:
                group.round()
                rounds[i] += 1
            seconds[i] += took
    config, stage = groups[0].config, groups[0].stage
    work = config.check_every * example_steps(config, stage)
    traced, plain = (rounds[i] * work / seconds[i] for i in range(2))
    size = config.memory_size(stage)
    return {
        "task": name,
        "device": device_name(devices),
        "population": stage.population,
        "batch": config.batch,
        "memory_size": size,
        "draw_us": round(1e6 * draw_seconds(tasks[1], stage.max_complexity, size), 1),
        "round_ms": round(1e3 * seconds[0] / rounds[0], 1),
        "traced_example_steps_per_s": round(traced),
        "plain_example_steps_per_s": round(plain),
        "ratio": round(plain / traced, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", default=["copy", "maximum"], help="a built-in task, or maximum")
    numbers = {
        "population": (512, "members"),
        "group": (0, "of the recipe"),
        "seconds": (20, "of each"),
        "turns": (5, ""),
    }
    for number, (default, meaning) in numbers.items():
        parser.add_argument(f"--{number}", type=int, default=default, help=f"{meaning} (default: %(default)s)")
    parser.add_argument("--device", default="auto", help="auto, cpu or gpu (default: %(default)s)")
    chosen = parser.parse_args()
    devices = prepare_devices(chosen.device)
    for name in chosen.tasks:
        print(json.dumps(compare(name, chosen, devices)), flush=True)


if __name__ == "__main__":
    main()
