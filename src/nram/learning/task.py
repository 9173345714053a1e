"""Examples as a task for the trainer: it draws the given examples, and nothing else exists.

The complexity of an instance is the size of its example, or the number of cells that it changes if these are more. A
training step has one memory size M. Smaller memories are padded with zeros, unless the answers depend on M: then a
stage trains at several M in turn, on examples of exactly these. Members are selected on the examples as given, each in
its own memory. So a member that works only in padded memories, or at a single M, is found out.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from nram.extensions import known_task, register_task, task_names
from nram.learning.parts import FEW
from nram.limits import StepLimit
from nram.tasks._traced import TracedPool
from nram.tasks.base import GivenInstance, Instance, Task, TracedInstance
from nram.tasks.example_files import Example

if TYPE_CHECKING:
    from jax import Array

ENOUGH = 8  # examples of one complexity and one memory size to train on, without padding others
MOST_SIZES = 4  # memory sizes of a stage: each is compiled
NOT_BY_HEART = 64  # examples in the first stage, if there are so many: fewer are fitted without a loop
STEEPEST = 64  # steps per item of a T(n)

Answer = dict[int, int]
"""What the output cells should hold, by address."""


def training_tasks(examples: Sequence[Example], name: str) -> list[Task]:
    """The tasks that these examples may stand for, the likelier one first. Equal examples give equal tasks.

    Examples that differ only in the zeros at their end show whether answers depend on M. One contradiction is enough:
    any other example may then be wrong in a padded memory. If no two examples are alike in this way, perhaps because
    every size has its own M, the answers may or may not depend on M. Columns with names do not depend on M.
    """
    inputs = {_stripped(example.instance.input) for example in examples}
    memories = {example.cells for example in examples}
    if _depends_on_memory(examples):
        kinds = (True,)
    elif len(memories) == 1 or len(inputs) < len(examples) or examples[0].layout is not None:
        kinds = (False,)
    else:
        kinds = (False, True)
    return [_task(examples, name, exact) for exact in kinds]


def _task(examples: Sequence[Example], name: str, exact: bool) -> Task:
    """The task of these examples, known by its name to this process."""
    pools = _Pools(examples, exact)
    task = Task(
        name=f"{name}-{_digest(examples, exact)}",
        summary="The training examples of a file.",
        layout="as in the examples of one memory size" if exact else "as in the examples, filled up with zeros",
        min_complexity=int(pools.levels.min()),
        trained_up_to=int(pools.levels.max()),
        step_limit=_covering_limit(pools.levels, [example.instance.steps for example in examples]),
        least_memory=pools.least_memory,
        sample_input=pools.sample_input,
        oracle=pools.oracle,
        scored_cells=pools.scored_cells,
        sample_traced=pools.sample_traced,
        examples=pools,
    )
    return known_task(task.name) if task.name in task_names() else register_task(task)


class _Pools:
    """The examples to draw from, by memory size and complexity."""

    def __init__(self, examples: Sequence[Example], exact: bool):
        self.exact = exact
        """Whether only examples of a stage's own memory size are drawn."""
        self.instances = [example.instance for example in examples]
        self.cells = np.array([example.cells for example in examples], np.int32)
        self.memories = np.unique(self.cells)
        self.levels = np.array([_level(example) for example in examples], np.int32)
        self.answers: dict[Any, Answer] = {}
        """What is asked of every input. Examples with one input, in whatever padded memory, are asked together."""
        for one in self.instances:
            self.answers.setdefault(self._key(one.input), {}).update((cell, one.output[cell]) for cell in one.cells)
        self.modified = _modified(self.instances, self.levels)
        self.level_of = {self._key(one.input): int(n) for one, n in zip(self.instances, self.levels, strict=True)}
        self.pool = cache(self._pool)  # for a stage, it is asked for more than once
        self._least_from = np.unique(self.levels).tolist()
        self._least = list(self._memory_sizes())[::-1]

    def least_memory(self, n: int) -> int:
        """The memory size of a stage that goes up to n; beyond the largest example there is only more room."""
        return self._least[max(0, bisect_right(self._least_from, n) - 1)] + max(0, n - self._least_from[-1])

    def _memory_sizes(self) -> Iterator[int]:
        """For each complexity, the largest first: the memory that holds all examples up to it.

        If answers depend on M, it is the memory size with the most examples.
        """
        size = int(self.cells.max())
        for level in self._least_from[::-1]:
            counts = Counter(self.cells[(self.levels <= level) & (self.cells <= size)].tolist())
            size = max(counts, key=lambda cells: (counts[cells] if self.exact else 0, cells), default=size)
            yield size

    def first_sizes(self, count: int) -> int:
        """The largest complexity of a stage with the first `count` sizes, or with more if these have few examples."""
        sizes, examples = np.unique(self.levels, return_counts=True)
        enough = 1 + int(np.searchsorted(np.cumsum(examples), NOT_BY_HEART))
        return int(sizes[min(max(count, enough), len(sizes)) - 1])

    def memory_sizes(self, n: int) -> list[int]:
        """The memory sizes of a stage that goes up to n: one, unless it would have too few examples.

        Where answers depend on M, a single memory size often has so few that members learn them by heart.
        """
        sizes = [self.least_memory(n)]
        if self.exact:
            counts = Counter(self.cells[self.levels <= n].tolist())
            for size in sorted(counts, key=lambda size: (-counts[size], -size)):
                if size not in sizes and len(sizes) < MOST_SIZES and sum(counts[one] for one in sizes) < FEW:
                    sizes.append(size)
        return sizes

    def _pool(self, memory_size: int) -> TracedPool:
        """The examples to draw from at a memory size.

        Padding changes what an example teaches, for example about the end of the memory. So examples of this very
        size are preferred where there are enough. Few of them are worse: members would learn these by heart.
        """
        own = self.cells == self._own(memory_size)
        drawn = own if self.exact else self.cells <= memory_size
        complexities = np.unique(self.levels[drawn])
        groups = [drawn & (self.levels == level) for level in complexities]
        groups = [here & own if np.count_nonzero(here & own) >= ENOUGH else here for here in groups]
        chosen = [int(i) for here in groups for i in np.flatnonzero(here)]
        counts = np.array([np.count_nonzero(here) for here in groups], np.int32)
        answers = [self.answers[self._key(self.instances[i].input)] for i in chosen]
        return TracedPool(self._arrays(chosen, answers, memory_size), complexities, np.cumsum(counts) - counts, counts)

    def draw_complexities(self, key: Array, most: int, memory_size: int, count: int) -> Array:
        return self.pool(memory_size).draw_complexities(key, most, count)

    def nearest(self, n: Any, memory_size: int) -> Any:
        return self.pool(memory_size).nearest(n)

    def sample_traced(self, key: Array, n: Any, memory_size: int) -> TracedInstance:
        return self.pool(memory_size).draw(key, n)

    def sample_input(self, rng: Random, n: int, memory_size: int) -> list[int]:
        pool = self.pool(memory_size)
        group = max(0, bisect_right(pool.complexities, n) - 1)
        return pool.examples.input[pool.firsts[group] + rng.randrange(pool.counts[group])].tolist()

    def oracle(self, memory: Sequence[int]) -> tuple[list[int], list[int]]:
        answer = {cell: value for cell, value in self.answers[self._key(memory)].items() if cell < len(memory)}
        return [answer.get(cell, value) for cell, value in enumerate(memory)], sorted(answer)

    def scored_cells(self, memory: Sequence[int], cells: list[int]) -> list[int]:
        """Those of the output cells that change in some example of this complexity; all, if none does."""
        modified = self.modified[self.level_of[self._key(memory)]]
        return [cell for cell in cells if cell in modified] or cells

    def given(self) -> tuple[GivenInstance, np.ndarray]:
        """All examples in their own memories, and their complexities."""
        answers = [{cell: one.output[cell] for cell in one.cells} for one in self.instances]
        arrays = self._arrays(range(len(answers)), answers, int(self.cells.max()))
        sizes: Any = self.cells
        return GivenInstance(*arrays, sizes), self.levels

    def _arrays(self, chosen: Sequence[int], answers: Sequence[Answer], width: int) -> TracedInstance:
        """These examples in memories of one size."""
        starts: Any = np.zeros((len(answers), width), np.int32)
        for i, index in enumerate(chosen):
            memory = self.instances[index].input
            starts[i, : len(memory)] = memory
        ends: Any = starts.copy()
        cells: Any = np.zeros(starts.shape, np.bool_)
        scored: Any = np.zeros(starts.shape, np.bool_)
        for i, (index, answer) in enumerate(zip(chosen, answers, strict=True)):
            asked = [cell for cell in answer if cell < width]  # a larger example of the same input may ask for more
            ends[i, asked], cells[i, asked] = [answer[cell] for cell in asked], True
            scored[i, self.scored_cells(self.instances[index].input, asked)] = True
        return TracedInstance(starts, ends, cells, scored)

    def _own(self, memory_size: int) -> int:
        """The largest memory size of an example that fits into a memory."""
        return int(self.memories[np.searchsorted(self.memories, memory_size, side="right") - 1])

    def _key(self, memory: Sequence[int]) -> Any:
        """What distinguishes inputs."""
        return _stripped(memory), self._own(len(memory)) if self.exact else 0


