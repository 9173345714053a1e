"""Programs as arguments of verbs, with the user-defined modules that they use."""

from __future__ import annotations

import argparse
import shlex

from nram.errors import UsageError
from nram.extensions.modules import files_of, get_module
from nram.messages import pasted
from nram.programs.ir import Program
from nram.programs.library import load_program


def add_program(parser: argparse.ArgumentParser, more: str = "") -> None:
    """The positional argument PROGRAM. `more` is added to its help."""
    parser.add_argument(
        "program",
        type=pasted,
        metavar="PROGRAM",
        help=f"a program of the zoo (NAME or NAME@ORIGIN), or a program file{more}",
    )


def add_modules(parser: argparse.ArgumentParser, user: str = "the program") -> None:
    """The option --module, for verbs that read programs or runs."""
    parser.add_argument(
        "--module",
        action="append",
        default=[],
        metavar="FILE",
        help=f"a file with a user-defined module that {user} uses; may be repeated",
    )


def load_modules(arguments: argparse.Namespace) -> None:
    """Load the files of --module. Programs that are read afterwards may use their modules."""
    for file in arguments.module:
        get_module(file)


def program_of(arguments: argparse.Namespace) -> Program:
    """The program that PROGRAM and --module name."""
    load_modules(arguments)
    return load_program(arguments.program)


def require_limit(program: Program, max_steps: int | None) -> None:
    """Refuse to run a program that needs its limit on a memory of unknown complexity without one."""
    if program.needs_limit and max_steps is None:
        raise UsageError(
            f"{program.name} is right only when it is stopped after {limit_in_words(program)} steps, where n is the "
            "complexity: give --max-steps"
        )


def limit_in_words(program: Program) -> str:
    """'T(n) = 2n+4', or nothing if the program has no limit."""
    return "" if program.limit is None else f"T(n) = {program.limit}"


def module_options(program: Program) -> str:
    """The --module options that a command needs to read this program; empty if it uses only built-in modules."""
    return "".join(f" --module {shlex.quote(pasted(path))}" for path in files_of(program.modules))
