"""Testing a program against other examples: how many are right, the smallest that is wrong, and steps against size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from nram.display import Fixed, counted, text_block
from nram.errors import UsageError
from nram.extensions import get_task, is_task_file, task_names
from nram.limits import StepLimit
from nram.programs.growth import Growth, growth_of_runs, limit_of
from nram.programs.ir import Program
from nram.programs.library import limit_for
from nram.programs.scores import Score, own_limits, score_of
from nram.tasks.base import Task
from nram.tasks.example_files import Example, ExampleFile, Reading, read_examples

FAR = 50  # the largest n of a task, unless another is given
COUNT = 1000  # instances of a task
MOST_SIZES = 8  # in the table of steps


@dataclass(frozen=True, repr=False)
class Tested(Fixed):
    """The result of a test. It prints as a report."""

    program: Program
    source: str
    """What the program was tested on, in words."""
    score: Score
    notes: tuple[str, ...]
    growth: Growth | None
    """How the steps grow with the size; None if too few runs halted."""
    breaks: int | None
    """The first size beyond those tested at which the steps should exceed the limit; None if none is known."""

    @property
    def right(self) -> int:
        return self.score.right

    @property
    def wrong(self) -> int:
        return len(self.score.wrong)

    @property
    def most_steps(self) -> dict[int, int]:
        """The most steps of a run that halted, for each size."""
        most: dict[int, int] = {}
        for size, _, steps in self.score.runs:
            most[size] = max(steps, most.get(size, 0))
        return dict(sorted(most.items()))

    def to_json(self) -> dict[str, Any]:
        score = self.score.to_json()
        del score["exact"]
        return {
            "right": self.right,
            "wrong": self.wrong,
            "program": self.program.name,
            "source": self.source,
            **score,
            "steps": [[size, steps] for size, steps in self.most_steps.items()],
            "growth": self.growth and self.growth.to_json(),
            "breaks_limit_from": self.breaks,
            "notes": list(self.notes),
        }

    def _brief(self) -> str:
        return f"{self.program.name}: {self.right} right, {self.wrong} wrong on {self.source}"

    def _repr_html_(self) -> str:
        return text_block(str(self))

    def __str__(self) -> str:
        score = self.score
        every = "when stopped at T(n)" if self.program.needs_limit else "under every step limit tested"
        lines = [f"{self.program.name} on {self.source}", ""]
        if score.exact:
            lines.append(f"RIGHT on all {score.examples:,}, {every}.")
        else:
            lines.append(f"WRONG on {self.wrong:,} of {score.examples:,}, right on {self.right:,}.")
        if score.smallest is not None:
            lines += ["The smallest that is wrong:", *score.smallest.in_words()]
        halted = "every one" if score.halted == score.examples else f"{score.halted:,} of {score.examples:,}"
        lines.append(f"It halts by itself within the limit on {halted if score.halted else 'none'}.")
        if score.stray and self.program.layout is None:
            lines.append(f"On {score.stray:,} it also changes cells that were not asked about, which is not wrong.")
        return "\n".join([*lines, *self._steps(), *(f"Note: {text}." for text in self.notes)])

    def _steps(self) -> list[str]:
        most = self.most_steps
        if not most:
            return []
        sizes = list(most)
        step = max(1, -(-len(sizes) // MOST_SIZES))
        chosen = sorted({*sizes[::step], sizes[-1]})
        width = max(len(str(most[size])) for size in chosen)
        width = max(width, len(str(chosen[-1])))
        lines = [
            "",
            "n           " + "  ".join(f"{size:>{width}}" for size in chosen),
            "most steps  " + "  ".join(f"{most[size]:>{width}}" for size in chosen),
        ]
        if self.growth is not None:
            halted = len(self.score.runs)
            which = "" if halted == self.score.examples else f" in the {halted:,} runs that halted"
            largest = f"{self.growth.letter} = {self.growth.largest}"
            lines.append(f"{self.growth.sentence}, measured up to {largest}{which}.")
        if self.breaks is not None:
            lines.append(f"From n = {self.breaks:,} on it may not halt within the step limit.")
        return lines


def run_test(
    program: Program,
    source: str | bytes | Task,
    *,
    count: int = COUNT,
    complexity: int | None = None,
    seed: int = 0,
    reading: Reading | None = None,
) -> Tested:
    """Test a program on a task (an object, a name or a .py file), on a file of examples or on examples from Python.

    Of a task, `count` instances are drawn, half with n = `complexity` and half with smaller n. `reading` says how a
    file is read.
    """
    reading = reading or Reading()
    if isinstance(source, str) and (source in task_names() or is_task_file(source) or not Path(source).is_file()):
        source = get_task(source)
    if isinstance(source, Task):
        if reading.words:
            raise UsageError(f"{reading.words[0]} is for a file of examples: leave it out")
        return _on_task(program, source, count, complexity, seed)
    if complexity is not None:
        raise UsageError("a complexity is for a task, and this is a file of examples: leave it out")
    return _on_file(program, source, reading)


def _on_task(program: Program, task: Task, count: int, complexity: int | None, seed: int) -> Tested:
    largest = max(FAR, task.trained_up_to) if complexity is None else complexity
    task.check_complexity(largest)
    limit, rng = limit_for(program, task), Random(seed)
    examples = []
    for number in range(1, count + 1):
        n = rng.randint(task.min_complexity, largest) if number % 2 else largest
        least = task.least_memory(n)
        size = least + (rng.randint(1, least) if number % 4 > 1 else 0)  # half have the least memory
        instance = replace(task.sample(n, 1, rng.getrandbits(31), size)[0], steps=limit(n))
        cells = frozenset(instance.cells)
        examples.append(Example(number, instance, cells, own_steps=True, named_size=n, unit="instance"))
    low, high = task.min_complexity, largest
    source = f"the task {task.name}: {counted(count, 'instance')}, n = {low} to {high}, T(n) = {limit}"

    def limits(example: Example) -> tuple[int, ...]:
        return tuple(limit.ascending(example.size).values())

    score = score_of(program, examples, _first_limit if program.needs_limit else limits)
    return _tested(program, source, score, limit)


def _first_limit(example: Example) -> tuple[int, ...]:
    return (example.instance.steps,)


def _on_file(program: Program, source: str | bytes, reading: Reading) -> Tested:
    def read(reading: Reading) -> ExampleFile:
        if isinstance(source, bytes):
            return read_examples(Path("examples.jsonl"), reading, source)
        return read_examples(Path(source), reading)

    file = read(reading)
    notes = []
    if file.layout is not None and reading.layout is None:
        if program.layout is None:
            notes.append(f"the program has no names for its inputs, so nram laid the columns out as '{file.layout}'")
        elif program.layout != file.layout:  # the file may hold other values, but the program keeps its layout
            file = read(replace(reading, layout=str(program.layout)))
    if program.limit is not None and program.task is None:
        file = file.with_steps(program.limit)
    if file.repeated:
        notes.append(f"{counted(file.repeated, 'repeated example')} left out")
    score = score_of(program, file.examples, _first_limit if program.needs_limit else own_limits)
    limit = limit_of((example.size, example.instance.steps) for example in file.examples)
    notes.append(f"what counts: {file.counted}")
    called = "the examples" if isinstance(source, bytes) else source
    words = f"{called}: {counted(len(file.examples), 'example')}"
    return _tested(program, words, score, limit, notes)


def _tested(
    program: Program, source: str, score: Score, limit: StepLimit | Growth | None, notes: Sequence[str] = ()
) -> Tested:
    growth = growth_of_runs(score.runs)
    breaks = None
    # A program that was right before it halted need not halt in time.
    in_time = score.exact and score.halted == score.examples
    if in_time and limit is not None and growth is not None and growth.letter == "n" and growth.clear:
        breaks = growth.breaks(limit)
    if breaks is not None and limit is not None and program.right_under_every_limit and program.limit is not None:
        breaks = None if limit(breaks) >= program.limit(breaks) else breaks  # its card knows better
    return Tested(program, source, score, tuple(notes), growth, breaks)
