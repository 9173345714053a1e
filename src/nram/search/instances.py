"""The pool of instances on which candidates are scored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

import numpy as np

from nram.errors import UsageError
from nram.limits import wrong_cells
from nram.tasks.base import Instance, Task

SMALL = 7  # a task's pool has every complexity up to here, and a larger one
LARGER = (10,)
# Extra memory, and the number of instances with it for each complexity: programs must not rely on the smallest memory.
MEMORIES = ((0, 16), (1, 8), (3, 8), (9, 4))
DISORDER = 3.0  # steps by which an order by steps may be wrong
LARGEST_NUMBER = 2**31 - 1
MOST_CELLS = 50_000_000  # of all instances, each as large as the largest


def most_steps(memory_size: int) -> int:
    """The longest step limit: with more, a single run could take minutes."""
    return min(64 * memory_size + 4096, LARGEST_NUMBER)


class _Copy(NamedTuple):
    """The parts of an instance that the kernel needs."""

    start: np.ndarray
    cells: np.ndarray
    wanted: np.ndarray
    """The values that the output cells should have."""
    steps: int


def _copied(one: Instance) -> _Copy | None:
    """A copy of an instance that is safe for the kernel, or None if it is not."""
    try:
        each_once = list(dict.fromkeys(one.cells))
        start, end, cells = (np.array(part, np.int64) for part in (one.input, one.output, each_once))
        steps = int(one.steps)
    except (TypeError, ValueError, OverflowError):
        return None
    size = len(start)
    fine = (
        start.ndim == end.ndim == cells.ndim == 1
        and size >= 3
        and len(end) == size
        and len(cells) > 0
        and _within(start, size)
        and _within(cells, size)
        and _within(end[cells], size)
        and 1 <= steps <= most_steps(size)
    )
    return _Copy(start, cells, end[cells], steps) if fine else None


def _within(numbers: np.ndarray, size: int) -> bool:
    return numbers.min() >= 0 and numbers.max() < size


@dataclass(frozen=True)
class Pool:
    """Instances that are safe for the kernel."""

    instances: tuple[Instance, ...]
    arrays: tuple[np.ndarray, ...] = field(init=False, repr=False, compare=False)
    """All instances as arrays, in the order of the kernel's `Blocks`."""

    def __post_init__(self) -> None:
        """Copy the instances, and refuse those with addresses outside the memory: the kernel checks nothing.

        The copies are checked, because the lists of an instance can change.
        """
        if not self.instances:
            raise UsageError("there are no instances to search by")
        copies = []
        for index, one in enumerate(self.instances, 1):
            copy = _copied(one)
            if copy is None:
                raise UsageError(
                    f"instance {index} cannot be searched by: it needs 3 cells or more, values and output cells in "
                    f"0..M-1, an output as long as its input, and 1 to {most_steps(len(one.input)):,} steps"
                )
            copies.append(copy)
        cells = len(copies) * max(len(copy.start) for copy in copies)
        if cells > MOST_CELLS:
            raise UsageError(
                f"{len(copies):,} instances of up to {cells // len(copies):,} cells are too many: leave out some of "
                "the largest"
            )
        object.__setattr__(self, "arrays", _as_arrays(copies))

    def joined(self, others: Iterable[Instance]) -> Pool:
        return Pool((*self.instances, *others))

    def __len__(self) -> int:
        return len(self.instances)

    @property
    def has_single_answers(self) -> bool:
        """Whether every instance has just one output cell."""
        return all(len(instance.cells) == 1 for instance in self.instances)

    def shortest_first(self, rng: Random) -> list[int]:
        """The instances ordered by their step limit, with some disorder, so that no two chains start alike."""
        return sorted(range(len(self)), key=lambda i: self.instances[i].steps + rng.uniform(0, DISORDER))


def _as_arrays(copies: Sequence[_Copy]) -> tuple[np.ndarray, ...]:
    starts, asked = [copy.start for copy in copies], [copy.cells for copy in copies]
    return (
        _padded(starts),
        np.array([len(start) for start in starts], np.int32),
        np.array([copy.steps for copy in copies], np.int32),
        _padded(asked),
        _padded([copy.wanted for copy in copies]),
        np.array([len(cells) for cells in asked], np.int32),
    )


def _padded(rows: Sequence[np.ndarray]) -> np.ndarray:
    """Rows of int32, with zeros up to the longest."""
    padded = np.zeros((len(rows), max(map(len, rows))), np.int32)
    for index, row in enumerate(rows):
        padded[index, : len(row)] = row
    return padded


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
