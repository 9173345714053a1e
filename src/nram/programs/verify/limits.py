"""The step limits under which a program is looked at."""

from __future__ import annotations

from dataclasses import dataclass

from nram.programs.ir import Program
from nram.tasks.base import StepLimit, Task


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


def limits_of(program: Program, task: Task) -> Limits:
    """By the program's own T(n), if it has one and it belongs to this task; otherwise by the task's."""
    own = program.limit if program.task in (None, task.name) else None
    return Limits(own or task.step_limit)
