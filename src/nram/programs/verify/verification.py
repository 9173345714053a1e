"""What is verified and how: the record that all three methods share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from nram.errors import UsageError
from nram.limits import StepLimit
from nram.programs.execute import engine_for
from nram.programs.ir import Program
from nram.programs.library import limit_for
from nram.tasks.base import Task

MOST_STEPS_PER_ITEM, MOST_STEPS = 10_000, 1_000_000

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Verification:
    """A program, a task, and how to check one against the other."""

    program: Program
    task: Task
    limit: StepLimit
    """T(n)."""
    engine: Literal["native", "python"]
    progress: Progress
    """Called with a line of text after each part of the work."""


def verification(program: Program, task: Task, engine: str = "auto", progress: Progress | None = None) -> Verification:
    limit = limit_for(program, task)
    if limit.per_item > MOST_STEPS_PER_ITEM or limit.constant > MOST_STEPS:
        raise UsageError(
            f"T(n) = {limit.per_item}n+{limit.constant} is too long to be verified: give the program a limit of at "
            f"most {MOST_STEPS_PER_ITEM}n+{MOST_STEPS}"
        )
    return Verification(program, task, limit, engine_for(program, engine), progress or (lambda line: None))
