"""The trial function: one run by the same jobs as the verbs, within its budget. It is the same wherever it runs.

A trial lives in two places of its study: `runs/NAME` is an ordinary run folder, and `trials/NAME.json` is what the
trial came to. The second exists only when the trial has ended, and is written once.
"""

from __future__ import annotations

import contextlib
import json
import platform
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from nram.cluster.checks import require_same_files
from nram.cluster.clock import Clock
from nram.cluster.options import SearchSettings, reading_of, settings_of
from nram.cluster.plan import Trial
from nram.errors import NramError, UsageError
from nram.extensions import get_task, is_task_file
from nram.files import locked, read_json, write_atomically
from nram.learning.callbacks import LearningCallbacks
from nram.learning.job import LearningJob
from nram.programs.files import save_found
from nram.records import Span, Tolerant, read_record
from nram.runtime import cpu_cores, versions
from nram.search.callbacks import Report as SearchReport
from nram.search.callbacks import SearchCallbacks
from nram.search.job import SearchJob
from nram.tasks.example_files import read_examples
from nram.training.callbacks import Interrupted, Report, TrainingCallbacks
from nram.training.checkpoint import read_description
from nram.training.config import TrainConfig
from nram.training.history import share_text
from nram.training.job import TrainingJob
from nram.training.run_folder import RunFolder

PROGRAM = "program.nram"  # of a search, in its folder
MOST_BYTES = 1 << 22  # of what a trial came to
LOCK_SECONDS = 30.0  # a process that was killed may hold the lock a little longer
KEPT = ("perfect_members", "halting_members", "best_validation_exact_hard", "group", "stages", "converged")

End = Literal["finished", "budget", "stopped early"]


@dataclass(frozen=True)
class Outcome(Tolerant):
    """What a trial came to: a line of results.jsonl."""

    trial: str
    verb: str
    subject: str
    seed: int
    label: str
    settings: dict[str, Any]
    command: str
    learned: bool
    ended: End
    """By itself, because its budget was over, or by early stopping."""
    seconds: Annotated[float, Span(0, 1e12)]
    budget: float | None
    device: str
    versions: dict[str, str]
    run: str
    """Its folder, in the folder of the study."""
    result: dict[str, Any] = field(default_factory=dict)
    """Further figures of the verb."""


@dataclass(frozen=True)
class Progress:
    """How far a trial is."""

    words: str
    seconds: float
    right: float = 0.0
    """How far training came, for early stopping: the stage, counted from 0, plus the best share of its validation set
    that a member solves as a program. It is the most of all groups and reports so far, so it never falls."""


class TrialStopped(NramError):
    """The trial was asked to stop. It has saved its work."""


@dataclass(frozen=True)
class Place:
    """Where the trials of a study are kept."""

    study: Path

    def run(self, trial: str) -> Path:
        return self.study / "runs" / trial

    def outcome(self, trial: str) -> Path:
        return self.study / "trials" / f"{trial}.json"

    def log(self, trial: str) -> Path:
        return self.study / "trials" / f"{trial}.log"

    def time(self, trial: str) -> Path:
        """The seconds that the work took which a search or learning has saved."""
        return self.study / "trials" / f"{trial}.time"

    def paused(self, trial: str) -> Path:
        """It is there if a worker has saved a trial that it was asked to stop: nothing follows."""
        return self.study / "trials" / f"{trial}.paused"

    def lock(self, trial: str) -> Path:
        return self.study / "trials" / f".{trial}.lock"

    def read_outcome(self, trial: str) -> Outcome | None:
        """What a trial came to; None if it has not ended."""
        path = self.outcome(trial)
        if not path.is_file():
            return None
        found = read_record(Outcome, read_json(path, MOST_BYTES), str(path))
        if found.trial != trial:
            raise NramError(f"{path} is about the trial {found.trial!r}: remove it, and the trial is looked at again")
        return found

    @contextlib.contextmanager
    def held(self, trial: str, seconds: float = LOCK_SECONDS) -> Iterator[None]:
        """Hold the lock of a trial, for which another process may have to end first."""
        end = time.monotonic() + seconds
        busy = f"another process runs the trial {trial}: wait for it or stop it"
        with contextlib.ExitStack() as stack:
            while True:
                try:
                    stack.enter_context(locked(self.lock(trial), busy))
                    break
                except UsageError:
                    if time.monotonic() > end:
                        raise
                    time.sleep(0.1)
            yield

    def write_outcome(self, outcome: Outcome) -> None:
        """Write what a trial came to. The caller holds its lock."""
        path = self.outcome(outcome.trial)
        write_atomically(path, (json.dumps(asdict(outcome), indent=1) + "\n").encode())


