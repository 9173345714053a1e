"""The training runs and learn folders that the page may see.

A request names a run by the id that the list gives it. The id is looked up among what a listing finds: no path is made
from it. A link that leads out of its folder is not followed, and pipes and devices are not opened.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from nram.errors import NramError, shown
from nram.explorer.answering import Refused
from nram.explorer.settings import Settings
from nram.messages import visible

Kind = Literal["train", "learn"]

MOST_ENTRIES = 500  # of the list, the newest
MOST_NAMES = 10_000  # of a folder that are looked at
MOST_MEMBERS = 1000  # files in a folder of members
FILES: dict[Kind, tuple[str, ...]] = {
    "train": ("run.json", "result.json", "metrics.jsonl", "checkpoint.safetensors", "eval.json", ".lock", "best"),
    "learn": ("report.json", "search.json", "program.json", "program.nram", ".lock", "programs", "training"),
}
"""What is read of an entry. The first file makes a folder a run."""
LEARNED = ("report.json", "search.json", "program.json", "training")
"""Each of these makes a folder one of `nram learn`."""


@dataclass(frozen=True)
class Entry:
    """A run or a learn folder."""

    id: str
    path: Path
    kind: Kind
    modified: float
    """Seconds since 1970."""

    def require_safe(self) -> None:
        """Refuse an entry in which a file to be read is a link that leads out, a pipe or a device."""
        for name in FILES[self.kind]:
            path = self.path / name
            _require_safe(path, self.path)
            if name in ("best", "programs") and path.is_dir():
                for one in _names(path, MOST_MEMBERS):
                    _require_safe(path / one, self.path)

    def signature(self) -> tuple[tuple[str, int, int], ...]:
        """What changes whenever one of its files does."""
        found = []
        for name in FILES[self.kind]:
            try:
                status = (self.path / name).stat()
            except OSError:
                continue
            found.append((name, status.st_mtime_ns, status.st_size))
        return tuple(found)


def entries(settings: Settings) -> list[Entry]:
    """The runs and learn folders, the newest first. Training runs of a learn folder are listed too."""
    found: dict[str, Entry] = {}
    for folder in dict.fromkeys((*settings.folders, settings.kept)):
        for name in _names(folder, MOST_NAMES):
            for inner, path in _runs_in(folder, name):
                if (kind := _kind(path)) is not None:
                    called = inner if inner not in found else f"{_readable(str(folder))}/{inner}"
                    found.setdefault(called, Entry(called, path, kind, _modified(path, kind)))
    return sorted(found.values(), key=lambda entry: -entry.modified)[:MOST_ENTRIES]


def find_entry(settings: Settings, id: str) -> Entry:
    """The entry with this id, whose files are safe to read."""
    entry = next((entry for entry in entries(settings) if entry.id == id), None)
    if entry is None:
        raise Refused(f"there is no run {shown(id)}: choose one of the list", 404)
    entry.require_safe()
    return entry


def _runs_in(folder: Path, name: str) -> Iterator[tuple[str, Path]]:
    """The entry of this name, and the training runs below it."""
    path = folder / name
    yield _readable(name), path
    training = path / "training"
    if not (path.is_symlink() or training.is_symlink()):
        for one in _names(training, MOST_MEMBERS):
            if not (training / one).is_symlink():
                yield f"{_readable(name)}/training/{_readable(one)}", training / one


def _names(folder: Path, most: int) -> list[str]:
    """The names in a folder, without hidden ones; none if there is no such folder."""
    try:
        with os.scandir(folder) as found:
            return sorted(one.name for one in islice(found, most) if not one.name.startswith("."))
    except OSError:
        return []


def _readable(name: str) -> str:
    """A name that can be part of a JSON text and of an address."""
    return visible(os.fsencode(name).decode(errors="replace")).replace("\n", "\\n")


def _kind(path: Path) -> Kind | None:
    try:
        if not path.is_dir():
            return None
        if os.path.lexists(path / "run.json"):
            return "train"
        return "learn" if any(os.path.lexists(path / name) for name in LEARNED) else None
    except OSError:
        return None


def _modified(path: Path, kind: Kind) -> float:
    """When something was last written. A link is not asked about what it leads to."""
    times = []
    for one in (path, *(path / name for name in FILES[kind])):
        try:
            times.append(one.lstat().st_mtime)
        except OSError:
            continue
    return max(times, default=0.0)


def _require_safe(path: Path, entry: Path) -> None:
    root = entry.parent.resolve()
    try:
        whole = entry.resolve()
        inside = whole.is_relative_to(root) and path.resolve().is_relative_to(whole)
    except (OSError, RuntimeError):  # a link that leads to itself
        inside = False
    if not inside:
        raise NramError(f"{path} leads out of {entry.parent}: the page does not follow it")
    try:
        mode = path.stat().st_mode
    except OSError:
        return  # there is no such file
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise NramError(f"{path} is not a regular file: remove it")
