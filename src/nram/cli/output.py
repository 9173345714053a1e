"""What verbs print: JSON, tables, notes and progress."""

from __future__ import annotations

import json
import shutil
import sys
import time
from typing import Any, Self

from nram.display import text_table as table
from nram.messages import visible

__all__ = ["PLAIN_SECONDS", "ProgressLine", "note", "print_json", "table", "terminal_width"]

PLAIN_SECONDS = 5  # between two lines of progress in a pipe


def print_json(value: Any) -> None:
    text = json.dumps(value) + "\n"
    # json.dump would write number by number; in one piece, a reader that goes away might not be noticed.
    for start in range(0, len(text), 1 << 16):
        sys.stdout.write(text[start : start + (1 << 16)])


def terminal_width() -> int:
    """The width of the terminal, at least 60; 120 without a terminal."""
    return max(60, shutil.get_terminal_size((120, 40)).columns)


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
