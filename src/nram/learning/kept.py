"""Programs that are kept: those that fit, compared on probes, and smaller ones that nearly fit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil
from typing import Any

from nram.learning.candidate import Candidate
from nram.learning.columns import Record
from nram.learning.probes import Probe, make_long_probes, make_probes
from nram.learning.review import Facts
from nram.limits import StepLimit, example_limits
from nram.programs.execute import execute
from nram.programs.growth import DEGREES, FASTER, UNCLEAR, Growth, growth_of_runs, limit_of
from nram.programs.ir import Program
from nram.programs.memory import default_max_steps
from nram.tasks.example_files import default_steps

MOST_NEAR = 3  # programs that nearly fit, in the table
LEAST_RIGHT = 0.8  # of the examples: a program that is right on fewer does not nearly fit
MOST_KEPT = 12


@dataclass(frozen=True)
class Speed:
    """How the steps of a program grow, and from which size on they are too many."""

    growth: Growth | None
    broken_from: int | None
    """The smallest size known at which a run takes more steps than its limit; None if no such size is known."""

    def __str__(self) -> str:
        return "not known" if self.growth is None else str(self.growth).removesuffix(" steps").removesuffix(" step")


@dataclass(frozen=True)
class Kept:
    """A program that fits, or nearly fits, with what is known about it."""

    candidate: Candidate
    speed: Speed
    endless: int = 0
    """Probes on which it does not halt."""
    answers: tuple[Any, ...] = field(default=(), compare=False, repr=False)
    """What it does on every probe: the results, or None where it does not halt."""

    @property
    def program(self) -> Program:
        return self.candidate.program

    def with_program(self, program: Program) -> Kept:
        """The same with another card."""
        return replace(self, candidate=replace(self.candidate, program=program))

    @property
    def exact(self) -> bool:
        return self.candidate.judgement.exact

    @property
    def rank(self) -> tuple[Any, ...]:
        """For comparison of programs that fit, the best first: in time, halting, fast, short."""
        growth = self.speed.growth
        degree = 1  # steps that vary without growing clearly count as linear
        if growth is not None and growth.kind != UNCLEAR:
            degree = [*DEGREES, FASTER].index(growth.kind)
        steps = 0.0 if growth is None else round(growth(2 * growth.largest), 1)
        length = self.program.rows + self.program.operations
        return self.speed.broken_from is not None, self.endless, degree, length, steps, str(self.program)

    def to_json(self) -> dict[str, Any]:
        judgement, growth = self.candidate.judgement, self.speed.growth
        return {
            "rows": self.program.rows,
            "operations": self.program.operations,
            "training_exact": judgement.training.right,
            "held_out_exact": judgement.held_out.right,
            "halts": judgement.halts,
            "steps": growth and growth.to_json(),
            "limit_broken_from_size": self.speed.broken_from,
            "endless_probes": self.endless,
        }


@dataclass(frozen=True)
class Question:
    """An input on which programs that fit disagree: which of them is right?"""

    input: list[int]
    steps: int
    unlike: tuple[str, ...]
    """In which respects it is like no example."""
    record: Record | None
    """The input by the names of the columns, if the file has names."""
    answers: tuple[Answer, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "input": self.input,
            "columns": self.record,
            "unlike": list(self.unlike),
            "answers": [
                {
                    "programs": list(one.programs),
                    "results": one.results,
                    "output": one.output,
                    "cells": one.cells,
                }
                for one in self.answers
            ],
        }


@dataclass(frozen=True)
class Answer:
    """One of the possible answers to a question, and the programs that give it, by their numbers from 1."""

    results: Record
    output: list[int]
    """The whole memory at the end."""
    cells: list[int]
    """The addresses that count."""
    programs: tuple[int, ...]


class Comparison:
    """Compares the programs that fit some examples on probes. Everything follows from the examples and the seed."""

    def __init__(self, facts: Facts, steps: StepLimit | None, seed: int):
        self.facts, self.steps, self.seed = facts, steps, seed
        self.own_limits = steps is None and any(example.own_steps for example in facts.examples)
        """Whether the file says how many steps its examples may take."""

    @cached_property
    def file_limit(self) -> Growth | None:
        """What the file's own limits are at any size; None if that cannot be told."""
        limits = ((example.size, example.instance.steps) for example in self.facts.examples)
        return limit_of(limits) if self.own_limits else None

    def limit(self, size: int, cells: int) -> int:
        """The step limit of an example of this size in a memory of so many cells."""
        if self.file_limit is not None:
            return max(1, ceil(self.file_limit(size) - 1e-6))
        return default_steps(size, cells) if self.steps is None else self.steps(size)

    @cached_property
    def probes(self) -> list[Probe]:
        return make_probes(self.facts, self.limit, self.seed)

    @cached_property
    def long_probes(self) -> list[Probe]:
        return make_long_probes(self.facts, self.limit, self.seed)

    def measured(self, candidate: Candidate) -> Kept:
        """A program with the growth of its steps and its answers on the probes."""
        answers = self._answers(candidate.program)
        return Kept(candidate, self.speed(candidate.program), sum(one is None for one in answers), answers)

    def _answers(self, program: Program) -> tuple[Any, ...]:
        columns = self.facts.columns
        ends = _endings(program, [(probe.input, _longest(probe)) for probe in self.probes])
        return tuple(
            columns.results(probe.input, end[0]) if columns is not None and end is not None else None
            for probe, end in zip(self.probes, ends, strict=True)
        )

    def speed(self, program: Program) -> Speed:
        """How the steps grow, from the examples and from probes of growing size."""
        examples = [example.instance.input for example in self.facts.examples]
        inputs = [*examples, *(probe.input for probe in self.long_probes)]
        sizes = [one.size for one in (*self.facts.examples, *self.long_probes)]
        ends = _endings(program, [(memory, default_max_steps(len(memory))) for memory in inputs])
        steps = [None if end is None else end[1] for end in ends]
        growth = growth_of_runs(
            (size, len(memory), many)
            for size, memory, many in zip(sizes, inputs, steps, strict=True)
            if many is not None
        )
        return Speed(growth, self._broken(steps[len(examples) :], growth))

    def _broken(self, steps: Sequence[int | None], growth: Growth | None) -> int | None:
        """The smallest size at which the limit is broken: as measured on long probes, or as the growth tells."""
        if self.own_limits and self.file_limit is None:
            return None  # the limits of the file say nothing about other sizes
        long = zip(self.long_probes, steps, strict=True)
        measured = min((probe.size for probe, many in long if many is None or many > probe.steps), default=None)
        if growth is None or not growth.clear:
            return measured
        tight = [(one.size, -len(one.input)) for one in self.long_probes]
        tight = tight or [(one.size, -one.cells) for one in self.facts.examples]
        more = -sum(max(tight))  # cells that larger memories have beyond their size, if their room stays the same
        shift = more if growth.letter == "M" else 0
        if measured is None:
            broken = growth.breaks(lambda n: self.limit(n - shift, n - shift + more))
            return None if broken is None else broken - shift
        seen = max(example.size for example in self.facts.examples)
        between = range(seen + 1, measured)
        return next((n for n in between if growth(n + shift) > self.limit(n, n + more)), measured)


