"""A training run as a job: opened, checked, started or continued, and run to its result.

Everything that trains goes through here: `nram train`, `nram.train`, `nram reproduce` and `nram learn`. Opening a job
does not import JAX, so that bad arguments are refused at once, and it writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nram.extras import require
from nram.runtime import Device, device_name, on_devices, return_large_blocks
from nram.training.callbacks import TrainingCallbacks
from nram.training.config import TrainConfig
from nram.training.run_folder import RunFolder
from nram.training.settings import load_config, require_usable
from nram.training.trackers import TrackerName
from nram.training.tracking import Tracked

if TYPE_CHECKING:
    from nram.training.trainer import MemberDetails


@dataclass(frozen=True)
class TrainingJob:
    """A run that can be started or continued, or that is finished."""

    folder: RunFolder
    config: TrainConfig
    words: list[str]
    """The command after `nram`, for the record of a new run."""

    @classmethod
    def open(
        cls, path: Path, config: TrainConfig, words: list[str], *, resume: bool = False, trust: bool = False
    ) -> TrainingJob:
        """The run in this folder. Without `resume` it must be new; otherwise its configuration must be the same."""
        require_usable(config)
        folder = RunFolder(path, trust)
        if resume and folder.exists:
            RunFolder.open(path, trust).require_same(config)
        else:
            folder.require_new()
        return cls(folder, config, words)

    @classmethod
    def for_task(
        cls,
        task: str,
        out: Path | None = None,
        *,
        seed: int | None = None,
        file: Path | None = None,
        protocol: str | None = None,
        overrides: list[str] | None = None,
        resume: bool = False,
        words: list[str] | None = None,
        trust: bool = False,
    ) -> TrainingJob:
        """A run of the recipe, or of a protocol or a file with settings in its place, with `key=value` overrides.

        The folder is `runs/TASK-SEED` unless `out` is given. A run that continues keeps its own settings: they are
        compared with the recipe only if the caller gives any, and the seed only if the caller gives one. Python files
        that only the run or the file with the settings names are executed with `trust` alone.
        """
        config = load_config(task, file=file, protocol=protocol, overrides=overrides, seed=seed, trust=trust)
        path = out or Path("runs", f"{config.task_name}-{config.seed}")
        if words is None:
            words = ["train", task, "--seed", str(config.seed), *(["--protocol", protocol] if protocol else [])]
            words += [word for override in overrides or () for word in ("--set", override)]
        if resume and not (file or protocol or overrides) and RunFolder(path).exists:
            folder = RunFolder.open(path, trust)
            folder.require_task(config.task)
            config = folder.config if seed is None else replace(folder.config, seed=seed)
        return cls.open(path, config, words, resume=resume, trust=trust)

    @property
    def result(self) -> dict[str, Any] | None:
        """How the run ended; None if it has not ended."""
        return self.folder.result

    def run(
        self,
        device: str = "auto",
        callbacks: TrainingCallbacks | None = None,
        stopping: Callable[[], bool] = lambda: False,
        solved: Callable[[list[MemberDetails]], None] = lambda members: None,
        until: float = inf,
        track: Sequence[TrackerName] = (),
    ) -> dict[str, Any]:
        """Train to the end, from the checkpoint if there is one, and return the result.

        A finished run returns its result at once. When `stopping` becomes true, the run saves and raises `Interrupted`.
        `solved` gets the members that a check finds right on the whole validation set, the best first. The run stops at
        the time `until` of `time.monotonic()`, as if asked to, and before a round that would end later. The scalars of
        the run, also of one that is finished, go to the tools of `track`.
        """
        tracked = Tracked(callbacks or TrainingCallbacks(), self.folder, track)
        if (result := self.result) is not None:
            tracked.note(f"{self.folder.path} is finished already.")
            if track:
                with self.folder.locked():
                    tracked.connect(self.config)
                    tracked.close()
            return result
        require("train", "training")
        with on_devices(device) as devices:
            return self._train(devices, tracked, stopping, solved, until)

    def _train(
        self,
        devices: list[Device],
        callbacks: TrainingCallbacks,
        stopping: Callable[[], bool],
        solved: Callable[[list[MemberDetails]], None],
        until: float,
    ) -> dict[str, Any]:
        from nram.training.footprint import check_fits  # JAX
        from nram.training.trainer import train

        return_large_blocks()
        check_fits(self.config, devices)
        name = device_name(devices)
        if self.folder.exists:
            for difference in self.folder.differences(name):
                callbacks.warning(
                    f"{self.folder.path}: {difference}: the result may differ from an uninterrupted run's"
                )
        else:
            RunFolder.create(self.folder.path, self.config, self.words, name)
        with self.folder.locked():
            callbacks.started(self.config, self.folder.path, name)
            try:
                return train(self.folder, self.config, devices, callbacks, stopping, solved, until)
            finally:
                callbacks.ended()