def _modified(instances: Sequence[Instance], levels: np.ndarray) -> dict[int, set[int]]:
    """The output cells that change in any example of a complexity, by complexity.

    Files often name all cells as output, and a program has work to do on few of them.
    """
    found: dict[int, set[int]] = {}
    for one, level in zip(instances, levels.tolist(), strict=True):
        changed = (cell for cell in one.cells if one.output[cell] != one.input[cell])
        found.setdefault(level, set()).update(changed)
    return found


def _level(example: Example) -> int:
    """How much there is to do. A memory of zeros has size 0, and all its cells may have to change."""
    instance = example.instance
    return max(1, example.size, sum(instance.output[cell] != instance.input[cell] for cell in instance.cells))


def _depends_on_memory(examples: Sequence[Example]) -> bool:
    """Whether two examples that differ only in the zeros at their end have different answers."""
    answers: dict[tuple[int, ...], Answer] = {}
    for example in examples:
        instance = example.instance
        answer = answers.setdefault(_stripped(instance.input), {})
        if any(answer.setdefault(cell, instance.output[cell]) != instance.output[cell] for cell in instance.cells):
            return True
    return False


def _stripped(memory: Sequence[int]) -> tuple[int, ...]:
    """The memory without the zeros at its end."""
    length = len(memory)
    while length and memory[length - 1] == 0:
        length -= 1
    return tuple(memory[:length])


def _covering_limit(levels: np.ndarray, steps: Sequence[int]) -> StepLimit:
    """The T(n) that leaves each example at least its own steps and is the least on average."""

    def limit(per_item: int) -> StepLimit:
        return StepLimit(per_item, max(1, int(np.max(np.asarray(steps) - per_item * levels))))

    return min(map(limit, range(1, STEEPEST + 1)), key=lambda limit: float(np.mean(limit(levels))))


def _digest(examples: Sequence[Example], exact: bool) -> str:
    """Compiled samplers are kept by the task's name, so different examples must never share one."""
    said = repr([exact, *((example.instance.as_dict(), example.size) for example in examples)])
    return hashlib.sha256(said.encode()).hexdigest()[:12]
