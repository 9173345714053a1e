"""Examples as a task for the trainer: what it draws are the given examples, padded to one memory size.

The complexity of an instance is the size of its example. A stage trains at one memory size, so smaller memories are
filled up with zeros. Where an answer depends on M this teaches something else. So a trained program is always tested on
the examples as they were given.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from nram.errors import NramError
from nram.extensions import known_task, register_task, task_names
from nram.learning.parts import by_size
from nram.limits import StepLimit
from nram.tasks._traced import Pool
from nram.tasks.base import Task, TracedInstance
from nram.tasks.example_files import Example

if TYPE_CHECKING:
    from jax import Array

Answer = dict[int, int]
"""What the output cells should hold, by address."""


class CannotPad(NramError):
    """Two examples say different things once they are padded to one memory size."""


def training_task(examples: Sequence[Example], name: str) -> Task:
    """The task of these examples, known by its name to this process. Equal examples give one task."""
    groups = by_size(examples)
    answers = _answers(examples)
    levels = sorted({max(1, size) for size in groups})
    drawn = [
        [example for size, group in groups.items() if max(1, size) == level for example in group] for level in levels
    ]
    largest = levels[-1]
    cells = list(accumulate((max(example.cells for example in group) for group in drawn), max))

    def group_of(n: int) -> int:
        return max(0, bisect_right(levels, n) - 1)

    def least_memory(n: int) -> int:
        return cells[group_of(n)] + max(0, n - largest)  # beyond the largest there is only more room

    def sample_input(rng: Random, n: int, memory_size: int) -> list[int]:
        memory = rng.choice(drawn[group_of(n)]).instance.input
        return memory + [0] * (memory_size - len(memory))

    def oracle(memory: Sequence[int]) -> tuple[list[int], list[int]]:
        answer = answers[_stripped(memory)]
        return [answer.get(cell, value) for cell, value in enumerate(memory)], sorted(answer)

    task = Task(
        name=f"{name}-{_digest(examples)}",
        summary="The training examples of a file.",
        layout="as in the examples, filled up with zeros",
        min_complexity=levels[0],
        trained_up_to=largest,
        step_limit=_covering_limit(examples),
        least_memory=least_memory,
        sample_input=sample_input,
        oracle=oracle,
        sample_traced=_TracedSampler(levels, drawn, answers),
    )
    return known_task(task.name) if task.name in task_names() else register_task(task)


class _TracedSampler:
    """The same draws inside compiled code: the examples are constants, and a draw is an index."""

    def __init__(self, levels: list[int], drawn: list[list[Example]], answers: dict[tuple[int, ...], Answer]):
        inputs = [example.instance.input for group in drawn for example in group]
        counts = [len(group) for group in drawn]
        self.levels = np.array(levels, np.int32)
        self.counts = np.array(counts, np.int32)
        self.firsts = np.array([0, *accumulate(counts[:-1])], np.int32)
        self.starts = np.zeros((len(inputs), max(map(len, inputs))), np.int32)
        for i, memory in enumerate(inputs):
            self.starts[i, : len(memory)] = memory
        self.ends, self.cells = self.starts.copy(), np.zeros(self.starts.shape, np.bool_)
        for i, memory in enumerate(inputs):
            for cell, value in answers[_stripped(memory)].items():
                self.ends[i, cell], self.cells[i, cell] = value, True

    def __call__(self, key: Array, n: Any, memory_size: int) -> TracedInstance:
        def padded(array: np.ndarray) -> Any:
            room = max(0, memory_size - array.shape[1])
            return np.pad(array, ((0, 0), (0, room)))[:, :memory_size]

        cells = padded(self.cells)
        examples = TracedInstance(padded(self.starts), padded(self.ends), cells, cells)
        return Pool(examples, self.levels, self.firsts, self.counts).draw(key, n)


def _answers(examples: Sequence[Example]) -> dict[tuple[int, ...], Answer]:
    """What is asked of every padded input. Examples with one input, of whatever memory sizes, are asked together."""
    answers: dict[tuple[int, ...], Answer] = {}
    lines: dict[tuple[int, ...], int] = {}
    for example in examples:
        instance = example.instance
        start = _stripped(instance.input)
        answer, line = answers.setdefault(start, {}), lines.setdefault(start, example.line)
        for cell in instance.cells:
            if answer.setdefault(cell, instance.output[cell]) != instance.output[cell]:
                raise CannotPad(
                    f"lines {line} and {example.line} differ only in the zeros at their end and in what cell {cell} "
                    "should hold: the answer depends on the memory size, which padded examples cannot teach"
                )
    return answers


def _stripped(memory: Sequence[int]) -> tuple[int, ...]:
    """The memory without the zeros at its end."""
    length = len(memory)
    while length and memory[length - 1] == 0:
        length -= 1
    return tuple(memory[:length])


def _covering_limit(examples: Sequence[Example]) -> StepLimit:
    """A T(n) that leaves each example at least its own steps: two per size, and the smallest constant that suffices."""
    return StepLimit(2, max(1, *(example.instance.steps - 2 * example.size for example in examples)))


def _digest(examples: Sequence[Example]) -> str:
    """Compiled samplers are kept by the task's name, so different examples must never share one."""
    said = repr([(example.instance.as_dict(), example.size) for example in examples])
    return hashlib.sha256(said.encode()).hexdigest()[:12]
