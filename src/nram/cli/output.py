"""What verbs print: JSON, tables, and what `nram.progress` shows."""

from __future__ import annotations

import json
import shutil
import sys
from typing import Any

from nram.display import text_table as table
from nram.progress import PLAIN_SECONDS, ProgressLine, note

__all__ = ["PLAIN_SECONDS", "ProgressLine", "note", "print_json", "table", "terminal_width"]


def print_json(value: Any) -> None:
    text = json.dumps(value) + "\n"
    # json.dump would write number by number; in one piece, a reader that goes away might not be noticed.
    for start in range(0, len(text), 1 << 16):
        sys.stdout.write(text[start : start + (1 << 16)])


def terminal_width() -> int:
    """The width of the terminal, at least 60; 120 without a terminal."""
    return max(60, shutil.get_terminal_size((120, 40)).columns)
