"""Runs, learn folders, searches and studies on disk: what each has reached, how to go on, and what can be removed."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from nram.cluster.study import Study
from nram.display import counted
from nram.errors import NramError
from nram.files import is_leftover, is_locked, locked, read_json
from nram.learning.summary import summary_of_learning
from nram.messages import pasted, shell_command
from nram.programs.files import read_program
from nram.training.run_folder import RunFolder
from nram.training.summary import Summary, shortened, summary_of_run

DEFAULT = ("runs", "learned", "studies")
MOST_NAMES = 10_000  # of a folder that are looked at
LOCK = ".lock"
CHECKPOINT = "checkpoint.safetensors"
MOST_SUMMARY = 1 << 26  # bytes of summary.json

Kind = Literal["train", "learn", "search", "study"]


@dataclass(frozen=True)
class Entry:
    """A run, a learn folder, a search in a folder of its own, or a study."""

    path: Path
    kind: Kind

    @property
    def running(self) -> bool:
        return is_locked(self.path / LOCK)

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
        if any((path / f"program.nram{end}").exists() for end in ("", ".search")):
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
    program = path / "program.nram"
    if not program.is_file():
        return Summary(None, "stopped", "Nothing was found yet.")
    found = read_program(program)
    name = found.task
    if (path / "program.nram.search").exists():
        again = None if running else _search_again(found.made, program)
        return Summary(name, "stopped", "The best program so far is wrong somewhere.", again)
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
    lock: Path
    """Held while it is removed."""


def removable(entry: Entry) -> Iterator[Removable]:
    """The checkpoints of finished runs, and temporary files that killed processes have left, below an entry.

    Nothing of a run that can still go on, but its temporary files. NramError: a process works there.
    """
    if entry.running:
        raise NramError(f"{entry.path} is in use: a process works there")
    runs = {"train": [entry.path], "search": [], "learn": [*_folders(entry.path / "training")]}
    if entry.kind == "study":
        inner = [*_folders(entry.path / "runs")]
        busy = [one for one in inner if is_locked(one / LOCK)]
        if busy:
            raise NramError(f"{entry.path} is in use: a process works in {busy[0]}")
        runs["study"] = [one for run in inner for one in (run, *_folders(run / "training"))]
    lock = entry.path / LOCK
    for run in runs[entry.kind]:
        if is_locked(run / LOCK):
            raise NramError(f"{entry.path} is in use: a process works in {run}")
        file = run / CHECKPOINT
        if _is_finished(run) and file.is_file() and not file.is_symlink():
            yield Removable(file, "the checkpoint of a finished run", file.stat().st_size, run / LOCK)
    for folder in dict.fromkeys([entry.path, entry.path / "trials", *runs[entry.kind]]):
        for file in sorted(folder.glob(".*.part")):
            if is_leftover(file) and file.is_file() and not file.is_symlink():
                where = folder / LOCK if folder in runs[entry.kind] else lock
                yield Removable(file, "left by a killed process", file.stat().st_size, where)


def _is_finished(run: Path) -> bool:
    """Whether a run has its result and its best members, so that nothing reads its checkpoint again."""
    try:
        folder = RunFolder.open(run)
        ending = folder.ending
        return ending is not None and bool(folder.members())
    except NramError:
        return False


def remove(found: Iterable[Removable]) -> int:
    """Remove files, each under the lock of its folder. Returns the bytes that this frees."""
    freed = 0
    for one in found:
        with locked(one.lock, f"{one.lock.parent} is in use: a process works there"):
            if one.path.name == CHECKPOINT and not _is_finished(one.path.parent):
                raise NramError(f"{one.path} stays: its run is not finished any more")
            try:
                one.path.unlink(missing_ok=True)
            except OSError as error:
                raise NramError(f"cannot remove {one.path}: {error.strerror}") from error
        freed += one.bytes
    return freed
