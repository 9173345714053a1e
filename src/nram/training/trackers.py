"""The tools that can follow a run. Each imports its library when it connects."""

from __future__ import annotations

import calendar
import contextlib
import json
import logging
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from secrets import token_hex
from typing import Any, Literal, Protocol, get_args

from nram.errors import NramError
from nram.files import read_json
from nram.training.config import TrainConfig
from nram.training.run_folder import RunFolder
from nram.training.settings import used_settings

TrackerName = Literal["tensorboard", "mlflow", "wandb"]
TRACKERS: tuple[TrackerName, ...] = get_args(TrackerName)
PROJECT = "nram"  # of a tool that has projects, unless its environment names another
KEPT = "tracking.json"  # in the run folder: under which name each tool knows the run, and how many rows it has
MOST_BYTES = 1 << 16
TOGETHER = 50  # rows or settings that are sent at once
MOST_LETTERS = 500  # of a setting, for MLflow


@dataclass(frozen=True)
class Point:
    """What one row of metrics.jsonl says, as numbers."""

    row: int
    """Its place in the file, from 0."""
    group: str
    """Empty if the run has no groups."""
    updates: int
    """Of each member of the group so far, in all stages."""
    seconds: float
    """Since the run began."""
    values: dict[str, float]


class Tracker(Protocol):
    """A tool that points are sent to. What goes wrong is a NramError, or an error of its library."""

    def sent(self) -> int:
        """Connect, and say how many rows of the run the tool has already."""
        ...

    def send(self, points: Sequence[Point]) -> None: ...

    def close(self, result: dict[str, Any] | None) -> None:
        """The process ends; with a result, the run is finished."""
        ...


class TensorBoard:
    """Event files in the folder `tensorboard` of the run, one folder for each group, made again from all rows.

    They are written by this thread: tensorboardX's own writer has another one, and a full disk would end that silently.
    """

    def __init__(self, run: RunFolder, config: TrainConfig):
        self.folder = run.path / "tensorboard"
        self.began = _seconds_of(run.record.created)
        self.writers: dict[str, Any] = {}

    def sent(self) -> int:
        for file in self.folder.rglob("events.out.tfevents.*"):
            file.unlink()
        self.folder.mkdir(exist_ok=True)
        return 0

    def send(self, points: Sequence[Point]) -> None:
        from tensorboardX.proto.event_pb2 import Event  # pyright: ignore[reportAttributeAccessIssue]
        from tensorboardX.summary import scalar

        for point in points:
            for name, value in point.values.items():
                when, shown = self.began + point.seconds, scalar(name, value)
                self._writer(point.group).write_event(Event(wall_time=when, step=point.updates, summary=shown))
        for writer in self.writers.values():
            writer.flush()

    def _writer(self, group: str) -> Any:
        if group not in self.writers:
            folder = self.folder / group
            folder.mkdir(exist_ok=True)
            from tensorboardX.event_file_writer import EventsWriter
            from tensorboardX.proto import event_pb2

            events: Any = event_pb2  # made by protobuf, without types
            writer = EventsWriter(str(folder.resolve() / "events"))
            # A TensorBoard that has read the files before forgets what it has from step 0 on.
            begin = events.SessionLog(status=events.SessionLog.START)
            writer.write_event(events.Event(wall_time=self.began, step=0, session_log=begin))
            self.writers[group] = writer
        return self.writers[group]

    def close(self, result: dict[str, Any] | None) -> None:
        for writer in self.writers.values():
            writer.close()


class _Kept:
    """What the run folder keeps about a tool that is elsewhere."""

    def __init__(self, run: RunFolder, name: str):
        self.run, self.name = run, name
        self.path = run.path / KEPT

    def read(self) -> tuple[str | None, int]:
        """The tool's name for the run, and how many rows it has. A damaged file counts as none."""
        own = self._all().get(self.name)
        if isinstance(own, dict) and isinstance(own.get("id"), str) and type(own.get("rows")) is int:
            return own["id"], max(0, own["rows"])
        return None, 0

    def _all(self) -> dict[str, Any]:
        with contextlib.suppress(NramError):
            if self.path.is_file() and isinstance(value := read_json(self.path, MOST_BYTES), dict):
                return value
        return {}

    def write(self, identity: str, rows: int) -> None:
        self.run.write_json(KEPT, self._all() | {self.name: {"id": identity, "rows": rows}})

    def send(self, identity: str, points: Sequence[Point], work: Callable[[Sequence[Point]], None]) -> None:
        """Send points once. Their number is written before, so a process that is killed meanwhile loses them there."""
        for first in range(0, len(points), TOGETHER):
            some = points[first : first + TOGETHER]
            self.write(identity, some[-1].row + 1)
            try:
                work(some)
            except BaseException:
                with contextlib.suppress(NramError):
                    self.write(identity, some[0].row)
                raise


