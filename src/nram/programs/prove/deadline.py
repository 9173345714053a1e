"""The time for the search of an invariant. Long parts of it look at it again and again."""

from __future__ import annotations

import time


class OutOfTime(Exception):
    """The time is over."""


def check_time(deadline: float) -> None:
    """Raise OutOfTime if the deadline, a value of time.monotonic(), is over."""
    if time.monotonic() > deadline:
        raise OutOfTime
