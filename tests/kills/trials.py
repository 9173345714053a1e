"""Trials: a job is started, killed, resumed and compared with its undisturbed ending."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from kills.jobs import Job, damaged_files, files_in, jobs_in
from kills.trouble import TROUBLES, Trouble, obey_permissions
from nram.process import SAME_SECONDS
from nram.programs.files import read_program

SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""SIGKILL twice: it is the hardest."""
LONGEST = 600.0  # seconds of one command
MOST_CHANGES = 12  # a kill may come right after so many changes of the folder


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    said: str
    """All that it said."""
    signals: tuple[str, ...] = ()
    """Sent while it ran."""
    after: float = 0.0
    """Seconds from its start to the first signal, or to its end."""
    pause: float = 0.0
    """Seconds between two signals."""


@dataclass
class Trial:
    """A job, the trouble it had, and what came of it."""

    number: int
    job: str
    trouble: str
    kills: list[dict[str, Any]] = field(default_factory=list)
    """Commands that got signals. One with status 0 had nothing left to do, and is not counted as killed."""
    failures: int = 0
    """Commands that failed because of the trouble, as they should."""
    rescued: int = 0
    """Programs that they had found and saved elsewhere."""
    stopped_at_end: bool = False
    """A search or training run was asked to stop when it had just found a program, and ended with it."""
    early: bool = False
    """This program is another one than the undisturbed one's, for example less simplified. It is right."""
    problems: list[str] = field(default_factory=list)