class MLflow:
    """A run in the experiment `nram`, or MLFLOW_EXPERIMENT_NAME, on the server of MLFLOW_TRACKING_URI."""

    def __init__(self, run: RunFolder, config: TrainConfig):
        self.run, self.config, self.kept = run, config, _Kept(run, "mlflow")
        self.began = _seconds_of(run.record.created)

    def sent(self) -> int:
        from mlflow import MlflowClient  # pyright: ignore[reportMissingImports]
        from mlflow.entities import Param  # pyright: ignore[reportMissingImports]

        self.client = MlflowClient()
        found, rows = self.kept.read()
        if found is not None:
            self.id = found
            self.client.update_run(self.id, status="RUNNING")
            return rows
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
        experiment = self.client.get_experiment_by_name(name)
        where = experiment.experiment_id if experiment else self.client.create_experiment(name)
        self.id = self.client.create_run(where, run_name=self.run.path.name).info.run_id
        self.kept.write(self.id, 0)
        settings = [Param(name, _text(value)[:MOST_LETTERS]) for name, value in used_settings(self.config).items()]
        for first in range(0, len(settings), TOGETHER):
            self.client.log_batch(self.id, params=settings[first : first + TOGETHER])
        return 0

    def send(self, points: Sequence[Point]) -> None:
        from mlflow.entities import Metric  # pyright: ignore[reportMissingImports]

        def work(some: Sequence[Point]) -> None:
            metrics = [
                Metric(_named(point.group, name), value, round(1000 * (self.began + point.seconds)), point.updates)
                for point in some
                for name, value in point.values.items()
            ]
            self.client.log_batch(self.id, metrics=metrics)

        self.kept.send(self.id, points, work)

    def close(self, result: dict[str, Any] | None) -> None:
        for name, value in (result or {}).items():
            if type(value) in (int, float):
                self.client.log_metric(self.id, f"result/{name}", value)
        self.client.set_terminated(self.id, "FINISHED" if result is not None else "KILLED")


class WandB:
    """A run in the project `nram`, or WANDB_PROJECT. With WANDB_MODE=offline its files are in the run folder."""

    def __init__(self, run: RunFolder, config: TrainConfig):
        self.run, self.config, self.kept = run, config, _Kept(run, "wandb")

    def sent(self) -> int:
        import wandb  # pyright: ignore[reportMissingImports]

        logging.getLogger("wandb").setLevel(logging.ERROR)
        found, rows = self.kept.read()
        self.id = found or token_hex(6)
        self.wandb = wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            name=self.run.path.name,
            id=self.id,
            resume="allow",
            dir=str(self.run.path.resolve()),
            config=None if found else used_settings(self.config),
            settings=wandb.Settings(console="off", silent=True),
        )
        for group in self.config.group_names if self.config.groups else ("",):
            self.wandb.define_metric(_named(group, "*"), step_metric=_named(group, "updates"))
        self.kept.write(self.id, rows)
        return rows

    def send(self, points: Sequence[Point]) -> None:
        def work(some: Sequence[Point]) -> None:
            for point in some:  # its steps must grow, and those of groups that take turns do not
                values = {**point.values, "updates": point.updates, "seconds": point.seconds}
                named = {_named(point.group, name): value for name, value in values.items()}
                self.wandb.log(named, step=point.row, commit=True)

        self.kept.send(self.id, points, work)

    def close(self, result: dict[str, Any] | None) -> None:
        self.wandb.summary.update(result or {})
        self.wandb.finish(exit_code=0 if result is not None else 1)


KINDS: dict[TrackerName, Callable[[RunFolder, TrainConfig], Tracker]] = {
    "tensorboard": TensorBoard,
    "mlflow": MLflow,
    "wandb": WandB,
}


def _named(group: str, name: str) -> str:
    return f"{group}/{name}" if group else name


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _seconds_of(created: str) -> float:
    """When a run was created, in seconds since 1970; 0 if that is not known."""
    with contextlib.suppress(ValueError):
        return float(calendar.timegm(time.strptime(created, "%Y-%m-%dT%H:%M:%SZ")))
    return 0.0
