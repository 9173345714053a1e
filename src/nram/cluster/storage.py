"""Trials in a location that all machines of a cluster reach: a shared folder, s3://, gs://, or what fsspec knows.

A trial is kept there as snapshots: one file with its run folder and what it came to, named by its number and by the
digest of its content. An upload that was cut off has another digest, and the snapshot before it counts. So nothing
depends on whether the location can replace a file at once.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import re
import tarfile
from typing import Any

import fsspec
import pyarrow.fs as pafs

from nram.cluster.trial import Place
from nram.errors import NramError
from nram.files import is_leftover

KEPT = 2  # snapshots of a trial
LOG = "log"
# What is read first follows from what is read later: a snapshot of a run that goes on is one that was there.
FIRST = ("report.json", "result.json", "program.nram.search", "search.json", "checkpoint.safetensors")
SNAPSHOT = re.compile(r"(?P<number>[0-9]{8})\.(?P<digest>[0-9a-f]{32})\.tar")


class Storage:
    """The snapshots of the trials of a study in one location."""

    def __init__(self, location: str):
        self.location = location
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
        if before and before[0][1] == digest:
            return
        number = before[0][0] + 1 if before else 0
        try:
            self.files.create_dir(self._folder(trial), recursive=True)
            with self.files.open_output_stream(f"{self._folder(trial)}/{number:08d}.{digest}.tar") as stream:
                stream.write(content)
        except Exception as error:  # what the libraries of a cloud raise is not always an OSError
            raise NramError(f"cannot write to the storage {self.location}: {error}") from None
        for _, _, path in before[KEPT - 1 :]:
            with contextlib.suppress(OSError):
                self.files.delete_file(path)

    def restore(self, place: Place, trial: str) -> bool:
        """Put the last whole snapshot of a trial into a place. What it does not have is gone there too.

        Returns whether there is one.
        """
        for _, digest, path in self._snapshots(trial):
            try:
                with self.files.open_input_stream(path) as stream:
                    content = stream.read()
            except OSError:  # removed in this moment, because there is a newer one
                continue
            if hashlib.sha256(content).hexdigest()[:32] == digest:
                _unpack(content, place, trial)
                return True
        return False

    def save_log(self, place: Place, trial: str) -> None:
        """Keep what the processes of a trial printed. No snapshot has it: nothing depends on it."""
        with contextlib.suppress(OSError):
            content = place.log(trial).read_bytes()
            self.files.create_dir(self._folder(trial), recursive=True)
            with self.files.open_output_stream(f"{self._folder(trial)}/{LOG}") as stream:
                stream.write(content)

    def restore_log(self, place: Place, trial: str) -> None:
        """Put the log of a trial into a place, if it was kept."""
        with contextlib.suppress(OSError), self.files.open_input_stream(f"{self._folder(trial)}/{LOG}") as stream:
            place.log(trial).write_bytes(stream.read())

    def _folder(self, trial: str) -> str:
        return f"{self.root}/{trial}"

    def _snapshots(self, trial: str) -> list[tuple[int, str, str]]:
        """Number, digest and path of the snapshots of a trial, the newest first."""
        selector = pafs.FileSelector(self._folder(trial), allow_not_found=True)
        try:
            names = [(one.base_name, one.path) for one in self.files.get_file_info(selector)]
        except Exception as error:  # as above
            raise NramError(f"cannot read the storage {self.location}: {error}") from None
        matches = [(SNAPSHOT.fullmatch(name), path) for name, path in names]
        return sorted(((int(one["number"]), one["digest"], path) for one, path in matches if one), reverse=True)


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
    finished = (run / "result.json").is_file()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path in [*names, *inside]:
            if is_leftover(path) or path.name.endswith(".lock") or (finished and path.name == FIRST[-1]):
                continue
            try:
                content = path.read_bytes()
            except FileNotFoundError:
                continue
            entry = tarfile.TarInfo(str(path.relative_to(study)))
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def _unpack(content: bytes, place: Place, trial: str) -> None:
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        kept = {place.study / name for name in archive.getnames()}
        archive.extractall(place.study, filter="data")
    inside = [path for path in place.run(trial).rglob("*") if path.is_file() and not path.name.endswith(".lock")]
    for path in {place.paused(trial), place.time(trial), *inside} - kept:
        path.unlink(missing_ok=True)
