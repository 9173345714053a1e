"""What every verb shares: the --json switch and the arguments of verbs that use JAX."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from typing import TYPE_CHECKING, Any

from nram.runtime import DEVICES

if TYPE_CHECKING:
    from nram.programs import Program


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one JSON value on standard output; all else goes to standard error",
    )


def add_modules(parser: argparse.ArgumentParser) -> None:
    """For verbs that read a program: its own modules are made known before it is read."""
    parser.add_argument(
        "--module",
        action="append",
        default=[],
        metavar="FILE",
        help="a module of one's own that the program uses; may be repeated",
    )


def module_options(program: Program) -> str:
    """What must be added to a command that reads the program, if it uses modules of one's own."""
    from nram.extensions.modules import files_of

    return "".join(f" --module {shlex.quote(str(path))}" for path in files_of(program.modules))


def add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", choices=DEVICES, default="auto", help="where to compute (default: auto)")


def natural(text: str) -> int:
    """An argument that must be a whole number from 0 up."""
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number") from None
    if value < 0:
        raise argparse.ArgumentTypeError(f"{value} is negative: give a whole number from 0 up")
    return value


def positive(text: str) -> int:
    if natural(text) == 0:
        raise argparse.ArgumentTypeError("0 is too small: give a whole number from 1 up")
    return int(text)


def jax_seed(text: str) -> int:
    """A seed of JAX's random numbers, which would silently take a larger one modulo 2**32."""
    if natural(text) >= 2**32:
        raise argparse.ArgumentTypeError(f"{text} is too large: give a whole number up to {2**32 - 1}")
    return int(text)


def print_json(value: Any) -> None:
    text = json.dumps(value) + "\n"
    # json.dump would write number by number; in one piece, a reader that goes away might not be noticed.
    for start in range(0, len(text), 1 << 16):
        sys.stdout.write(text[start : start + (1 << 16)])


def table(rows: list[list[str]]) -> str:
    """Rows of words in columns; the first row is the heading. Numbers stand to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    numeric = [all(_is_number(row[column]) for row in rows[1:]) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _is_number(text: str) -> bool:
    return text.replace(".", "").replace("%", "").replace("-", "").strip().isdigit()
