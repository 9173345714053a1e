"""A study as a job: opened, checked, started or continued, and run to its table.

The driver is the process of the command. It starts trials, and writes results.jsonl from what they came to. Everything
that matters is in the files of the trials, each written once and atomically, so a study goes on after anything.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from nram.cluster.callbacks import StudyCallbacks
from nram.cluster.checks import check_trials, with_digests
from nram.cluster.gpus import Gpus, decided, gpus_here
from nram.cluster.plan import Trial, trials_of
from nram.cluster.pool import Event, run_pool, slots_of
from nram.cluster.spec import Spec
from nram.cluster.spec_file import read_spec
from nram.cluster.study import Study
from nram.cluster.table import table_rows
from nram.cluster.trial import Outcome
from nram.display import counted
from nram.errors import NramError, UsageError
from nram.extras import require
from nram.files import check_destination, make_folder
from nram.messages import pasted, shell_command
from nram.training.tracking import require_trackers

Work = Callable[..., Generator[Event, None, None]]
"""Runs trials until `stopping` is true, and tells what they do."""


@dataclass(frozen=True)
class Studied:
    """How far a study is when the command ends."""

    study: Study
    trials: list[Trial]
    outcomes: dict[str, Outcome]
    failed: dict[str, str]
    """Trials that could not be run to their end, and why."""
    trouble: str | None
    """Why the command ended before all trials had their turn; None if they had."""
    seconds: float

    @property
    def finished(self) -> bool:
        return len(self.outcomes) == len(self.trials)

    @property
    def rows(self) -> list[dict[str, Any]]:
        return table_rows(self.trials, self.outcomes)

    @property
    def onwards(self) -> str:
        return shell_command("sweep", pasted(self.study.path), resume=True)

    def to_json(self) -> dict[str, Any]:
        return {
            "study": str(self.study.path),
            "finished": self.finished,
            "trials": len(self.trials),
            "ended": len(self.outcomes),
            "learned": sum(one.learned for one in self.outcomes.values()),
            "failed": self.failed,
            "trouble": self.trouble,
            "seconds": round(self.seconds, 1),
            "rows": self.rows,
            "results": str(self.study.results),
        }


@dataclass(frozen=True)
class StudyJob:
    """A study that can be started or continued, or that is finished."""

    study: Study
    spec: Spec
    trials: list[Trial]
    words: list[str]
    new: bool = True
    """There was no study in the folder when the job was opened."""

    @classmethod
    def open(
        cls, source: Path, out: Path | None, words: list[str], *, resume: bool = False, trust: bool = False
    ) -> StudyJob:
        """The study of a specification, or the one in a folder. Everything is checked; nothing is written.

        Python files that only the specification names are executed with `trust` alone.
        """
        if Study(source).exists:
            if out is not None and out.resolve() != source.resolve():
                raise UsageError(f"{source} is a study: leave out --out, or name its specification")
            if not resume:
                raise UsageError(f"{source} is a study: go on with it by --resume")
            study = Study(source)
            spec = study.spec
            study.require_same(spec)
        else:
            if source.is_dir():
                raise UsageError(f"{source} is a folder without study.json: name a file with a specification")
            spec = read_spec(source)
            study = Study(out or Path("studies", source.stem))
            if resume and study.exists:
                spec = study.as_begun(spec)
                study.require_same(spec)
            else:
                study.require_new()
        trials = study.trials if study.exists else trials_of(spec)
        check_trials(spec, trials, trust)
        # A study of an earlier version has the digests in one place alone.
        trials = with_digests(trials, study.record.files if study.exists else None)
        return cls(study, spec, trials, words, not study.exists)

    def run(
        self,
        callbacks: StudyCallbacks | None = None,
        stopping: Callable[[], bool] = lambda: False,
        *,
        workers: int | None = None,
        address: str | None = None,
    ) -> Studied:
        """Run every trial that has not ended. Without an address on this machine, otherwise on a Ray cluster."""
        callbacks = callbacks or StudyCallbacks()
        if self.spec.verb == "train":
            require("train", "training")
            require_trackers(self.spec.track or ())
        if address is None:
            for name, value in (("early_stopping", self.spec.early_stopping), ("storage", self.spec.storage)):
                if value is not None:
                    raise UsageError(f"{name} needs Ray: give --address (--address local starts Ray on this machine)")
        elif workers is not None:
            raise UsageError("--workers is for this machine: with --address, resources say how many run at once")
        else:
            require("cluster", "--address")
        if not self.new and len(self.study.outcomes(self.trials)) == len(self.trials):  # neither GPUs nor a cluster
            return self._run(callbacks, stopping, partial(run_pool, place=self.study.place, slots=[]), 0)
        if address is None:
            job = self._with_gpus(gpus_here(), "this machine", callbacks.note)
            slots = slots_of(job.spec.resources, workers, begun=not self.new)
            here = partial(run_pool, place=self.study.place, slots=slots)
            return job._run(callbacks, stopping, here, len(slots))
        from nram.cluster import on_ray  # Ray: a study on this machine does not need it

        with on_ray.cluster_at(address, callbacks.note) as gpus:  # before anything is written
            job = self._with_gpus(gpus, "the cluster", callbacks.note)
            on_ray.require_resources(job.spec.resources)
            there = partial(on_ray.run_on_ray, spec=job.spec, study=self.study, note=callbacks.note)
            return job._run(callbacks, stopping, there, None)

    def _with_gpus(self, gpus: Gpus, whose: str, note: Callable[[str], None]) -> StudyJob:
        """The study with the part of a GPU that each trial has. It is decided once, when a study begins."""
        resources = self.spec.resources
        if not self.new:
            if self.spec.verb == "train" and not resources.gpus and gpus.count and gpus.usable:
                note(f"{whose} has {counted(gpus.count, 'GPU')}: the study began on cores, and goes on on cores")
            return self
        share, text = resources.gpus, None
        if share is None:
            share, text = decided(gpus, whose) if self.spec.verb == "train" else (0.0, None)
        if text is not None:
            note(text)
        spec = replace(self.spec, resources=replace(resources, gpus=share))
        return replace(self, spec=spec, trials=[replace(trial, gpus=share) for trial in self.trials])

    def _run(
        self, callbacks: StudyCallbacks, stopping: Callable[[], bool], work: Work, side_by_side: int | None
    ) -> Studied:
        with self.study.held():
            if self.new:  # still: another process may have been faster
                self.study.create(self.spec, self.trials, self.words)
            for folder in ("runs", "trials"):
                make_folder(self.study.path / folder)
            return _Driver(self, callbacks, stopping).run(work, side_by_side)


class _Driver:
    def __init__(self, job: StudyJob, callbacks: StudyCallbacks, stopping: Callable[[], bool]):
        self.job, self.study, self.callbacks, self.stopping = job, job.study, callbacks, stopping
        self.began = time.monotonic()
        self.failed: dict[str, str] = {}
        self.trouble: str | None = None

    def run(self, work: Work, side_by_side: int | None) -> Studied:
        for difference in self.study.differences():
            self.callbacks.note(f"{self.study.path}: {difference}: trials may differ from those before")
        noted: list[str] = []
        self.outcomes = self.study.outcomes(self.job.trials, noted)
        for text in noted:
            self.callbacks.note(text)
        self.study.write_results(self.outcomes)
        left = [trial for trial in self.job.trials if trial.name not in self.outcomes]
        learned = sum(one.learned for one in self.outcomes.values())
        at_once = None if side_by_side is None else min(side_by_side, len(left))
        self.callbacks.started(self.study.path.name, len(self.job.trials), len(self.outcomes), learned, at_once)
        try:
            with contextlib.closing(work(left, stopping=self._stopping)) as events:
                for event in events:
                    self._on(event)
        finally:
            self.callbacks.closed()
        if self.trouble is None and len(self.outcomes) + len(self.failed) < len(self.job.trials):
            self.trouble = "its seconds are over" if self._over and not self.stopping() else "it was stopped"
        studied = Studied(
            self.study, self.job.trials, self.outcomes, self.failed, self.trouble, time.monotonic() - self.began
        )
        try:
            self.study.write_summary(studied.to_json())
        except NramError:
            if self.trouble is None:  # otherwise it is known why, and the rest is still shown
                raise
        return studied

    @property
    def _over(self) -> bool:
        seconds = self.job.spec.seconds
        return seconds is not None and time.monotonic() - self.began > seconds

    def _stopping(self) -> bool:
        return self._over or self.trouble is not None or self.stopping()

    def _on(self, event: Event) -> None:
        trial = event.trial
        if trial is None:
            self.callbacks.tick()
        elif event.ended is None:
            assert event.progress is not None
            self.callbacks.progress(trial, event.progress)
        elif event.ended.kind == "ended":
            self._take(trial)
        elif event.ended.kind == "failed":
            self._fail(trial, event.ended.message)
        else:
            self.callbacks.paused(trial)

    def _take(self, trial: Trial) -> None:
        """Count a trial that has ended, once."""
        if trial.name in self.outcomes:
            return
        try:
            outcome = self.study.place.read_outcome(trial.name)
        except NramError as error:
            return self._fail(trial, str(error))
        if outcome is None:
            return self._fail(trial, f"its process ended, and {self.study.place.outcome(trial.name)} is missing")
        self.outcomes[trial.name] = outcome
        self.study.append_result(outcome)
        self.failed.pop(trial.name, None)
        self.callbacks.ended(trial, outcome)

    def _fail(self, trial: Trial, message: str) -> None:
        self.failed[trial.name] = message
        self.callbacks.failed(trial, message)
        try:  # where nothing can be written, no other trial needs to begin
            check_destination(self.study.path / "results.jsonl")
        except UsageError as error:
            self.trouble = str(error).removesuffix("; choose another --out")
