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

SAVED = ("program.nram.search", "search.json", "report.json")  # what a search or learning goes on from
LOOK = 0.2  # seconds between two looks at them


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
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.ending.set()
        self.thread.join()

    def _signature(self) -> list[tuple[int, int]]:
        found = []
        for name in SAVED:
            with contextlib.suppress(OSError):
                status = (self.folder / name).stat()
                found.append((status.st_ino, status.st_mtime_ns))
        return found

    def _watch(self) -> None:
        last = self._signature()
        while True:
            ended = self.ending.wait(LOOK)
            if (now := self._signature()) != last:
                last = now
                with contextlib.suppress(NramError):  # a full disk: the state could not be saved either
                    write_atomically(self.path, json.dumps(round(self.now, 2)).encode())
            if ended:
                return
