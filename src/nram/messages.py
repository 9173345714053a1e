"""Texts for the terminal: commands that can be pasted into a shell, and names without control characters."""

from __future__ import annotations

import shlex
from typing import Any


def command(verb: str, *values: Any, **options: Any) -> str:
    """The command `nram VERB VALUES --OPTION VALUE ...`, quoted for a shell.

    An option with True has no value, one with a list is repeated, and one with None is left out.
    """
    words = ["nram", verb, *map(pasted, values)]
    for name, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            if one is not None:
                words.append(f"--{name.replace('_', '-')}")
                words += [] if one is True else [pasted(one)]
    return " ".join(map(_quoted, words))


def pasted(value: Any) -> str:
    """A value as a word of a command. One that begins with a dash is a file, and would be read as an option."""
    return f"./{value}" if str(value).startswith("-") else str(value)


def _quoted(word: str) -> str:
    """A word for a shell: numbers and words in double quotes, as docs write them, anything else as Python quotes it."""
    return f'"{word}"' if " " in word and word.replace(" ", "").isalnum() else shlex.quote(word)


def visible(text: str) -> str:
    """The text with control and unprintable characters escaped; line breaks stay.

    A name from a file cannot move the cursor, change colours or hide what a line says.
    """
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)
