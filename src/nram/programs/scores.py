"""How a program does on examples: what is right, what halts, its steps, and the smallest that is wrong."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from nram.limits import example_limits, wrong_cells
from nram.programs.execute import execute
from nram.programs.ir import Program
from nram.tasks.example_files import Example
from nram.tasks.layout import MOST_SHOWN, values_in_words


@dataclass(frozen=True)
class Wrong:
    """An example that came out wrong."""

    example: Example
    obtained: list[int]
    halted: bool
    only_at_limit: bool
    """It is right when stopped at its step limit, and not if it may run on."""
    limit: int
    """The step limit under which it is wrong."""

    def to_json(self) -> dict[str, Any]:
        instance = self.example.instance
        return {
            "line": self.example.line,
            "size": self.example.size,
            "input": instance.input,
            "expected": instance.output,
            "cells": instance.cells,
            "obtained": self.obtained,
            "halted": self.halted,
            "right_only_at_limit": self.only_at_limit,
            **self.by_name(),
        }

    def by_name(self) -> dict[str, Any]:
        """The inputs and the results by name, if the example has a layout."""
        layout, instance = self.example.layout, self.example.instance
        if layout is None:
            return {}
        return {
            "inputs": layout.given(instance.input),
            "expected_results": layout.results(instance.input, instance.output),
            "obtained_results": layout.results(instance.input, self.obtained),
        }

    def in_words(self) -> list[str]:
        """Where it stands, which cells are wrong, and the memories, a line each."""
        instance = self.example.instance
        missed = wrong_cells(self.obtained, instance)
        cells = ", ".join(f"cell {cell}: {self.obtained[cell]}, not {instance.output[cell]}" for cell in missed[:4])
        more = f" and {len(missed) - 4} more" if len(missed) > 4 else ""
        ending = "" if self.halted else "  (it does not halt within its limit)"
        if self.only_at_limit:
            ending = "  (right when stopped at its limit, and spoiled later)"
        words = {"inputs": "given    ", "expected_results": "expected ", "obtained_results": "obtained "}
        return [
            f"  {self.example.where}, size {self.example.size}: {cells}{more}",
            *(f"  {words[key]}{values_in_words(values)}" for key, values in self.by_name().items()),
            f"  input    {memory_in_words(instance.input)}",
            f"  expected {memory_in_words(instance.output)}",
            f"  obtained {memory_in_words(self.obtained)}{ending}",
        ]


@dataclass(frozen=True)
class Score:
    """The score of a program on some examples. Right means right under all three step limits."""

    examples: int
    right: int
    halted: int
    """On how many it halts by itself within the limit."""
    stray: int
    """On how many a cell that was not asked about differs from the file. That is not wrong."""
    sizes: tuple[int, ...]
    """Of the examples, from the smallest to the largest."""
    wrong: tuple[Wrong, ...]
    runs: tuple[tuple[int, int, int], ...]
    """Size, memory size and steps of every run that halted by itself."""

    @property
    def exact(self) -> bool:
        return self.right == self.examples

    @property
    def smallest(self) -> Wrong | None:
        """Of the wrong ones."""
        return min(self.wrong, key=lambda one: (one.example.size, one.example.cells), default=None)

    def to_json(self) -> dict[str, Any]:
        return {
            "examples": self.examples,
            "exact": self.right,
            "halted": self.halted,
            "stray": self.stray,
            "sizes": [self.sizes[0], self.sizes[-1]],
            "smallest_wrong": None if self.smallest is None else self.smallest.to_json(),
        }


def own_limits(example: Example) -> tuple[int, ...]:
    """The three step limits of an example from a file."""
    return example_limits(example.instance.steps, example.cells)


def score_of(
    program: Program, examples: Sequence[Example], limits: Callable[[Example], tuple[int, ...]] = own_limits
) -> Score:
    """Run a program on examples under ascending step limits. A run that halted within one needs no further run."""
    groups: defaultdict[tuple[int, tuple[int, ...]], list[Example]] = defaultdict(list)
    for example in examples:
        groups[example.cells, limits(example)].append(example)
    wrong: list[Wrong] = []
    runs: list[tuple[int, int, int]] = []
    halted = stray = 0
    for (_, ascending), running in groups.items():
        for index, limit in enumerate(ascending):
            if not running:
                break
            ending = execute(program, [example.instance.input for example in running], limit)
            still_right = []
            for example, memory, many, ended in zip(running, ending.memory, ending.steps, ending.halted, strict=True):
                if ended:
                    runs.append((example.size, example.cells, int(many)))
                if index == 0:
                    halted += bool(ended)
                    stray += _strays(example, memory)
                if wrong_cells(memory, example.instance):
                    wrong.append(Wrong(example, memory, bool(ended) and index == 0, index > 0, limit))
                elif not ended:
                    still_right.append(example)
            running = still_right
    sizes = tuple(sorted({example.size for example in examples}))
    return Score(len(examples), len(examples) - len(wrong), halted, stray, sizes, tuple(wrong), tuple(runs))


def _strays(example: Example, memory: Sequence[int]) -> bool:
    asked = set(example.instance.cells)
    return any(cell not in asked and memory[cell] != value for cell, value in enumerate(example.instance.output))


def memory_in_words(memory: Sequence[int]) -> str:
    words = " ".join(map(str, memory[:MOST_SHOWN]))
    return words if len(memory) <= MOST_SHOWN else f"{words} ... ({len(memory)} cells)"
