"""Progress of long work on standard error: notes, and a line that is overwritten on a terminal."""

from __future__ import annotations

import shutil
import sys
import time
from typing import Literal, Self

from nram.messages import visible

PLAIN_SECONDS = 5  # between two lines of progress in a pipe

Progress = bool | Literal["auto"]
"""Whether a function of the Python interface shows progress; 'auto': on a terminal and in a notebook."""


def is_shown(progress: Progress) -> bool:
    return bool(sys.stderr.isatty() or _in_notebook()) if progress == "auto" else progress


def _in_notebook() -> bool:
    """Whether IPython runs this process for a notebook. Nothing is imported for it."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and getattr(ipython.get_ipython(), "kernel", None) is not None


def note(text: str) -> None:
    """A line on standard error. It may quote names from files."""
    print(visible(text), file=sys.stderr, flush=True)


class ProgressLine:
    """Progress on standard error: one line that is overwritten on a terminal, separate lines in a pipe.

    `pause` is the least number of seconds between two lines in a pipe.
    """

    def __init__(self, pause: float = 0.0):
        self.live = sys.stderr.isatty()
        self.pause = pause
        self.last = float("-inf")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception) -> None:
        self.clear()

    def show(self, text: str, always: bool = False) -> None:
        """Show the text. In a pipe it is dropped if the last line is recent, unless `always`."""
        if self.live:
            width = shutil.get_terminal_size().columns - 1  # a longer line would not be overwritten
            print(f"\r\033[K{text[:width]}", end="", file=sys.stderr, flush=True)
        elif always or time.monotonic() - self.last >= self.pause:
            self.last = time.monotonic()
            note(text)

    def show_count(self, done: int, total: int, what: str) -> None:
        """Show how many parts of the work are done, and what comes next."""
        self.show(f"[{done}/{total}] {what}", always=done == total)

    def clear(self) -> None:
        """Remove the line from the terminal."""
        if self.live:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
