"""The job of `nram reproduce`: train where asked, examine every model, write the table and the figure.

Making a job refuses what cannot be done. It does not import JAX and writes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nram.errors import UsageError
from nram.extensions import known_task
from nram.extras import require
from nram.files import check_destination, make_folder, write_result
from nram.programs.ir import Origin
from nram.reproduction.examining import Plan, Progress, examine_all
from nram.reproduction.models import Model, run_model, zoo_models
from nram.reproduction.paper import TABLE
from nram.reproduction.report import Reproduction, to_json, to_markdown
from nram.runtime import prepare_devices
from nram.tasks.base import Task
from nram.training.callbacks import TrainingCallbacks
from nram.training.job import TrainingJob
from nram.training.run_folder import RunFolder
from nram.training.settings import load_config


@dataclass(frozen=True)
class ReproductionJob:
    """What is to be measured, and where the files go."""

    tasks: Sequence[str]
    """Names; none: all tasks of the paper's table, or those to be trained."""
    train: Sequence[str]
    """Tasks to be trained first. The best member of the run replaces the zoo's trained model."""
    origins: tuple[Origin, ...]
    plan: Plan
    out: Path
    device: str = "auto"

    def __post_init__(self) -> None:
        unknown = [name for name in (*self.tasks, *self.train) if name not in TABLE]
        if unknown:
            raise UsageError(f"{', '.join(unknown)}: not in the paper's Table 1, which has {', '.join(TABLE)}")
        if self.train and "trained" not in self.origins:
            raise UsageError(
                f"--train and --origin {' '.join(self.origins)} leave nothing of the training: add --origin trained"
            )
        for task in self._chosen():
            task.check_complexity(self.plan.at)

    def _chosen(self) -> list[Task]:
        names = {*self.tasks, *self.train} or TABLE
        return [known_task(name) for name in TABLE if name in names]

    def _run_folder(self, task: str) -> Path:
        return self.out / "runs" / f"{task}-{self.plan.seed}"

    def _prepare_folder(self) -> None:
        """Make the folder, and refuse it before long work if it cannot be written to or a library is missing."""
        require("train", "a network")
        require("plots", "the figure")
        make_folder(self.out)
        for file in self._files:
            check_destination(file)

    @property
    def _files(self) -> list[Path]:
        return [self.out / name for name in ("table.md", "table.json", "generalisation.svg")]

    def run_training(self, callbacks: TrainingCallbacks, stopping: Callable[[], bool]) -> None:
        """Train each task of `train`, or continue its run."""
        self._prepare_folder()
        for name in dict.fromkeys(self.train):
            config = load_config(name, seed=self.plan.seed)
            words = ["train", name, "--seed", str(self.plan.seed)]
            job = TrainingJob.open(self._run_folder(name), config, words, resume=True)
            job.run(self.device, callbacks, stopping)

    def run(self, progress: Progress, on_note: Callable[[str], None]) -> tuple[Reproduction, list[Path]]:
        """Examine every model. Returns the table and the files that it was written to."""
        self._prepare_folder()
        prepare_devices(self.device)
        models = [(task, self._models(task, on_note)) for task in self._chosen()]
        table = Reproduction(self.plan, tuple(examine_all(models, self.plan, progress)), self.origins)
        return table, self._write(table)

    def _models(self, task: Task, on_note: Callable[[str], None]) -> list[Model]:
        if task.name not in self.train:
            return zoo_models(task, self.origins)
        folder = RunFolder.open(self._run_folder(task.name))
        trained = run_model(task, folder, lambda text: on_note(f"{task.name}: {text}"))
        return [trained, *zoo_models(task, [origin for origin in self.origins if origin != "trained"])]

    def _write(self, table: Reproduction) -> list[Path]:
        from nram.reproduction.figure import draw_generalisation  # matplotlib

        files = self._files
        write_result(files[0], to_markdown(table, files[2].name).encode())
        write_result(files[1], (json.dumps(to_json(table), indent=2) + "\n").encode())
        draw_generalisation(table, files[2])
        return files
