"""The scalars of a run for tools that draw them: TensorBoard, MLflow, W&B.

metrics.jsonl stays the truth: every point is made from one of its rows. So a run that goes on has no point twice, and a
run that has ended can still be sent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nram.errors import NramError
from nram.extras import require
from nram.training.callbacks import Report, TrainingCallbacks
from nram.training.config import TrainConfig
from nram.training.run_folder import RunFolder
from nram.training.trackers import KINDS, Point, Tracker, TrackerName

MOST_LETTERS = 600  # of what a library says
SCALARS = {
    "loss/median": "loss",
    "error/best": "best_error",
    "error/median": "median_error",
    "exact/best": "best_exact",
    "solved/soft": "solved_soft",
    "solved/hard": "solved_hard",
    "program/right": "best_hard",
    "program/halts": "best_halted",
    "members/perfect": "perfect",
    "members/skipped_updates": "skipped",
    "members/restarts": "restarts",
    "stage/number": "stage",
    "stage/max_complexity": "max_complexity",
    "speed/example_steps_per_s": "example_steps_per_s",
}
"""The name of each scalar, and the field of a row of metrics.jsonl that it shows. Curriculum levels come to these."""


class Points:
    """Makes points of the rows of a run, which come in their order."""

    def __init__(self):
        self.row = 0
        self.before: dict[int, int] = {}  # updates of each group in the stages that have ended
        self.last: dict[int, tuple[tuple[int, int], int]] = {}  # attempt and stage, and the step of it

    def point(self, row: dict[str, Any]) -> Point:
        group, step, part = row.get("group", 0), row.get("step", 0), (row.get("attempt", 0), row["stage"])
        known, reached = self.last.get(group, (part, 0))
        if known != part:
            self.before[group] = self.before.get(group, 0) + reached
        self.last[group] = part, step
        values = {name: row.get(field) for name, field in SCALARS.items()} | _levels(row.get("levels") or {})
        numbers = {
            name: float(value)
            for name, value in values.items()
            if isinstance(value, int | float) and math.isfinite(value)
        }
        name, number = row.get("group_name") or "", self.row
        self.row += 1
        return Point(number, name, self.before.get(group, 0) + step, float(row["seconds"]), numbers)


def _levels(levels: dict[Any, int]) -> dict[str, float]:
    """The mean and the highest curriculum level of the members."""
    count = sum(levels.values())
    if not count:
        return {}
    mean = sum(int(level) * members for level, members in levels.items()) / count
    return {"level/mean": mean, "level/highest": float(max(map(int, levels)))}


class Tracked(TrainingCallbacks):
    """Passes everything on, and sends the scalars of each report to trackers.

    A tracker that cannot be reached is an error when the run starts. Later the run goes on without it.
    """

    def __init__(self, inner: TrainingCallbacks, folder: RunFolder, names: Iterable[TrackerName]):
        self.inner, self.folder, self.names = inner, folder, list(dict.fromkeys(names))
        require_trackers(self.names)
        self.activity, self.note, self.warning = inner.activity, inner.note, inner.warning
        self.trackers: dict[str, tuple[Tracker, int]] = {}  # with the rows that it has
        self.again: dict[str, str] = {}  # the command that sends what is missing
        self.points: Points | None = None

    def started(self, config: TrainConfig, path: Path, device: str) -> None:
        self.connect(config)
        self.inner.started(config, path, device)

    def connect(self, config: TrainConfig) -> None:
        """Connect the trackers, each of which imports its library."""
        self.again = {name: self.folder.resume_command(config, name) for name in self.names}
        for name in self.names:
            tracker = KINDS[name](self.folder, config)
            try:
                self.trackers[name] = tracker, tracker.sent()
            except NramError:
                raise
            except Exception as error:
                raise NramError(f"cannot track the run by {name}: {_words(error)}") from None

    def report(self, report: Report) -> None:
        self.inner.report(report)
        if self.trackers:
            self._send(asdict(report))

    def ended(self) -> None:
        self.close()
        self.inner.ended()

    def close(self) -> None:
        """Send what no report has sent, because the run made none in this process, and close the trackers."""
        if self.trackers and self.points is None:
            self._send(None)
        for name, (tracker, _) in list(self.trackers.items()):
            self._careful(name, lambda tracker=tracker: tracker.close(self.folder.result))
        self.trackers.clear()

    def _send(self, row: dict[str, Any] | None) -> None:
        rows = [] if row is None else [row]
        if self.points is None:  # the rows before, and this one, which is in the file already
            self.points = Points()
            try:
                rows = self.folder.read_metrics()
            except NramError as error:
                self.trackers.clear()
                return self.warning(f"the run is not tracked: {error}")
        new = [self.points.point(one) for one in rows]
        for name, (tracker, sent) in list(self.trackers.items()):
            points = [point for point in new if point.row >= sent]
            if points:
                self._careful(name, lambda tracker=tracker, points=points: tracker.send(points))

    def _careful(self, name: str, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # of a library, a network or a disk: none of them may end a run
            self.trackers.pop(name, None)
            again = self.again[name]
            self.warning(f"tracking by {name} ended: {_words(error)}; later, '{again}' sends what is missing")


def require_trackers(names: Iterable[TrackerName]) -> None:
    """Refuse trackers whose library is not installed."""
    for name in names:
        require("tracking" if name == "tensorboard" else name, f"tracking by {name}")


def _words(error: Exception) -> str:
    return " ".join(str(error).split())[:MOST_LETTERS] or type(error).__name__
