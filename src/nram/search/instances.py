"""The pool of instances on which candidates are scored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random

import numpy as np

from nram.errors import UsageError
from nram.limits import wrong_cells
from nram.tasks.base import Instance, Task

SMALL = 7  # a task's pool has every complexity up to here, and a larger one
LARGER = (10,)
# Extra memory, and the number of instances with it for each complexity: programs must not rely on the smallest memory.
MEMORIES = ((0, 16), (1, 8), (3, 8), (9, 4))
DISORDER = 3.0  # steps by which an order by steps may be wrong
MOST_CELLS = 50_000_000  # of all instances, each as large as the largest


def most_steps(memory_size: int) -> int:
    """The longest step limit: with more, a single run could take minutes."""
    return 64 * memory_size + 4096


@dataclass(frozen=True)
class Pool:
    """Instances that are safe for the kernel."""

    instances: tuple[Instance, ...]

    def __post_init__(self) -> None:
        """Refuse instances with addresses outside the memory: the kernel checks none."""
        if not self.instances:
            raise UsageError("there are no instances to search by")
        for index, one in enumerate(self.instances, 1):
            size = len(one.input)
            fine = (
                size >= 3
                and len(one.output) == size
                and min(one.input) >= 0
                and max(one.input) < size
                and one.cells
                and min(one.cells) >= 0
                and max(one.cells) < size
                and all(0 <= one.output[cell] < size for cell in one.cells)
                and 1 <= one.steps <= most_steps(size)
            )
            if not fine:
                raise UsageError(
                    f"instance {index} cannot be searched by: it needs 3 cells or more, values and output cells in "
                    f"0..M-1, an output as long as its input, and 1 to {most_steps(size):,} steps"
                )
        cells = len(self.instances) * max(len(one.input) for one in self.instances)
        if cells > MOST_CELLS:
            raise UsageError(
                f"{len(self.instances):,} instances of up to {cells // len(self.instances):,} cells are too many: "
                "leave out some of the largest"
            )

    def joined(self, others: Iterable[Instance]) -> Pool:
        return Pool((*self.instances, *others))

    def __len__(self) -> int:
        return len(self.instances)

    def shortest_first(self, rng: Random) -> list[int]:
        """The instances ordered by their step limit, with some disorder, so that no two chains start alike."""
        return sorted(range(len(self)), key=lambda i: self.instances[i].steps + rng.uniform(0, DISORDER))

    @cached_property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """All instances as arrays, in the order of the kernel's `Blocks`."""
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


def task_pool(task: Task, seed: int) -> Pool:
    """Small instances of a task, in memories of several sizes."""
    instances = []
    for n in (*range(task.min_complexity, SMALL + 1), *LARGER):
        for extra, count in MEMORIES:
            instances += task.sample(n, count, 1000 * seed + 20 * n + extra, task.least_memory(n) + extra)
    return Pool(tuple(instances))


def exact(instances: Sequence[Instance], memories: Sequence[Sequence[int]]) -> list[bool]:
    """For each instance, whether its memory is right."""
    return [not wrong_cells(memory, instance) for instance, memory in zip(instances, memories, strict=True)]