class Trials:
    """A series of trials in one folder, all from one seed."""

    def __init__(
        self,
        folder: Path,
        seed: int = 0,
        jobs: Sequence[str] | None = None,
        troubles: Sequence[str] = tuple(TROUBLES),
        log: Callable[[str], None] = print,
    ):
        self.folder, self.rng, self.log = folder, Random(seed), log
        known = jobs_in(folder)
        self.jobs = [known[name] for name in jobs or known]
        self.troubles = list(troubles)
        self.endings: dict[str, Any] = {}
        self.durations: dict[str, float] = {}

    def run(self, kills: int, raw: Callable[[dict[str, Any]], None] = lambda line: None) -> dict[str, Any]:
        """Trials until so many processes were killed. Returns the summary."""
        began = time.monotonic()
        for job in self.jobs:
            self._undisturbed(job)
        trials: list[Trial] = []
        while _count(trials) < kills:
            # Every job and every trouble has its turn; chance decides the rest.
            job = self.jobs[len(trials) % len(self.jobs)] if len(trials) < len(self.jobs) else self._chosen_job()
            trouble = self.troubles[len(trials) % len(self.troubles)]
            trial = Trial(len(trials), job.name, trouble)
            trials.append(trial)
            self._try(job, trial)
            raw(asdict(trial))
            verdict = "; ".join(trial.problems) or ("found early" if trial.early else "same bits")
            signals = " ".join("+".join(kill["signals"]) for kill in trial.kills)
            done = f"[{_count(trials)}/{kills}]"
            self.log(f"{done} {trial.job}, trouble: {trouble}; killed by {signals or 'nothing'}: {verdict}")
        return self._summary(trials, time.monotonic() - began)

    def _chosen_job(self) -> Job:
        return self.rng.choices(self.jobs, [job.share for job in self.jobs])[0]

    # ---- one trial

    def _undisturbed(self, job: Job) -> None:
        """Run the job twice: the first time it also compiles."""
        for _ in range(2):
            with Trouble(self._new(f"{job.name}, undisturbed") / "place") as trouble:
                ended = self._command(job, trouble.place)
                if ended.status != 0:
                    raise RuntimeError(f"{job.name} ended with {ended.status}: {ended.said}")
                self.endings[job.name], self.durations[job.name] = job.ending(trouble.place), ended.after
            shutil.rmtree(trouble.place.parent)
        self.log(f"{job.name}: {self.durations[job.name]:.1f} s undisturbed")

    def _try(self, job: Job, trial: Trial) -> None:
        folder = self._new(f"trial {trial.number}")
        with TROUBLES[trial.trouble](folder / "place") as trouble:
            for _ in range(self.rng.randint(2, 5)):
                self._kill(job, trouble.place, trial)
            if trouble.reason:
                self._fail(job, trouble, trial)
            self._check_end(job, trouble.place, trial, self._command(job, trouble.place))
            if trial.problems:
                shutil.copytree(trouble.place, folder / "kept")
        if not trial.problems:
            shutil.rmtree(folder)

    def _kill(self, job: Job, place: Path, trial: Trial) -> None:
        number = self.rng.choice(SIGNALS)
        # Often the second Ctrl-C of somebody who is impatient.
        numbers = [number] if number == signal.SIGKILL or self.rng.random() < 0.4 else [number, number]
        ended = self._command(job, place, self._moment(job, place), numbers)
        if not ended.signals:
            self._check_end(job, place, trial, ended)
            for path in place.iterdir():  # start again
                path.unlink() if path.is_file() else shutil.rmtree(path)
            trial.stopped_at_end = False
            return
        one = {"signals": ended.signals, "after": round(ended.after, 3), "status": ended.status}
        trial.kills.append({**one, "pause": round(ended.pause, 3)})
        self._check(trial, ended, f"killed by {'+'.join(ended.signals)}", (0, 1, -number, 128 + number))
        trial.stopped_at_end |= ended.status == 0 and job.name not in ("train", "study")

    def _fail(self, job: Job, trouble: Trouble, trial: Trial) -> None:
        """Let the trouble begin while the command runs. It must fail with a clear message, unless it is done before."""
        names = set(files_in(trouble.place))
        ended = self._command(job, trouble.place, self._moment(job, trouble.place), trouble=trouble)
        trouble.end()
        # 2: it was refused before the work.
        self._check(trial, ended, f"{trial.trouble}", (0, 1, 2))
        trial.problems += [f"{trial.trouble}: {file} is damaged" for file in damaged_files(trouble.place)]
        if ended.status != 0:
            trial.failures += 1
            if lost := names - set(files_in(trouble.place)):
                trial.problems.append(f"{trial.trouble}: lost {sorted(lost)}")
            if "cannot " not in ended.said or trouble.reason not in ended.said:
                trial.problems.append(f"{trial.trouble}: no clear message: {ended.said[-300:]}")
            if "it was saved as" in ended.said:
                trial.rescued += 1
                (elsewhere,) = (trouble.place.parent / "current").iterdir()
                read_program(elsewhere)

    def _check_end(self, job: Job, place: Path, trial: Trial, ended: Ended) -> None:
        self._check(trial, ended, "a command that was left alone", (0,))
        if ended.status == 0 and job.ending(place) != self.endings[job.name]:
            if trial.stopped_at_end:
                trial.early = True
            else:
                trial.problems.append("other bits")

    def _check(self, trial: Trial, ended: Ended, what: str, allowed: tuple[int, ...]) -> None:
        if ended.status not in allowed:
            trial.problems.append(f"{what}: status {ended.status}: {ended.said[-300:]}")
        if "Traceback" in ended.said:
            trial.problems.append(f"{what}: a traceback: {ended.said[-2000:]}")

    # ---- processes

    def _moment(self, job: Job, place: Path) -> Callable[[float], bool]:
        """A random moment: after some time, or, in half of the cases, right after some changes of the folder."""
        after = self.rng.uniform(0, self.durations[job.name])
        left = self.rng.choice([self.rng.randint(1, MOST_CHANGES), 1 << 30])
        seen = _look(place)

        def reached(seconds: float) -> bool:
            nonlocal left, seen
            now = _look(place)
            left -= now != seen
            seen = now
            return left <= 0 or seconds >= after

        return reached

    def _command(
        self,
        job: Job,
        place: Path,
        moment: Callable[[float], bool] = lambda seconds: False,
        numbers: Sequence[int] = (),
        trouble: Trouble | None = None,
    ) -> Ended:
        """Run the job's command; at the moment, send it the signals or make trouble."""
        current = place.parent / "current"
        current.mkdir(exist_ok=True)
        said = place.parent / "said"
        with open(said, "wb") as file, warnings.catch_warnings():
            # JAX, where other tests have started it, warns of forks. This one goes on to another program at once.
            warnings.simplefilter("ignore", RuntimeWarning)
            process = subprocess.Popen(
                [sys.executable, "-m", "nram", *job.words],
                cwd=current,
                env={**os.environ, "JAX_PLATFORMS": "cpu"},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
                preexec_fn=obey_permissions,
            )
        began, sent, reached, pause = time.monotonic(), list[str](), None, 0.0
        while process.poll() is None:
            seconds = time.monotonic() - began
            if seconds > LONGEST:
                process.kill()
            if reached is None and moment(seconds):
                reached = seconds
                for number in numbers:
                    if sent:
                        pause = self._pause()
                        time.sleep(pause)
                    if process.poll() is None:
                        process.send_signal(number)
                        sent.append(signal.Signals(number).name)
            if reached is not None and trouble is not None:
                trouble.begin()
            time.sleep(0.001)
        after = time.monotonic() - began if reached is None else reached
        return Ended(process.returncode, said.read_text(errors="replace"), tuple(sent), after, pause)

    def _pause(self) -> float:
        """Seconds between two signals: few, so that they are one request, or enough for a second request."""
        return self.rng.choice([self.rng.uniform(0, 0.05), SAME_SECONDS + self.rng.uniform(0.01, 0.1)])

    def _new(self, name: str) -> Path:
        path = self.folder / name
        path.mkdir()
        return path

    # ---- figures

    def _summary(self, trials: list[Trial], seconds: float) -> dict[str, Any]:
        signalled = [(trial, kill) for trial in trials for kill in trial.kills]
        kills = [(trial, kill) for trial, kill in signalled if kill["status"] != 0]
        twice = [kill for _, kill in kills if len(kill["signals"]) > 1]
        return {
            "trials": len(trials),
            "kills": len(kills),
            "kills_by_job": dict(Counter(trial.job for trial, _ in kills)),
            "kills_by_trouble": dict(Counter(trial.trouble for trial, _ in kills)),
            "kills_by_signal": dict(Counter(kill["signals"][0] for _, kill in kills)),
            "killed_twice": len(twice),
            "killed_by_second_request": sum(kill["pause"] > SAME_SECONDS for kill in twice),
            "done_all_the_same": len(signalled) - len(kills),
            "failures": dict(Counter(trial.trouble for trial in trials for _ in range(trial.failures))),
            "rescued": sum(trial.rescued for trial in trials),
            "same_bits": sum(not trial.problems and not trial.early for trial in trials),
            "found_early": sum(trial.early for trial in trials),
            "trials_with_problems": sum(bool(trial.problems) for trial in trials),
            "tracebacks": sum("a traceback" in problem for trial in trials for problem in trial.problems),
            "seconds": round(seconds),
        }


def _count(trials: Sequence[Trial]) -> int:
    """How many processes were killed."""
    return sum(kill["status"] != 0 for trial in trials for kill in trial.kills)


def _look(place: Path) -> frozenset[tuple[str, int]]:
    """The files in a folder, as far as a change of them can be seen."""
    found = set()
    for folder, _, names in os.walk(place):
        for name in names:
            try:
                found.add((f"{folder}/{name}", os.stat(f"{folder}/{name}").st_mtime_ns))
            except OSError:
                continue
    return frozenset(found)


def write_line(path: Path) -> Callable[[dict[str, Any]], None]:
    """A function that appends a value to a file, as one line of JSON."""

    def write(value: dict[str, Any]) -> None:
        with open(path, "a") as file:
            file.write(json.dumps(value) + "\n")

    return write
