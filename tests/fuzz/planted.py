"""A kind of file with planted bugs, one per valid input: the fuzzing must find each of them."""

import os
import time
import warnings
from pathlib import Path
from random import Random

from fuzz.kinds import Files, Kind
from nram.errors import NramError

WORDS = ["fine", "bug", "abort", "hang", "warning", "escape", "exit", "memory", "refused", "fine"]


class Loud(NramError):
    """An error whose message is not made safe."""

    def __str__(self) -> str:
        return "\x1b[31mplanted"


def valid() -> list[Files]:
    return [{"word": word.encode()} for word in WORDS]


def mutate(rng: Random, valid: list[Files]) -> Files:
    return {"word": b"mutated"}


def use(folder: Path, rng: Random) -> None:
    match (folder / "word").read_text():
        case "bug":
            raise ValueError("planted")
        case "abort":
            os.abort()
        case "hang":
            time.sleep(1000)
        case "warning":
            warnings.warn("planted", RuntimeWarning, stacklevel=1)
        case "escape":
            raise Loud
        case "exit":
            raise SystemExit(3)
        case "memory":
            bytearray(1100 << 20)
        case "refused" | "mutated":
            raise NramError("planted")


def use_what_is_missing(folder: Path, rng: Random) -> None:
    raise ModuleNotFoundError("planted", name="no_such_package")


PLANTED = Kind("planted", valid, mutate, use, len(WORDS))
MISSING = Kind("missing", valid, mutate, use_what_is_missing, len(WORDS))
