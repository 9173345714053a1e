"""A task: a memory layout, a sampler of its inputs, and an oracle that gives the answers."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple, Protocol

from nram.display import Displayed, Fixed, cells_in_words, counted, heading, memory_table, table
from nram.errors import UsageError
from nram.lazy import jax
from nram.limits import StepLimit
from nram.tasks._plain_arrays import sample_by_callback
from nram.tasks.claim import Claim


@dataclass(frozen=True, slots=True, repr=False)
class Instance(Displayed):
    """One problem with its answer, in integers."""

    input: list[int]
    """The whole memory at the start."""
    output: list[int]
    """The whole memory as expected: the input with the output cells replaced."""
    cells: list[int]
    """Addresses of the output cells: all must be right for an exact match."""
    scored: list[int]
    """Addresses of the cells that should be modified: they count for the paper's error."""
    steps: int
    """The default step limit T(n)."""

    def _brief(self) -> str:
        sizes = f"{counted(len(self.input), 'cell')}, {counted(len(self.cells), 'output cell')}, T = {self.steps}"
        return f"of {sizes}: {cells_in_words(self.input)} -> {cells_in_words([self.output[i] for i in self.cells])}"

    def _repr_html_(self) -> str:
        """What a notebook shows. The output cells are bold."""
        title = f"{counted(len(self.cells), 'output cell')}, at most {counted(self.steps, 'step')}"
        return heading(title) + memory_table({"input": self.input, "expected": self.output}, self.cells)

    def as_dict(self) -> dict[str, Any]:
        """The form in which `nram sample --json` prints an instance."""
        return {"input": self.input, "output": self.output, "cells": self.cells, "steps": self.steps}


class TracedInstance(NamedTuple):
    """One instance inside compiled JAX code; callers `vmap` for more."""

    input: jax.Array
    """int32 [M]"""
    output: jax.Array
    """int32 [M]"""
    cells: jax.Array
    """bool [M], the output cells"""
    scored: jax.Array
    """bool [M], the cells that count for the paper's error"""


class GivenInstance(NamedTuple):
    """The same for an example from a file, in an array that may be longer than its memory."""

    input: jax.Array
    output: jax.Array
    cells: jax.Array
    scored: jax.Array
    size: jax.Array
    """M"""


Term = Any
"""A whole number: a Python integer where it is known, otherwise a term of z3."""


@dataclass(frozen=True)
class SymbolicCase:
    """Many inputs of one complexity at once, with their answers: all inputs that satisfy the assumptions."""

    shape: str
    """What is fixed, in words; empty if nothing is."""
    cells: tuple[tuple[Term, Term], ...]
    """Address and value of the cells that the layout names, each once."""
    assumptions: tuple[Any, ...]
    """Conditions of z3 on the terms."""
    expected: tuple[tuple[Term, Term], ...]
    """Address and value of the output cells."""
    trash: Callable[[Term], Term] | None = None
    """Address -> the value of any other cell, from 1 to M-1. None: they hold 0."""


def all_output_cells(memory: Sequence[int], cells: list[int]) -> list[int]:
    """The scored cells of a task that modifies all its output cells."""
    return cells


class Examples(Protocol):
    """The examples of a file, where a task has no other instances. They do not have every n at every M."""

    def first_sizes(self, count: int) -> int:
        """The largest complexity of a stage with the first `count` sizes, or with more if these have few examples."""
        ...

    def memory_sizes(self, n: int) -> Sequence[int]:
        """The memory sizes at which a stage up to n trains in turn."""
        ...

    def draw_complexities(self, key: Any, most: int, memory_size: int, count: int) -> Any:
        """Complexities of examples up to `most`, each as likely as the others."""
        ...

    def nearest(self, n: Any, memory_size: int) -> Any:
        """The complexity of what is drawn for n, which may be an array."""
        ...

    def given(self) -> tuple[GivenInstance, Any]:
        """All of them in their own memories, and their complexities."""
        ...


