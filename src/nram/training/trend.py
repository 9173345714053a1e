"""Whether the best member of a stage gets better."""

from __future__ import annotations

import math
from typing import Protocol

PROGRESS = 0.01  # smaller gains of the error or of the share of right answers do not count
FALL = 0.05  # a best member that is worse than the best so far by this much, in both figures, is another one
RELATIVE = 0.1  # a gain of the error is also at least this share of it
SMOOTH = 4  # the error of a single batch is noisy: the mean of so many reports counts


class Point(Protocol):
    """What a report of a run says about its best member."""

    @property
    def stage(self) -> int: ...
    @property
    def attempt(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    @property
    def highest_level(self) -> int: ...
    @property
    def best_error(self) -> float: ...
    @property
    def best_hard(self) -> float | None: ...


class Standing(Protocol):
    """How far a group came."""

    @property
    def perfect(self) -> int: ...
    @property
    def stage(self) -> int: ...
    @property
    def waits(self) -> bool: ...
    @property
    def best_hard(self) -> float | None: ...


def standing(group: Standing) -> tuple[float, ...]:
    """Larger for a group that came further."""
    return group.perfect, group.stage, group.waits, group.best_hard or 0.0


class Trend:
    """The best results of the present stage, and when they last got better. Reports are added one by one."""

    def __init__(self, stage: int = -1, attempt: int = 0):
        self.stage, self.attempt = stage, attempt
        self.errors: list[float] = []  # of the best member, at every report of the stage
        self.improved_at = 0  # the number of reports then
        self.improved = self.now = 0.0  # seconds of the run
        self.level, self.error, self.hard = 0, math.inf, 0.0
        self.figures: list[str] = []  # those that got better last; none at the first report of the stage
        self.fell_back = False  # both figures are worse than they were: the best member is gone

    def add(self, point: Point) -> None:
        if (point.stage, point.attempt) != (self.stage, self.attempt):
            self.__init__(point.stage, point.attempt)
        self.now = point.seconds
        self.errors.append(point.best_error)
        error = sum(self.errors[-SMOOTH:]) / len(self.errors[-SMOOTH:])
        level, hard = point.highest_level, point.best_hard or 0.0
        smaller = error <= self.error - PROGRESS and error <= (1 - RELATIVE) * self.error
        better = {
            "right as a program": hard >= self.hard + PROGRESS or hard == 1.0 > self.hard,
            "level": level > self.level,
            "soft error": smaller,
        }
        if any(better.values()):
            self.figures = [name for name, gained in better.items() if gained and len(self.errors) > 1]
            self.improved, self.improved_at = point.seconds, len(self.errors)
            # A record moves only with a gain that counts, so that small gains add up.
            self.level, self.error, self.hard = max(self.level, level), min(self.error, error), max(self.hard, hard)
        self.fell_back = hard < self.hard - FALL and error > self.error + FALL

    @property
    def waiting(self) -> float:
        """Seconds since the best member last got better."""
        return self.now - self.improved

    @property
    def improving(self) -> bool:
        """Whether it got better in the last fifth of the stage, or within the last few reports, and still is."""
        return not self.fell_back and len(self.errors) - self.improved_at <= max(SMOOTH, len(self.errors) // 5)