def _longest(probe: Probe) -> int:
    return max(example_limits(probe.steps, len(probe.input)))


def _endings(program: Program, runs: Sequence[tuple[list[int], int]]) -> list[tuple[list[int], int] | None]:
    """Memory and steps at the end of runs from a memory under a limit; None where it does not halt."""
    groups: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for index, (memory, limit) in enumerate(runs):
        groups[len(memory), limit].append(index)
    ends: list[tuple[list[int], int] | None] = [None] * len(runs)
    for (_, limit), indices in groups.items():
        ending = execute(program, [runs[i][0] for i in indices], limit)
        for i, memory, steps, halted in zip(indices, ending.memory, ending.steps, ending.halted, strict=True):
            ends[i] = (memory, int(steps)) if halted else None
    return ends


def merged(kept: Sequence[Kept]) -> list[Kept]:
    """The programs that differ on some probe, the best first. Of equals the best stays."""
    seen: list[Kept] = []
    for one in sorted(kept, key=lambda one: one.rank):
        if not any(one.answers == other.answers for other in seen):
            seen.append(one)
    return seen[:MOST_KEPT]


def question_about(kept: Sequence[Kept], comparison: Comparison, skipped: Sequence[list[int]] = ()) -> Question | None:
    """The input on which programs disagree that is most like the examples, and of these the smallest.

    One that does not halt has no answer. Skipped inputs, and those that are unlike the examples in the same respects,
    are not asked about again.
    """
    columns, probes = comparison.facts.columns, comparison.probes
    if columns is None or len(kept) < 2:
        return None
    known = {tuple(probe.input): probe.unlike for probe in probes}
    unasked = {kinds for memory in skipped if (kinds := _kinds(known.get(tuple(memory), ())))}
    for index, probe in enumerate(probes):
        groups: dict[str, list[int]] = {}
        for number, one in enumerate(kept, 1):
            if one.answers[index] is not None:
                groups.setdefault(repr(one.answers[index]), []).append(number)
        if len(groups) < 2 or probe.input in skipped or any(kinds <= _kinds(probe.unlike) for kinds in unasked):
            continue
        answers = []
        for numbers in groups.values():
            end = execute(kept[numbers[0] - 1].program, probe.input, _longest(probe)).memory
            output, cells = columns.answer(probe.input, end)
            answers.append(Answer(kept[numbers[0] - 1].answers[index], output, cells, tuple(numbers)))
        record = columns.record(probe.input) if columns.named else None
        return Question(probe.input, probe.steps, probe.unlike, record, tuple(answers))
    return None


def _kinds(unlike: Sequence[str]) -> frozenset[str]:
    """The respects without their numbers."""
    return frozenset("".join(letter for letter in one if not letter.isdigit()) for one in unlike)


def nearly_fitting(near: Sequence[Candidate], fitting: Sequence[Candidate]) -> list[Candidate]:
    """Of programs that do not fit, those that are right on more examples than any that is as short or shorter.

    If others fit, those that are far from fitting are left out.
    """

    def length(one: Candidate) -> int:
        return one.program.rows + one.program.operations

    shortest = min(map(length, fitting), default=10**9)
    least = max((LEAST_RIGHT * one.right for one in fitting if one.judgement.exact), default=0.0)
    front: list[Candidate] = []
    for one in sorted(near, key=lambda one: (length(one), -one.right)):
        better = one.right > max((other.right for other in front), default=0)
        if better and one.right >= least and length(one) < shortest:
            front.append(one)
    return front[-MOST_NEAR:]