@dataclass(frozen=True, kw_only=True, repr=False)
class Task(Fixed):
    """A problem of every complexity n on every memory of at least `least_memory(n)` cells."""

    name: str
    summary: str
    """What is asked for, in one line."""
    layout: str
    """The memory at the start, in words."""
    min_complexity: int = 1
    trained_up_to: int = 10
    """The largest complexity of training; for the tasks of the paper, that of the paper's."""
    step_limit: StepLimit
    """The default T(n): generous, for searched and trained programs alike."""
    least_memory: Callable[[int], int]
    """The smallest M on which every instance of complexity n fits; it grows with n."""
    sample_input: Callable[[random.Random, int, int], list[int]]
    """(rng, n, M) -> the memory at the start, in O(n log n + M)."""
    oracle: Callable[[Sequence[int]], tuple[list[int], list[int]]]
    """Memory at the start -> (expected memory, output cells). The memory must follow the layout, and stays as it is."""
    sample_traced: Callable[[jax.Array, Any, int], TracedInstance] | None = None
    """(key, n, M) -> one instance inside compiled code, with the distribution of `sample_input`. None: training
    draws examples with `sample_input` and `oracle` ahead of time."""
    scored_cells: Callable[[Sequence[int], list[int]], list[int]] = all_output_cells
    """(memory at the start, output cells) -> the cells that count for the paper's error."""
    examples: Examples | None = None
    """The examples of a file, where the task has no other instances."""
    legal_inputs: Callable[[int, int], Iterator[list[int]]] | None = None
    """(n, M) -> every memory that `sample_input` can draw, each once. None: the task does not list them."""
    symbolic: Callable[[int, Term], Iterator[SymbolicCase]] | None = None
    """(n, M) -> cases for a solver, which together include every such memory. M may be a term."""
    claim: Callable[[], Claim] | None = None
    """What is asked for at every n and M at once, for proofs. None: programs are proven for small n alone."""

    def _brief(self) -> str:
        return f"{self.name}: {self.summary} T(n) = {self.step_limit}"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        smallest = self.least_memory(self.min_complexity)
        rows = [
            ("memory at the start", self.layout),
            ("complexity", f"n from {self.min_complexity} up, trained up to {self.trained_up_to}"),
            ("step limit", f"T(n) = {self.step_limit}"),
            ("least memory", f"{smallest} cells for n = {self.min_complexity}"),
        ]
        return heading(f"{self.name}: {self.summary}") + table(rows)

    def sample(self, complexity: int, count: int, seed: int, memory_size: int | None = None) -> list[Instance]:
        """Instances of one complexity, the same from the same seed on every platform.

        A larger `count` continues the list of a smaller one. Without `memory_size`, the memory is the least that
        works.
        """
        problems = self._complexity_problems(complexity)
        if not problems and memory_size is not None:
            problems += self._memory_size_problems(complexity, memory_size)
        problems += _not_negative_problems("count", count)
        # Python seeds with the absolute value, so -1 would silently repeat the instances of 1.
        problems += _not_negative_problems("seed", seed)
        _refuse(problems)

        complexity = int(complexity)
        size = self.least_memory(complexity) if memory_size is None else int(memory_size)
        rng = random.Random(int(seed))
        return [self.solved(self.sample_input(rng, complexity, size), complexity) for _ in range(count)]

    def draw_traced(self, key: jax.Array, n: Any, memory_size: int) -> TracedInstance:
        """One instance inside compiled code. n may be traced, so it is not checked here: it must lie between
        `min_complexity` and `largest_complexity(memory_size)`."""
        if self.sample_traced is not None:
            return self.sample_traced(key, n, memory_size)
        return TracedInstance(*sample_by_callback(self, key, n, memory_size))

    def largest_complexity(self, memory_size: int) -> int:
        """The largest complexity that fits; less than `min_complexity` if none does."""
        candidates = range(self.min_complexity, memory_size + 1)
        return self.min_complexity - 1 + bisect_right(candidates, memory_size, key=self.least_memory)

    def check_complexity(self, complexity: int) -> None:
        """UsageError if the task has no instances of this complexity."""
        _refuse(self._complexity_problems(complexity))

    def check_memory_size(self, complexity: int, memory_size: int) -> None:
        """UsageError, naming the least M that works, if some instance would not fit."""
        self.check_complexity(complexity)
        _refuse(self._memory_size_problems(complexity, memory_size))

    def solved(self, memory: list[int], complexity: int) -> Instance:
        """The instance with this input."""
        output, cells = self.oracle(memory)
        return Instance(memory, output, cells, self.scored_cells(memory, cells), self.step_limit(complexity))

    def _complexity_problems(self, complexity: int) -> list[str]:
        if isinstance(complexity, Integral) and complexity >= self.min_complexity:
            return []
        return [
            f"{self.name} has no instances of complexity {complexity}: "
            f"pass a whole number from {self.min_complexity} up"
        ]

    def _memory_size_problems(self, complexity: int, memory_size: int) -> list[str]:
        if not isinstance(memory_size, Integral):
            return [f"memory size must be a whole number, not {memory_size!r}"]
        least = self.least_memory(complexity)
        if memory_size >= least:
            return []
        problem = (
            f"{self.name} of complexity {complexity} does not fit into {memory_size} memory cells: "
            f"pass a memory size of at least {least}"
        )
        largest = self.largest_complexity(memory_size)
        if largest >= self.min_complexity:
            problem += f", or a complexity of at most {largest}"
        return [problem]


def _not_negative_problems(what: str, number: int) -> list[str]:
    if isinstance(number, Integral) and number >= 0:
        return []
    return [f"{what} must be a whole number from 0 up, not {number!r}"]


def _refuse(problems: list[str]) -> None:
    if problems:
        raise UsageError("; ".join(problems))
