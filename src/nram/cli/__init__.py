"""The command line: `nram VERB`. One file per verb, each a stop on the way from examples to programs.

The file of a verb is imported when that verb is chosen, so help and bad usage answer at once. It defines
`add_arguments(parser)` and `run(arguments)`, which returns the exit status.
"""

import argparse
import difflib
import shlex
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from nram import __version__
from nram.cli.arguments import add_json
from nram.cli.failures import explain, hide_tracebacks
from nram.errors import NramError, UntrustedFile, UsageError
from nram.messages import on_command_line, pasted, visible
from nram.process import output_error, prepare

VERBS = {
    "tasks": "list the tasks",
    "modules": "list the modules",
    "sample": "draw instances of a task",
    "train": "train a population of machines on a task",
    "search": "find a program by search, without a network",
    "learn": "learn a program from a file of examples",
    "sweep": "run a study of many runs, on this machine or on a cluster",
    "runs": "list runs and studies, and free space",
    "eval": "measure how well a trained member of a run does",
    "doctor": "explain a training run, and what to try next",
    "extract": "turn a trained member of a run into a program",
    "simplify": "make a program shorter without changing what it does",
    "verify": "show that a program solves its task, or find where it fails",
    "prove": "prove that a program is right for every length, and write a certificate",
    "check": "check a certificate",
    "test": "run a program on other examples, and say what is right and wrong",
    "show": "print a program: its card and its table",
    "run": "run a program on a memory",
    "trace": "show a run step by step",
    "draw": "draw a program's circuits",
    "compile": "make an object file, a library, C or Python source of a program",
    "serve": "open a page in the browser that shows machines at work",
    "export-page": "write a page that shows a program at work, for lectures and web sites",
    "zoo": "list the programs that ship with nram",
    "examples": "list the examples that ship with nram, or copy them",
    "new": "write a starting file for a task, a module or examples",
    "reproduce": "reproduce the paper's Table 1 and its figure of generalisation",
    "bench": "measure speed",
    "completion": "print a script with which your shell completes commands of nram",
}


class _Parser(argparse.ArgumentParser):
    """Bad usage exits with 2, says what to change and suggests the nearest choice."""

    def error(self, message: str) -> NoReturn:
        before, _, choices = message.partition(" (choose from ")
        near = []
        if choices and before.count("'") >= 2:
            wrong = before.rsplit("'", 2)[1]
            near = difflib.get_close_matches(wrong, [c.strip(" ')") for c in choices.split(",")], n=1)
        hint = f"\ndid you mean {' or '.join(near)}?" if near else ""
        self.exit(2, visible(f"{self.prog}: {message}{hint}\n'{self.prog} --help' shows how it is used\n"))


def build_parser(words: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """The parser for these words: it knows all verbs, and the arguments of the verb that the words begin with.

    Without words it knows the arguments of every verb.
    """
    parser = _Parser(
        prog="nram",
        description="Neural Random-Access Machines: from examples to programs.",
        epilog="Exit status: 0 on success, 1 when the work failed or was interrupted, 2 on bad usage. "
        "'nram VERB --help' explains a verb.",
    )
    parser.add_argument("--version", action="version", version=f"nram {__version__}")
    _add_commands(parser, "verb", VERBS, __name__, words)
    return parser


def _add_commands(
    parser: argparse.ArgumentParser, what: str, commands: dict[str, str], package: str, words: Sequence[str] | None
) -> None:
    """Add a subcommand for each name, with its one line of help. Import only the file of the one that is chosen."""
    subparsers = parser.add_subparsers(dest=what, metavar=what.upper(), required=True)
    for name, summary in commands.items():
        command = subparsers.add_parser(name, help=summary)
        if words is not None and name not in words[:1]:
            continue
        file = import_module(f"{package}.{name.replace('-', '_')}")
        if hasattr(file, "SUBJECTS"):
            command.description = file.DESCRIPTION
            _add_commands(command, "subject", file.SUBJECTS, file.__name__, None if words is None else words[1:])
        else:
            file.add_arguments(command)
            add_json(command)
            command.set_defaults(run=file.run)


def _refusal(error: UntrustedFile, arguments: argparse.Namespace) -> str:
    """Which files were not executed, and the command that executes them, if the verb can trust any."""
    if "trust" not in arguments:
        return error.reason
    files = [word for what, path in error.files for word in (f"--{what}", pasted(path))]
    again = shlex.join(["nram", *arguments.words, *files])
    return (
        f"{error.reason}. If you trust this code, name it:\n    {again}\n"
        "or add --trust, which trusts every file that is named there"
    )


def main(argv: list[str] | None = None) -> int:
    """Carry out a command and return its exit status. Without `argv` it is the command of this process.

    Only then does it change the process: signals end it (see `nram.process`), and tracebacks are hidden.
    """
    words = sys.argv[1:] if argv is None else argv
    name = f"nram {words[0]}" if words and words[0] in VERBS else "nram"
    if argv is None:
        prepare(name)
        hide_tracebacks(name)
    with on_command_line():
        try:
            status = _run(words)
            sys.stdout.flush()
            if (failed := output_error()) is not None:
                raise NramError(f"standard output: {failed.strerror}")
            return status
        except (Exception, KeyboardInterrupt) as error:
            return explain(error, name)


def _run(words: list[str]) -> int:
    if not words:
        build_parser(words).print_help(sys.stderr)
        return 2
    try:
        arguments = build_parser(words).parse_args(words)
    except SystemExit as stop:  # after help, or a refusal that was printed
        return stop.code if isinstance(stop.code, int) else 1
    arguments.words = words
    try:
        return arguments.run(arguments)
    except UntrustedFile as error:
        raise UsageError(_refusal(error, arguments)) from None
