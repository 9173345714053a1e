"""The seconds of a trial of `search` or `learn`, which no file of its run folder holds."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

from nram.errors import NramError
from nram.files import read_json, write_atomically

SAVED = ("checkpoint.safetensors", "result.json", "program.nram.search", "search.json", "report.json")
RUNS = ("training/*/checkpoint.safetensors", "training/*/result.json")  # of learning, a folder for each
LOOK = 0.2  # seconds between two looks at them


def saved_in(folder: Path) -> list[Path]:
    """The files from which the work of a trial goes on, those that are there."""
    found = [folder / name for name in SAVED if (folder / name).is_file()]
    return found + sorted(path for pattern in RUNS for path in folder.glob(pattern))


class Clock:
    """The seconds of a trial. They are written to `path` when its state in `folder` is saved.

    So what was lost since then is not charged twice. Where no state is left to go on from, the work begins anew, and so
    does its time. Only the monotonic clock is read: nobody can set it.
    """

    def __init__(self, path: Path, folder: Path, work: Callable[[], float] | None = None):
        """`work` gives the seconds that count in this process. By default all do since the clock was made."""
        self.path, self.folder = path, folder
        self.before = 0.0
        if self._signature():
            with contextlib.suppress(NramError, ValueError, TypeError):
                self.before = max(0.0, float(read_json(path, 1 << 10))) if path.is_file() else 0.0
        began = time.monotonic()
        self.work = work or (lambda: time.monotonic() - began)

    @property
    def now(self) -> float:
        return self.before + self.work()

    def __enter__(self) -> Clock:
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self._watch, args=(self._signature(),), daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.ending.set()
        self.thread.join()

    def _signature(self) -> list[tuple[int, int]]:
        found = []
        for path in saved_in(self.folder):
            with contextlib.suppress(OSError):
                status = path.stat()
                found.append((status.st_ino, status.st_mtime_ns))
        return found

    def _watch(self, last: list[tuple[int, int]]) -> None:
        while True:
            ended = self.ending.wait(LOOK)
            if (now := self._signature()) != last:
                last = now
                with contextlib.suppress(NramError):  # a full disk: the state could not be saved either
                    write_atomically(self.path, json.dumps(round(self.now, 2)).encode())
            if ended:
                return
