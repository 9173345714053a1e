"""How fast training is on a user-defined task: the same task with a traced sampler and with a sampler in Python.

    python benchmarks/own_task.py                                    # on a GPU: 512 members, batches of 16
    python benchmarks/own_task.py --population 8 --device cpu        # on two cores

Both train the same networks on the same sizes, in turn and in one process. The plain task is checked at every call, as
a task from a file is. Rates are example-steps (one example through one timestep) a second over all chunks but those
that compile; a chunk includes the wait for its examples. `draw_us` is the time of one draw in Python.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import nram
from nram.bench.shape import StepShape
from nram.extensions.tasks import check_calls
from nram.runtime import device_name, prepare_devices
from nram.tasks import TASKS, Task, TracedInstance

MAXIMUM = Path(nram.__file__).parent / "examples" / "tasks" / "maximum.py"


def maximum_traced(key: Any, n: Any, memory_size: int) -> TracedInstance:
    """The sampler of the worked example, written for compiled code."""
    import jax
    import jax.numpy as jnp

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


def chunk_trainer(shape: StepShape, devices: list[Any]) -> tuple[Callable[[], float], int]:
    """A function that trains the next chunk and returns its seconds, and the example-steps of a chunk."""
    import jax

    from nram.bench.step import configured
    from nram.training.pools import CHUNK, Pools
    from nram.training.population import compile_training, init_population, stage_keys

    config, stage = configured(shape)
    population, keys = init_population(config, shape.population), stage_keys(config, 0)
    advance, pools, first = compile_training(config, stage, devices), Pools(config, stage, 0), 0

    def train_chunk() -> float:
        nonlocal population, first
        began = time.perf_counter()
        population, _ = jax.block_until_ready(advance(population, keys, first, CHUNK, pools.at(first)))
        first += CHUNK
        return time.perf_counter() - began

    return train_chunk, CHUNK * shape.example_steps


def draw_seconds(task: Task, n: int, memory_size: int, count: int = 2000) -> float:
    rng, began = random.Random(0), time.perf_counter()
    for _ in range(count):
        task.solved(task.sample_input(rng, n, memory_size), n)
    return (time.perf_counter() - began) / count


def compare(name: str, chosen: argparse.Namespace, devices: list[Any]) -> dict[str, Any]:
    tasks = pair(name)
    shape = StepShape(
        memory_size=tasks[0].least_memory(chosen.complexity),
        steps=chosen.complexity + 5,
        registers=chosen.registers,
        repeats=chosen.repeats,
        batch=chosen.batch,
        population=chosen.population,
    )
    trainers = [chunk_trainer(shape._replace(task=task.name), devices) for task in tasks]
    for train_chunk, _ in trainers:
        train_chunk()  # compiles
    seconds, chunks = [0.0, 0.0], [0, 0]
    for _ in range(chosen.rounds):
        for i, (train_chunk, _) in enumerate(trainers):
            end = time.perf_counter() + chosen.seconds / chosen.rounds
            while time.perf_counter() < end:
                seconds[i] += train_chunk()
                chunks[i] += 1
    traced, plain = (chunks[i] * trainers[i][1] / seconds[i] for i in range(2))
    return {
        "task": name,
        "device": device_name(devices),
        **{key: value for key, value in shape._asdict().items() if key != "task"},
        "draw_us": round(1e6 * draw_seconds(tasks[1], chosen.complexity, shape.memory_size), 1),
        "chunk_ms": round(1e3 * seconds[0] / chunks[0], 1),
        "traced_example_steps_per_s": round(traced),
        "plain_example_steps_per_s": round(plain),
        "ratio": round(plain / traced, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", default=["copy", "maximum"], help="a built-in task, or maximum")
    sizes = {"population": 512, "batch": 16, "complexity": 10, "registers": 6, "repeats": 2, "seconds": 20, "rounds": 5}
    for size, default in sizes.items():
        parser.add_argument(f"--{size}", type=int, default=default, help="(default: %(default)s)")
    parser.add_argument("--device", default="auto", help="auto, cpu or gpu (default: %(default)s)")
    chosen = parser.parse_args()
    devices = prepare_devices(chosen.device)
    for name in chosen.tasks:
        print(json.dumps(compare(name, chosen, devices)), flush=True)


if __name__ == "__main__":
    main()
