"""What candidates are judged by: a pool of instances as arrays, from a task or from a file of examples."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random

import numpy as np

from nram.errors import UsageError
from nram.search.lanes import LANES
from nram.tasks.base import Instance, Task

SMALL = 7  # every complexity up to here, and one larger
LARGER = (10,)
# Extra memory, and how many instances with it for each complexity: a program must not rely on the smallest memory.
MEMORIES = ((0, 16), (1, 8), (3, 8), (9, 4))
DISORDER = 3.0  # steps, in an order by steps


Blocks = tuple[np.ndarray, ...]
"""Instances in the form of the kernel: starts [blocks, cells, lanes], sizes and limits [blocks, lanes], output cells
and what they should hold [blocks, output cells, lanes], and how many there are [blocks, lanes]; all int32."""


@dataclass(frozen=True)
class Pool:
    instances: tuple[Instance, ...]

    def joined(self, others: Iterable[Instance]) -> Pool:
        return Pool((*self.instances, *others))

    def __len__(self) -> int:
        return len(self.instances)

    def blocks(self, order: Sequence[int] | None = None) -> Blocks:
        """The instances in some order (a new copy, which a chain may rearrange); lanes too many hold nothing."""
        chosen = np.arange(len(self)) if order is None else np.array(order)
        return tuple(_in_lanes(array[chosen]) for array in self._arrays)

    def shortest_first(self, rng: Random) -> list[int]:
        """An order by the step limit, with some disorder so that no two chains begin alike."""
        return sorted(range(len(self)), key=lambda i: self.instances[i].steps + rng.uniform(0, DISORDER))

    @cached_property
    def _arrays(self) -> tuple[np.ndarray, ...]:
        count = len(self.instances)
        cells = max(len(instance.input) for instance in self.instances)
        outputs = max(len(instance.cells) for instance in self.instances)
        starts, asked, wanted = (np.zeros((count, width), np.int32) for width in (cells, outputs, outputs))
        for i, instance in enumerate(self.instances):
            starts[i, : len(instance.input)] = instance.input
            asked[i, : len(instance.cells)] = instance.cells
            wanted[i, : len(instance.cells)] = [instance.output[cell] for cell in instance.cells]
        sizes = np.array([len(instance.input) for instance in self.instances], np.int32)
        limits = np.array([instance.steps for instance in self.instances], np.int32)
        counts = np.array([len(instance.cells) for instance in self.instances], np.int32)
        return starts, sizes, limits, asked, wanted, counts


def _in_lanes(array: np.ndarray) -> np.ndarray:
    blocks = -(-len(array) // LANES)
    padded = np.zeros((blocks * LANES, *array.shape[1:]), np.int32)
    padded[: len(array)] = array
    return np.ascontiguousarray(np.moveaxis(padded.reshape(blocks, LANES, *array.shape[1:]), 1, -1))


def task_pool(task: Task, seed: int) -> Pool:
    """Small instances of a task, in memories of several sizes."""
    instances = []
    for n in (*range(task.min_complexity, SMALL + 1), *LARGER):
        for extra, count in MEMORIES:
            instances += task.sample(n, count, 1000 * seed + 20 * n + extra, task.least_memory(n) + extra)
    return Pool(tuple(instances))


# ---- examples from a file


def read_examples(path: Path) -> Pool:
    """One JSON object a line: input, output and, unless they are those in which the two differ, the cells that count.

    `steps` may say how long a program may run; otherwise 4 M + 16.
    """
    problems: list[str] = []
    instances: list[Instance] = []
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    for number, line in enumerate(lines, 1):
        if line.strip():
            instance = _example(line, f"line {number}", problems)
            if instance is not None:
                instances.append(instance)
    seen: dict[tuple[int, ...], int] = {}
    for number, instance in enumerate(instances):
        first = seen.setdefault(tuple(instance.input), number)
        if instances[first].output != instance.output:
            problems.append(f"examples {first + 1} and {number + 1} have the same input and different outputs")
    if not instances and not problems:
        problems.append("there are no examples")
    if problems:
        raise UsageError(f"{path} cannot be used:\n" + "\n".join(f"  - {problem}" for problem in problems[:20]))
    return Pool(tuple(instances))


def _example(line: str, where: str, problems: list[str]) -> Instance | None:
    before = len(problems)
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        problems.append(f"{where} is not JSON: {error}")
        return None
    if not isinstance(value, dict):
        problems.append(f'{where} is not an object like {{"input": [...], "output": [...]}}')
        return None
    for key in value.keys() - {"input", "output", "cells", "steps"}:
        problems.append(f"{where}: '{key}' is unknown; an example has input, output, cells and steps")
    start, end = (_cells(value.get(key), f"{where}: '{key}'", problems) for key in ("input", "output"))
    if start is None or end is None:
        return None
    size = len(start)
    if len(end) != size or size < 3:
        problems.append(f"{where}: input has {size} cells and output {len(end)}: they must be as many, 3 at least")
        return None
    for name, cells in (("input", start), ("output", end)):
        if any(not 0 <= cell < size for cell in cells):
            problems.append(f"{where}: {name} has values outside 0..{size - 1}: a memory of M cells holds 0 to M-1")
    asked = [i for i in range(size) if start[i] != end[i]]
    if "cells" in value:
        asked = _cells(value["cells"], f"{where}: 'cells'", problems) or []
        if any(not 0 <= cell < size for cell in asked):
            problems.append(f"{where}: cells has addresses outside 0..{size - 1}")
    if not asked:
        problems.append(
            f"{where}: no cell counts: input and output are equal; name those that must be right in 'cells'"
        )
    steps = value.get("steps", 4 * size + 16)
    if type(steps) is not int or not 0 < steps < 2**31:
        problems.append(f"{where}: steps is {steps!r:.40}, not a number of steps")
    return Instance(start, end, asked, asked, steps) if len(problems) == before else None


def _cells(value: object, what: str, problems: list[str]) -> list[int] | None:
    if isinstance(value, list) and all(type(cell) is int for cell in value):
        return value
    problems.append(f"{what} is {value!r:.60}, not a list of whole numbers")
    return None


def exact(instances: Sequence[Instance], memories: Sequence[Sequence[int]]) -> list[bool]:
    """Which of the instances came out right."""
    return [
        all(memory[cell] == instance.output[cell] for cell in instance.cells)
        for instance, memory in zip(instances, memories, strict=True)
    ]
