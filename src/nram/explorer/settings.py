"""What `nram serve` is told, and the limits within which it answers."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nram.programs.ir import Program

MOST_CELLS = 4096  # of a memory
MOST_STEPS = 10_000_000  # of a run
MOST_PIECE = 2000  # steps in one answer
MOST_TEXT = 1 << 18  # characters of a program
MOST_EXAMPLES = 1 << 22  # characters of a file of examples
MOST_BODY = 1 << 23  # bytes of a request
MOST_JOBS = 2  # at the same time
MOST_KEPT_JOBS = 20  # with those that have ended
MOST_STREAMS = 40  # open at the same time
MOST_WAITING = 200  # requests at the same time
PORT = 8642


@dataclass(frozen=True)
class Settings:
    """Where the explorer listens, and what it may show."""

    host: str = "127.0.0.1"
    port: int = PORT
    token: str | None = None
    """What a request must carry; None on a loopback address."""
    folders: tuple[Path, ...] = (Path("runs"), Path("learned"))
    """The folders whose runs are shown. Nothing outside of them is read."""
    kept: Path = Path("learned")
    """Where the results of learning go."""
    programs: Mapping[str, Program] = field(default_factory=dict)
    """Programs named on the command line."""


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
