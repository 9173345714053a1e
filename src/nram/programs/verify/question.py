"""Is this program right on this task? What all methods need to know, and the step limits they look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nram.errors import UsageError
from nram.programs.execute import engine_for
from nram.programs.ir import Program
from nram.programs.verify.findings import Progress
from nram.tasks.base import StepLimit, Task

MOST_STEPS_PER_ITEM, MOST_STEPS = 10_000, 1_000_000


@dataclass(frozen=True)
class Limits:
    """T(n), 2T(n) and 20n+200: a program that is right under all three halts in time or idles without harm."""

    limit: StepLimit

    def named(self, n: int) -> dict[str, int]:
        """The limits by name, from T(n) on upwards. 20n+200 is left out where it lies below T(n)."""
        first = self.limit(n)
        all_three = {"T": first, "2T": 2 * first, "20n+200": 20 * n + 200}
        ascending = sorted(all_three.items(), key=lambda item: (item[1], item[0] != "T"))
        return {name: steps for name, steps in ascending if steps >= first}

    def first(self, n: int) -> int:
        return self.limit(n)

    def last(self, n: int) -> int:
        return max(self.named(n).values())


@dataclass(frozen=True)
class Question:
    """A program, a task, and how to go about it."""

    program: Program
    task: Task
    limits: Limits
    engine: Literal["native", "python"]
    progress: Progress
    """Is told what was just done."""


def question(program: Program, task: Task, engine: str = "auto", progress: Progress | None = None) -> Question:
    """T(n) is the program's own, if it has one and it belongs to this task; otherwise the task's."""
    limit = task.step_limit
    if program.limit is not None and program.task in (None, task.name):
        limit = program.limit
    if limit.per_item > MOST_STEPS_PER_ITEM or limit.constant > MOST_STEPS:
        raise UsageError(
            f"T(n) = {limit.per_item}n+{limit.constant} is too long to be verified: give the program a limit of at "
            f"most {MOST_STEPS_PER_ITEM}n+{MOST_STEPS}"
        )
    return Question(program, task, Limits(limit), engine_for(program, engine), progress or (lambda words: None))
