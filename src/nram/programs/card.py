"""The card of a program: the `made` entries that say how it came to be."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from nram.runtime import versions as versions_here

Entry: TypeAlias = tuple[str, str]

LONGEST_VALUE = 1000  # characters; a program refuses longer ones


def card(
    words: Sequence[str],
    seed: int,
    details: Sequence[Entry],
    *,
    device: str | None = None,
    versions: Mapping[str, str] | None = None,
    date: str | None = None,
) -> tuple[Entry, ...]:
    """The `made` entries of a program: command, seed, the given details, device, versions and date.

    `words` are those of the command after `nram`. Versions and date are today's unless others are given. A run that
    did its work without a device of JAX has no `device`.
    """
    entries = [("command", shlex.join(["nram", *relevant_words(words)])), ("seed", str(seed)), *details]
    if device is not None:
        entries.append(("device", device))
    versions = versions_here() if versions is None else versions
    entries.append(("versions", ", ".join(f"{name} {version}" for name, version in versions.items()) or "unknown"))
    entries.append(("date", date or timestamp()))
    return tuple((key, _one_line(value)) for key, value in entries)


def timestamp() -> str:
    """The time now, as files and cards say it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def relevant_words(words: Sequence[str]) -> list[str]:
    """The words of a command without those that do not affect its result."""
    kept, skip_next = [], False
    for word in words:
        if skip_next or word in ("--resume", "--json"):
            skip_next = False
        elif word in ("--out", "--device"):
            skip_next = True
        elif not word.startswith(("--out=", "--device=")):
            kept.append(word)
    return kept


def _one_line(text: str) -> str:
    """The text as a program accepts it: visible characters, not too many."""
    if not text.isprintable():
        text = text.encode("unicode_escape").decode()
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 3] + "..."
