"""How a program does on the examples: what is right, what halts, and the smallest that is wrong."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nram.learning.parts import Parts
from nram.limits import example_limits, wrong_cells
from nram.programs.execute import execute
from nram.programs.ir import Program
from nram.tasks.example_files import Example


@dataclass(frozen=True)
class Wrong:
    """An example that came out wrong."""

    example: Example
    obtained: list[int]
    halted: bool
    only_at_limit: bool
    """It is right when stopped at its step limit, and not if it may run on."""

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


@dataclass(frozen=True)
class Judgement:
    """The scores of a program on the training and on the held-out examples."""

    training: Score
    held_out: Score

    @property
    def exact(self) -> bool:
        return self.training.exact and self.held_out.exact

    @property
    def halts(self) -> bool:
        """On every example, by itself."""
        return all(score.halted == score.examples for score in (self.training, self.held_out))

    @property
    def shown_up_to(self) -> int | None:
        """The largest size up to which every example is right; None if there is none."""
        sizes = (*self.training.sizes, *self.held_out.sizes)
        wrong = (one.example.size for score in (self.training, self.held_out) for one in score.wrong)
        first = min(wrong, default=max(sizes) + 1)
        return max((size for size in sizes if size < first), default=None)

    @property
    def smallest(self) -> Wrong | None:
        """Of the wrong ones, one of the training part if there is any."""
        return self.training.smallest or self.held_out.smallest


def judgement_of(program: Program, parts: Parts) -> Judgement:
    return Judgement(score_of(program, parts.learned_from), score_of(program, parts.held_out))


def score_of(program: Program, examples: Sequence[Example]) -> Score:
    """Run a program on examples under all three step limits. One that halted within the first needs no further run."""
    groups: defaultdict[tuple[int, int], list[Example]] = defaultdict(list)
    for example in examples:
        groups[example.cells, example.instance.steps].append(example)
    wrong: list[Wrong] = []
    halted = stray = 0
    for (cells, steps), group in groups.items():
        ending = execute(program, [example.instance.input for example in group], steps)
        halted += sum(map(bool, ending.halted))
        running: list[Example] = []
        for example, memory, ended in zip(group, ending.memory, ending.halted, strict=True):
            stray += _strays(example, memory)
            if wrong_cells(memory, example.instance):
                wrong.append(Wrong(example, memory, bool(ended), only_at_limit=False))
            elif not ended:
                running.append(example)
        for limit in example_limits(steps, cells)[1:]:
            if running:
                later = execute(program, [example.instance.input for example in running], limit).memory
                still_right = []
                for example, memory in zip(running, later, strict=True):
                    if wrong_cells(memory, example.instance):
                        wrong.append(Wrong(example, memory, halted=False, only_at_limit=True))
                    else:
                        still_right.append(example)
                running = still_right
    sizes = tuple(sorted({example.size for example in examples}))
    return Score(len(examples), len(examples) - len(wrong), halted, stray, sizes, tuple(wrong))


def _strays(example: Example, memory: Sequence[int]) -> bool:
    asked = set(example.instance.cells)
    return any(cell not in asked and memory[cell] != value for cell, value in enumerate(example.instance.output))
