"""The kinds of errors. The exit status of the command line tells them apart. How messages show values."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import Any

from nram.messages import addressed, visible

MOST_CHARACTERS = 8_000  # of a message


class NramError(Exception):
    """The work failed: exit status 1. The message says what happened and what to do next."""

    exit_status = 1

    def __str__(self) -> str:
        """The message as a terminal may show it: parts of a hostile file in it cannot control or flood the terminal."""
        text = addressed(super().__str__())
        if len(text) > MOST_CHARACTERS:
            text = f"{text[: MOST_CHARACTERS // 2]} ... {text[-MOST_CHARACTERS // 4 :]}"
        return visible(text)

    def __reduce__(self) -> tuple[Any, ...]:
        """Errors cross processes whole, whatever their constructors take."""
        return _restored, (type(self), self.args, self.__dict__)


class NotSaved(NramError):
    """A result could not be written where it should be. The message ends with the whole result, if it is a text."""

    def __init__(self, message: str, result: str):
        super().__init__(message)
        self.result = result

    def __str__(self) -> str:
        return f"{super().__str__()}:\n\n{visible(self.result)}" if self.result else super().__str__()


class UsageError(NramError):
    """The request is wrong: exit status 2. The message says what to change."""

    exit_status = 2


def check_whole(least: int, **given: Any) -> None:
    """Refuse arguments that are no whole numbers from `least` up. None means that one is not given."""
    for name, number in given.items():
        if number is None:
            continue
        if isinstance(number, bool) or not hasattr(number, "__index__") or number < least:
            raise UsageError(f"{name} is {shown(number)}: give a whole number, {least} or more")


def check_budget(budget: float) -> None:
    """Refuse a budget that is no time."""
    try:
        enough = budget > 0
    except TypeError:
        enough = False
    if not enough:
        raise UsageError(f"budget is {shown(budget)}, which leaves no time: give seconds above 0")


class MissingName(NramError, AttributeError):
    """A public name needs a library that is not installed. `hasattr`, `help` and `inspect` then pass over the name."""


class UntrustedFile(UsageError):
    """Stored data names Python files that the user has not named. They were not executed."""

    def __init__(self, files: Sequence[tuple[str, str]], where: str = "a configuration"):
        self.files = tuple(dict.fromkeys(files))
        """What each defines ("task" or "module"), and its whole path."""
        paths = ", ".join(repr(path) for _, path in self.files)
        which, were = ("files", "they were") if len(self.files) > 1 else ("file", "it was")
        self.reason = f"{where} names the Python {which} {paths}, and you have not: {were} not executed"
        loads = " and ".join(f"nram.get_{what}({path!r})" for what, path in self.files)
        super().__init__(f"{self.reason}. If you trust this code, call {loads} first, or pass trust=True")


def _restored(kind: type[NramError], arguments: tuple[Any, ...], attributes: dict[str, Any]) -> NramError:
    error = kind.__new__(kind, *arguments)
    error.args = arguments
    error.__dict__.update(attributes)
    return error


def shown(value: Any) -> str:
    """Any value as text that is short enough for a message."""
    try:
        return _SHORT.repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits: Python refuses to print it
        return f"a huge {type(value).__name__}"


_SHORT = reprlib.Repr()
_SHORT.maxlevel, _SHORT.maxstring, _SHORT.maxother, _SHORT.maxlong = 2, 40, 60, 40
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = 4