def run_trial(
    trial: Trial,
    place: Place,
    told: Callable[[Progress], None] = lambda progress: None,
    stopping: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Run a trial to its end, from where it was stopped or killed, and write what it came to.

    A trial that has ended is not run again. `TrialStopped`: it was asked to stop, and goes on the next time. Python
    files that the trial names are executed: they were checked when the study was opened. Each kind of work looks at its
    files once more when it has read them, so that all trials of a study have the same.
    """
    with place.held(trial.name):
        with contextlib.suppress(NramError):  # damaged: what it came to follows from its folder
            if (found := place.read_outcome(trial.name)) is not None:
                return found
        require_same_files(trial)
        work = {"train": _train, "search": _search, "learn": _learn}[trial.verb]
        outcome = work(trial, place, told, stopping)
        place.write_outcome(outcome)
        return outcome


def outcome_of(
    trial: Trial, place: Place, learned: bool, ended: End, seconds: float, device: str, result: dict[str, Any]
) -> Outcome:
    return Outcome(
        trial.name, trial.verb, trial.subject, trial.seed, trial.label, trial.settings,
        shlex.join(["nram", *trial.words]),
        learned, ended, round(seconds, 2), trial.budget, device, versions(),
        str(place.run(trial.name).relative_to(place.study)), result,
    )  # fmt: skip


# ---- train


def _train(trial: Trial, place: Place, told: Callable[[Progress], None], stopping: Callable[[], bool]) -> Outcome:
    path = place.run(trial.name)
    if is_task_file(trial.subject):
        get_task(trial.subject)
    job = TrainingJob.for_task(
        trial.subject,
        path,
        seed=trial.seed,
        protocol=trial.protocol,
        overrides=trial.overrides,
        resume=True,
        words=trial.words,
        trust=True,
    )
    require_same_files(trial)
    spent = training_seconds(path)
    until = float("inf") if trial.budget is None else time.monotonic() + trial.budget - spent
    ended: End = "finished"
    callbacks = _Training(told)
    if job.result is None and trial.budget is not None and spent >= trial.budget:
        ended = "budget"
    else:
        try:
            job.run("gpu" if trial.gpus else "cpu", callbacks, stopping, until=until, track=trial.track)
        except Interrupted:
            if time.monotonic() < until and stopping():
                raise TrialStopped(f"{trial.name} was stopped") from None
            ended = "budget"
    return training_outcome(trial, place, ended, callbacks.warnings)


def training_outcome(trial: Trial, place: Place, ended: End, warnings: Sequence[str] = ()) -> Outcome:
    """What a run of training came to, from its folder, and what the run warned of."""
    path = place.run(trial.name)
    run = RunFolder(path, trust=True)
    ending, kept = run.ending, run.result or {}
    result = {name: kept[name] for name in KEPT if name in kept}
    result |= {"warnings": list(warnings)} if warnings else {}
    last = {}
    if run.exists:
        for row in run.read_progress():
            group = last.setdefault(str(row.group), {"best_hard": 0.0})
            group |= {"stage": row.stage, "step": row.step}
            group["best_hard"] = max(group["best_hard"], round(row.best_hard or 0.0, 3))
    seconds = ending.seconds if ending is not None else training_seconds(path)
    device = run.record.device if run.exists else "none"
    learned = ending is not None and ending.learned
    return outcome_of(trial, place, learned, ended, seconds, device, result | {"reached": last})


def training_seconds(path: Path) -> float:
    """The seconds that a run has trained for, by its checkpoint. What was lost since then is not charged twice."""
    checkpoint = path / "checkpoint.safetensors"
    if not checkpoint.is_file():
        return 0.0
    state = read_description(checkpoint).get("state")
    seconds = state.get("seconds") if isinstance(state, dict) else None
    return max(0.0, float(seconds)) if isinstance(seconds, int | float) else 0.0


class _Training(TrainingCallbacks):
    def __init__(self, told: Callable[[Progress], None]):
        self.told = told
        self.warnings: list[str] = []
        self.right = 0.0

    def started(self, config: TrainConfig, path: Path, device: str) -> None:
        """Go on from what was reached before a restart. Damaged metrics stop nothing: they only count less here."""
        with contextlib.suppress(NramError):
            for row in RunFolder(path).read_progress():
                self._reach(row.stage, row.best_hard)

    def activity(self, text: str) -> None:
        print(text, flush=True)

    def note(self, text: str) -> None:
        print(text, flush=True)

    def warning(self, text: str) -> None:
        print(text, flush=True)
        self.warnings.append(text)

    def report(self, report: Report) -> None:
        group = f"{report.group_name}: " if report.group_name else ""
        words = f"{group}stage {report.stage}, step {report.step}, {share_text(report.best_hard)} right"
        self._reach(report.stage, report.best_hard)
        self.told(Progress(words, report.seconds, self.right))

    def _reach(self, stage: int, share: float | None) -> None:
        """Count a report. Each stage has another validation set, and at its beginning no share is known."""
        self.right = max(self.right, stage + (share or 0.0))


# ---- search and learn


def _search(trial: Trial, place: Place, told: Callable[[Progress], None], stopping: Callable[[], bool]) -> Outcome:
    settings = settings_of(trial)
    assert isinstance(settings, SearchSettings) and trial.budget is not None
    path = place.run(trial.name)
    path.mkdir(parents=True, exist_ok=True)
    reading = reading_of(settings) if trial.is_examples else None
    words = [] if settings.candidates is None else ["--candidates", str(settings.candidates)]
    job = SearchJob.open(
        trial.subject, settings.space, seed=trial.seed, library=settings.library, words=words, reading=reading
    )
    require_same_files(trial)
    out, searching = path / PROGRAM, _Searching(told)
    with (
        Clock(place.time(trial.name), path, lambda: searching.seconds) as clock,
        job.saved_beside(out, resume=True) as saved,
    ):
        left = max(0.1, trial.budget - clock.before)
        outcome = saved.run(
            left, workers=cpu_cores(), candidates=settings.candidates, callbacks=searching, stopping=stopping
        )
        searching.seconds = outcome.seconds
        program = outcome.program or outcome.best
        if program is not None:
            save_found(program, saved.place_of(outcome, out))
        if outcome.program is None and stopping() and outcome.seconds < left:
            raise TrialStopped(f"{trial.name} was stopped")
        limited = settings.candidates is not None and outcome.state.candidates >= settings.candidates
        ended: End = "finished" if outcome.program is not None or limited else "budget"
        result = {"candidates": outcome.state.candidates, "structure": str(outcome.structure), "verified": False}
        came_to = outcome_of(trial, place, outcome.program is not None, ended, clock.now, _cpu(), result)
        if outcome.program is not None:
            place.write_outcome(came_to)  # before the state goes: a process that is killed in between loses nothing
            saved.remove_state(outcome, out)
    return came_to


def _learn(trial: Trial, place: Place, told: Callable[[Progress], None], stopping: Callable[[], bool]) -> Outcome:
    settings = settings_of(trial)
    assert not isinstance(settings, SearchSettings) and trial.budget is not None
    path = place.run(trial.name)
    file = read_examples(Path(trial.subject), reading_of(settings))
    require_same_files(trial)
    budget = trial.budget
    with Clock(place.time(trial.name), path) as clock:
        job = LearningJob(
            file,
            path,
            budget=budget,
            seed=trial.seed,
            method=settings.method,
            steps=settings.steps,
            workers=cpu_cores(),
            device="gpu" if trial.gpus else "cpu",
            resume=True,
            alternatives=settings.alternatives,
            spent=clock.before,
        )
        learned = job.run(_Learning(told), stopping)
        if not learned.found and stopping() and clock.now < budget:
            raise TrialStopped(f"{trial.name} was stopped")
    # Without a program the budget is over: a single search or training run does not end by itself before.
    ended: End = "finished" if learned.found else "budget"
    result = {
        "candidates": learned.search.candidates if learned.search else 0,
        "training_runs": learned.training.runs if learned.training else 0,
        "refused": learned.refused,
        "notes": list(learned.notes),
    }
    return outcome_of(trial, place, learned.found, ended, clock.now, _device_of(path), result)


def _device_of(path: Path) -> str:
    """Where a learn folder trained, if it did; searches run on cores."""
    runs = (RunFolder(run.parent) for run in sorted(path.glob("training/*/run.json")))
    return next((run.record.device for run in runs), _cpu())


def _cpu() -> str:
    cores = cpu_cores()
    return f"{cores} x {platform.machine()} CPU" if cores > 1 else f"{platform.machine()} CPU"


class _Searching(SearchCallbacks):
    def __init__(self, told: Callable[[Progress], None]):
        self.told = told
        self.seconds = 0.0
        """Of the search itself, in this process."""

    def note(self, text: str) -> None:
        print(text, flush=True)

    def report(self, report: SearchReport) -> None:
        self.seconds = report.seconds
        self.told(Progress(f"round {report.round}, {report.candidates / 1e6:.1f}M candidates", report.seconds))


class _Learning(_Searching, LearningCallbacks):
    def __init__(self, told: Callable[[Progress], None]):
        super().__init__(told)
        self.training = _Training(told)
