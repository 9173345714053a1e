"""Trials in a location that all machines of a cluster reach: a shared folder, s3://, gs://, or what fsspec knows.

A trial is kept there as snapshots: one file with its run folder and what it came to, named by its number and by the
digest of its content. An upload that was cut off has another digest, and the snapshot before it counts. So nothing
depends on whether the location can replace a file at once.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import platform
import re
import tarfile
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import fsspec
import pyarrow.fs as pafs

from nram.cluster.trial import Place
from nram.errors import NramError, shown
from nram.files import is_leftover, write_atomically

KEPT = 2  # whole snapshots of a trial
LOG = "log"
# What is read first follows from what is read later: a snapshot of a run that goes on is one that was there.
FIRST = ("report.json", "result.json", "program.nram.search", "search.json", "checkpoint.safetensors")
SNAPSHOT = re.compile(r"(?P<number>[0-9]{8})\.(?P<digest>[0-9a-f]{32})\.tar")


class Snapshot(NamedTuple):
    """A snapshot as the storage lists it. It may be cut off."""

    number: int
    digest: str
    trial: str
    size: int | None


class Storage:
    """The snapshots of the trials of a study in one location."""

    def __init__(self, location: str):
        self.location = location
        self.whole: set[Snapshot] = set()
        """Snapshots that were written or read to their end here."""
        try:
            self.files, self.root = _open(location)
            self.files.create_dir(self.root, recursive=True)
        except (OSError, ValueError, ImportError) as error:
            raise NramError(f"storage {location} cannot be used: {error}") from None

    def save(self, place: Place, trial: str) -> None:
        """Keep the present state of a trial."""
        content = _packed(place, trial)
        digest = hashlib.sha256(content).hexdigest()[:32]
        before = self._snapshots(trial)
        # A write that failed may have left a file with this name. It does not count as kept.
        if before and before[0].digest == digest and self._is_whole(before[0]):
            return
        one = Snapshot(before[0].number + 1 if before else 0, digest, trial, len(content))
        try:
            self.files.create_dir(self._folder(trial), recursive=True)
            with self.files.open_output_stream(self._path(one)) as stream:
                stream.write(content)
        except Exception as error:  # what the libraries of a cloud raise is not always an OSError
            self._delete(one)
            raise NramError(f"cannot write to the storage {self.location}: {error}") from None
        self.whole.add(one)
        self._prune(before)

    def restore(self, place: Place, trial: str) -> bool:
        """Put the last whole snapshot of a trial into a place. What it does not have is gone there too.

        Returns whether there is one. After an error or a kill the place has no outcome of the snapshot: the trial has
        not ended there, and can be restored again.
        """
        for one in self._snapshots(trial):
            if (content := self._read(one)) is not None:
                _unpack(_files_in(content, place, trial, self._path(one)), place, trial)
                return True
        return False

    def save_log(self, place: Place, trial: str) -> None:
        """Keep what the processes of a trial printed. No snapshot has it: nothing depends on it."""
        with contextlib.suppress(Exception):  # also what the libraries of a cloud raise
            content = place.log(trial).read_bytes()
            self.files.create_dir(self._folder(trial), recursive=True)
            with self.files.open_output_stream(f"{self._folder(trial)}/{LOG}") as stream:
                stream.write(content)

    def restore_log(self, place: Place, trial: str) -> None:
        """Put the log of a trial into a place, if it was kept."""
        with contextlib.suppress(Exception), self.files.open_input_stream(f"{self._folder(trial)}/{LOG}") as stream:
            place.log(trial).write_bytes(stream.read())

    def _folder(self, trial: str) -> str:
        return f"{self.root}/{trial}"

    def _path(self, one: Snapshot) -> str:
        return f"{self._folder(one.trial)}/{one.number:08d}.{one.digest}.tar"

    def _snapshots(self, trial: str) -> list[Snapshot]:
        """The snapshots of a trial, the newest first."""
        selector = pafs.FileSelector(self._folder(trial), allow_not_found=True)
        try:
            sizes = [(one.base_name, one.size) for one in self.files.get_file_info(selector)]
        except Exception as error:  # as above
            raise NramError(f"cannot read the storage {self.location}: {error}") from None
        matches = [(SNAPSHOT.fullmatch(name), size) for name, size in sizes]
        found = [Snapshot(int(one["number"]), one["digest"], trial, size) for one, size in matches if one]
        return sorted(found, key=lambda one: (one.number, one.digest), reverse=True)

    def _read(self, one: Snapshot) -> bytes | None:
        """The content of a snapshot; None if it is cut off, or was removed in this moment because there is a newer."""
        try:
            with self.files.open_input_stream(self._path(one)) as stream:
                content = stream.read()
        except FileNotFoundError:
            return None
        except Exception as error:  # an older one instead would lose work
            raise NramError(f"cannot read the storage {self.location}: {error}") from None
        if hashlib.sha256(content).hexdigest()[:32] != one.digest:
            return None
        self.whole.add(one)
        return content

    def _is_whole(self, one: Snapshot) -> bool:
        return one in self.whole or self._read(one) is not None

    def _prune(self, before: list[Snapshot]) -> None:
        """Delete what was there before a save, but for the last whole ones: those that are cut off help nobody."""
        with contextlib.suppress(NramError):  # it cannot be read now: the next save looks again
            kept = set(islice(filter(self._is_whole, before), KEPT - 1))
            for one in set(before) - kept:
                self._delete(one)

    def _delete(self, one: Snapshot) -> None:
        self.whole.discard(one)
        with contextlib.suppress(Exception):  # it may not be there, and what stays does no harm
            self.files.delete_file(self._path(one))


def _open(location: str) -> tuple[Any, str]:
    if "://" not in location:
        return pafs.LocalFileSystem(), location.rstrip("/")
    try:
        files, root = pafs.FileSystem.from_uri(location)
    except ValueError:  # PyArrow does not know it; fsspec may
        found, root = fsspec.core.url_to_fs(location)
        files = pafs.PyFileSystem(pafs.FSSpecHandler(found))
    return files, root.rstrip("/")


def _packed(place: Place, trial: str) -> bytes:
    """A tar file with the same bytes for the same content."""
    run, study = place.run(trial), place.study
    names = [place.paused(trial), place.outcome(trial), place.time(trial)]
    inside = [path for path in run.rglob("*") if path.is_file()]
    inside.sort(key=lambda path: (FIRST.index(path.name) if path.name in FIRST else len(FIRST), str(path)))
    kept: set[Path] = set()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path in [*names, *inside]:
            finished = path.name == FIRST[-1] and (path.parent / "result.json").is_file()
            if is_leftover(path) or path.name.endswith(".lock") or finished:
                continue
            try:
                content = path.read_bytes()
            except FileNotFoundError:
                continue
            entry = tarfile.TarInfo(str(path.relative_to(study)))
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
            kept.add(path)
    if place.outcome(trial).is_file() and place.outcome(trial) not in kept:  # the trial has ended meanwhile
        return _packed(place, trial)
    return buffer.getvalue()


def _files_in(content: bytes, place: Place, trial: str, where: str) -> dict[Path, bytes]:
    """The files of a snapshot and where they belong. Others may write to the storage: only files of this trial pass."""
    study = place.study
    single = [str(path.relative_to(study)) for path in (place.paused(trial), place.outcome(trial), place.time(trial))]
    run = PurePosixPath(place.run(trial).relative_to(study))
    found: dict[Path, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
            for entry in archive:
                path = PurePosixPath(entry.name)
                inside = run in path.parents and ".." not in path.parts and "\0" not in entry.name
                file = archive.extractfile(entry) if entry.isreg() and not entry.issparse() else None
                if file is None or not (inside or entry.name in single):
                    raise NramError(f"{where} has {shown(entry.name)}, which is no file of this trial: remove {where}")
                found[study / path] = file.read()
    except tarfile.TarError as error:
        raise NramError(f"{where} is not a snapshot of a trial: {error}; remove it") from None
    return found


def _unpack(files: dict[Path, bytes], place: Place, trial: str) -> None:
    """Put the files of a snapshot into a place, each at once. The outcome comes last: with it the trial counts."""
    try:
        inside = [path for path in place.run(trial).rglob("*") if path.is_file() and not path.name.endswith(".lock")]
        for path in {place.paused(trial), place.time(trial), *inside} - files.keys():
            path.unlink(missing_ok=True)
        for path in sorted(files, key=lambda path: path == place.outcome(trial)):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, files[path])
    except (OSError, NramError) as error:
        raise NramError(
            f"{error}: the trial is whole in its storage, and cannot be put on the disk of {platform.node()}; free "
            "space there if it is full, then go on with --resume"
        ) from None
