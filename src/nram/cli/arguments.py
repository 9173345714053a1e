"""Arguments that several verbs share, and the types of arguments."""

import argparse

from nram.pictures.shapes import THEMES
from nram.runtime import DEVICES
from nram.tasks.example_files import Reading


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one JSON value on standard output; all else goes to standard error",
    )


def add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", choices=DEVICES, default="auto", help="where to compute (default: auto)")


def add_theme(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--theme",
        choices=THEMES,
        default="auto",
        help="colours for a light or a dark page; auto is for both in an SVG, which follows its reader, and light "
        "elsewhere (default: auto)",
    )


def add_reading(parser: argparse.ArgumentParser) -> None:
    """The options that say how a file of examples is read."""
    parser.add_argument(
        "--cells",
        metavar="CELLS",
        help="the cells that count: all, changed (in each example those that it changes), or addresses, as 0 or "
        "0,3..5 or 1..n (default: those that change in any example of the same memory size)",
    )
    parser.add_argument(
        "--result",
        metavar="NAMES",
        help="the columns with the results, as result or low,high (default: by their names, or the last one)",
    )
    parser.add_argument(
        "--layout",
        metavar="WORDS",
        help="where the columns lie in memory, as 'x ->result values[] 0' (default: nram chooses and shows it)",
    )


def reading_of(arguments: argparse.Namespace) -> Reading:
    """How a file of examples is to be read."""
    results = tuple(name.strip() for name in (arguments.result or "").split(",") if name.strip())
    return Reading(arguments.cells, results, arguments.layout)


def natural(text: str) -> int:
    """A whole number from 0 up."""
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number") from None
    if value < 0:
        raise argparse.ArgumentTypeError(f"{value} is negative: give a whole number from 0 up")
    return value


def positive(text: str) -> int:
    """A whole number from 1 up."""
    if natural(text) == 0:
        raise argparse.ArgumentTypeError("0 is too small: give a whole number from 1 up")
    return int(text)


def jax_seed(text: str) -> int:
    """A seed for JAX, which would silently take a larger one modulo 2**32."""
    if natural(text) >= 2**32:
        raise argparse.ArgumentTypeError(f"{text} is too large: give a whole number up to {2**32 - 1}")
    return int(text)


def seconds(text: str) -> float:
    """A time above 0."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds") from None
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} leaves no time: give a number of seconds above 0")
    return value
