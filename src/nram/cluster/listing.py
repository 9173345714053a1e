"""Runs, learn folders, searches and studies on disk: what each has reached, how to go on, and what can be removed."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Literal

from nram.cluster.study import Study
from nram.cluster.trial import PROGRAM, training_seconds
from nram.display import counted
from nram.errors import NramError
from nram.files import is_leftover, is_locked, locked, read_json
from nram.learning.summary import summary_of_learning
from nram.messages import pasted, shell_command
from nram.programs.files import read_program
from nram.search.job import lock_of
from nram.training.run_folder import RunFolder
from nram.training.summary import Summary, shortened, summary_of_run

DEFAULT = ("runs", "learned", "studies")
MOST_NAMES = 10_000  # of a folder that are looked at
LOCK = ".lock"
CHECKPOINT = "checkpoint.safetensors"
ROUNDING = 0.01  # of the seconds of a trial
MOST_SUMMARY = 1 << 26  # bytes of summary.json

Kind = Literal["train", "learn", "search", "study"]


@dataclass(frozen=True)
class Entry:
    """A run, a learn folder, a search in a folder of its own, or a study."""

    path: Path
    kind: Kind

    @property
    def running(self) -> bool:
        return any(map(is_locked, locks_of(self.path)))

    @property
    def modified(self) -> float:
        times = []
        for path in (self.path, *self.path.glob("*.json*")):
            with contextlib.suppress(OSError):
                times.append(path.lstat().st_mtime)
        return max(times, default=0.0)

    def summary(self) -> Summary:
        """What it has reached. A damaged folder is a line that says so."""
        work = {"train": summary_of_run, "learn": summary_of_learning, "search": _search, "study": _study}
        try:
            return work[self.kind](self.path, self.running)
        except (NramError, OSError, ValueError) as error:
            return Summary(None, "damaged", shortened(str(error)))


def locks_of(folder: Path) -> tuple[Path, ...]:
    """The locks of processes that work in a folder: its own, and that of a search for the program in it."""
    return folder / LOCK, lock_of(folder / PROGRAM)


def kind_of(path: Path) -> Kind | None:
    """What a folder holds; None if it is none of ours."""
    with contextlib.suppress(OSError):
        if not path.is_dir() or path.is_symlink():
            return None
        if (path / "study.json").exists():
            return "study"
        if (path / "run.json").exists():
            return "train"
        if any((path / name).exists() for name in ("report.json", "search.json", "program.json", "training")):
            return "learn"
        if any((path / f"{PROGRAM}{end}").exists() for end in ("", ".search")):
            return "search"
    return None


def entries(folders: Iterable[Path]) -> list[Entry]:
    """What these folders are or hold, the newest first. The trials of a study belong to its line."""
    found: dict[Path, Entry] = {}
    for folder in folders:
        kind = kind_of(folder)
        below = [folder] if kind is not None else sorted(_folders(folder))
        for path in below:
            if (kind := kind_of(path)) is not None:
                found.setdefault(path.resolve(), Entry(path, kind))
    return sorted(found.values(), key=lambda entry: -entry.modified)


def _folders(folder: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError), os.scandir(folder) as found:
        for one in islice(found, MOST_NAMES):
            if one.is_dir(follow_symlinks=False) and not one.name.startswith("."):
                yield folder / one.name


def _study(path: Path, running: bool) -> Summary:
    study = Study(path)
    trials = study.trials
    outcomes = study.outcomes(trials)
    learned = sum(one.learned for one in outcomes.values())
    words = f"{len(outcomes)} of {counted(len(trials), 'trial')} ended, {learned} learned."
    again = shell_command("sweep", pasted(path), resume=True)
    if running:
        return Summary(None, "running", words)
    if len(outcomes) == len(trials):
        return Summary(None, "finished", words, again)
    failed = {name: text for name, text in _failed(path).items() if name not in outcomes}
    if failed:
        name, text = next(iter(failed.items()))
        words = shortened(f"{words} {len(failed)} failed, such as {name}: {text}")
    begun = bool(outcomes or failed) or any(_folders(path / "runs"))
    return Summary(None, "stopped" if begun else "new", words, again)


def _failed(study: Path) -> dict[str, str]:
    """The trials that failed in the last command, and why."""
    with contextlib.suppress(NramError):
        value = read_json(study / "summary.json", MOST_SUMMARY)
        failed = value.get("failed") if isinstance(value, dict) else None
        return {str(name): str(text) for name, text in failed.items()} if isinstance(failed, dict) else {}
    return {}


def _search(path: Path, running: bool) -> Summary:
    program = path / PROGRAM
    if not program.is_file():
        return Summary(None, "running" if running else "stopped", "Nothing was found yet.")
    found = read_program(program)
    name = found.task
    if (path / f"{PROGRAM}.search").exists():
        status, again = ("running", None) if running else ("stopped", _search_again(found.made, program))
        return Summary(name, status, "The best program so far is wrong somewhere.", again)
    return Summary(name, "finished", "FOUND.", shell_command("verify", pasted(program)))


def _search_again(made: Iterable[tuple[str, str]], out: Path) -> str | None:
    """The command that goes on with a search, from the card of its best program. The card may come from anybody."""
    with contextlib.suppress(ValueError):  # a quote without its end
        words = shlex.split(dict(made).get("command", ""))
        if words[:2] == ["nram", "search"]:
            return f"{shlex.join([*words, '--out', pasted(out), '--resume'])} --budget SECONDS"
    return None


# ---- what can be removed


@dataclass(frozen=True)
class Removable:
    """A file that is needed no more."""

    path: Path
    why: str
    bytes: int
    locks: tuple[Path, ...]
    """Held while it is removed."""
    unneeded: Callable[[], bool] = lambda: True
    """Whether it is still so. Asked under the lock."""


def removable(entry: Entry, unlearned: bool = False) -> Iterator[Removable]:
    """The checkpoints of finished runs, and temporary files that killed processes have left, below an entry.

    Nothing of a run that can still go on, but its temporary files. `unlearned`: also the checkpoints of trials that
    ended without having learned, which hold their only weights. NramError: a process works there.
    """
    if entry.running:
        raise NramError(f"{entry.path} is in use: a process works there")
    runs = {"train": [entry.path], "search": [], "learn": [*_folders(entry.path / "training")]}
    trials = [*_folders(entry.path / "runs")] if entry.kind == "study" else []
    runs["study"] = [one for trial in trials for one in (trial, *_folders(trial / "training"))]
    locks = {run: (*locks_of(run), *_locks_of_trial(entry, run)) for run in runs[entry.kind]}
    for run, own in locks.items():
        if any(map(is_locked, own)):
            raise NramError(f"{entry.path} is in use: a process works in {run}")
        yield from _checkpoints(entry, run, own, unlearned)
    for folder in dict.fromkeys([entry.path, entry.path / "trials", *locks]):
        for file in sorted(folder.glob(".*.part")):
            if is_leftover(file) and file.is_file() and not file.is_symlink():
                where = locks.get(folder, locks_of(entry.path))
                yield Removable(file, "left by a killed process", file.stat().st_size, where)


def _locks_of_trial(entry: Entry, run: Path) -> tuple[Path, ...]:
    """The lock that a process of a trial holds while it works in its run, or in one below it."""
    if entry.kind != "study":
        return ()
    return (Study(entry.path).place.lock(_trial_of(entry.path, run)),)


def _trial_of(study: Path, run: Path) -> str:
    return run.relative_to(study / "runs").parts[0]


def _checkpoints(entry: Entry, run: Path, locks: tuple[Path, ...], unlearned: bool) -> Iterator[Removable]:
    """The checkpoint of a run, if it is needed no more."""
    file = run / CHECKPOINT
    if not file.is_file() or file.is_symlink():
        return
    size = file.stat().st_size
    if _is_finished(run):
        yield Removable(file, "the checkpoint of a finished run", size, locks, partial(_is_finished, run))
    elif unlearned and entry.kind == "study" and _is_ended_trial(entry.path, run):
        why = "of a trial that ended unlearned: its only weights"
        yield Removable(file, why, size, locks, partial(_is_ended_trial, entry.path, run))


def _is_finished(run: Path) -> bool:
    """Whether a run has its result and its best members, so that nothing reads its checkpoint again."""
    try:
        folder = RunFolder.open(run)
        ending = folder.ending
        return ending is not None and bool(folder.members())
    except NramError:
        return False


def _is_ended_trial(study: Path, run: Path) -> bool:
    """Whether a run belongs to a trial that has ended, so that its study does not read its checkpoint again.

    Without its outcome, a trial goes on from there. And somebody may have gone on with the run by hand, for longer.
    """
    place = Study(study).place
    name = _trial_of(study, run)
    try:
        outcome = place.read_outcome(name)
        if outcome is not None and outcome.verb == "train":
            return training_seconds(run) <= outcome.seconds + ROUNDING
        return outcome is not None and _changed(run / CHECKPOINT) <= _changed(place.outcome(name))
    except (NramError, OSError):
        return False


def _changed(path: Path) -> int:
    return path.stat().st_mtime_ns


def remove(found: Iterable[Removable]) -> int:
    """Remove files, each under the locks of its folder. Returns the bytes that this frees."""
    freed = 0
    for one in found:
        with contextlib.ExitStack() as held:
            for lock in one.locks:
                held.enter_context(locked(lock, f"{one.path.parent} is in use: a process works there"))
            if not one.unneeded():
                raise NramError(f"{one.path} stays: its run is not finished any more")
            try:
                one.path.unlink(missing_ok=True)
            except OSError as error:
                raise NramError(f"cannot remove {one.path}: {error.strerror}") from error
        freed += one.bytes
    return freed
