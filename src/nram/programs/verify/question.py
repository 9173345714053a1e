"""Is this program right on this task? What all methods need to know, and the step limits they look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nram.errors import UsageError
from nram.limits import StepLimit
from nram.programs.execute import engine_for
from nram.programs.ir import Program
from nram.programs.verify.findings import Progress
from nram.tasks.base import Task

MOST_STEPS_PER_ITEM, MOST_STEPS = 10_000, 1_000_000


@dataclass(frozen=True)
class Question:
    """A program, a task, and how to go about it."""

    program: Program
    task: Task
    limit: StepLimit
    """T(n)."""
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
    return Question(program, task, limit, engine_for(program, engine), progress or (lambda words: None))
