"""The CPU cores of a trial: so many of this machine's, which no other trial of this user has meanwhile.

Trials of one study, of several, and those that Ray starts agree by locks. A process that is killed loses its locks.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
from collections.abc import Iterator
from pathlib import Path

from nram.cache import cache_folder
from nram.errors import NramError


@contextlib.contextmanager
def held_cores(count: int) -> Iterator[None]:
    """Let this process use exactly `count` cores: what a run computes may depend on their number.

    Where fewer are free than that, it shares some with other trials.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = sorted(os.sched_getaffinity(0))
    if len(before) < count:
        raise NramError(
            f"resources.cores is {count}, and {platform.node()} has only {len(before)}: use another machine"
        )
    folder = cache_folder(f"cores-{platform.node()}")
    with contextlib.ExitStack() as stack:
        free: list[int] = []
        for core in before if folder is not None else ():
            if len(free) < count and _locked(folder, core, stack):
                free.append(core)
        first = os.getpid() % len(before)  # trials that share cores do not all share the first
        shared = [core for core in (*before[first:], *before[:first]) if core not in free]
        os.sched_setaffinity(0, [*free, *shared][:count])
        try:
            yield
        finally:
            os.sched_setaffinity(0, before)


def _locked(folder: Path | None, core: int, stack: contextlib.ExitStack) -> bool:
    """Whether this process holds a core from now on, until `stack` is closed. The lock's file stays."""
    assert folder is not None
    try:
        file = open(folder / f"{core}.lock", "ab")  # noqa: SIM115 - the stack closes it
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return False
    stack.enter_context(file)
    return True
