"""The command line: `nram VERB`. One file per verb, each a stop on the way from examples to programs.

Nothing here imports JAX before a verb that needs it runs, so help and bad usage answer at once.
"""

import argparse
import difflib
import os
import sys
from typing import NoReturn

from nram import __version__
from nram.cli import (
    bench,
    compile,
    draw,
    eval,
    extract,
    learn,
    modules,
    reproduce,
    run,
    sample,
    search,
    show,
    simplify,
    tasks,
    trace,
    train,
    verify,
    zoo,
)
from nram.errors import NramError

VERBS = (
    tasks,
    modules,
    sample,
    train,
    search,
    learn,
    eval,
    extract,
    simplify,
    verify,
    show,
    run,
    trace,
    draw,
    compile,
    zoo,
    reproduce,
    bench,
)


class _Parser(argparse.ArgumentParser):
    """Bad usage exits with 2, says what to change and names what was probably meant."""

    def error(self, message: str) -> NoReturn:
        before, _, choices = message.partition(" (choose from ")
        near = []
        if choices and before.count("'") >= 2:
            wrong = before.rsplit("'", 2)[1]
            near = difflib.get_close_matches(wrong, [c.strip(" ')") for c in choices.split(",")], n=1)
        hint = f"\ndid you mean {' or '.join(near)}?" if near else ""
        self.exit(2, f"{self.prog}: {message}{hint}\n'{self.prog} --help' shows how it is used\n")


def build_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="nram",
        description="Neural Random-Access Machines: from examples to programs.",
        epilog="Exit status: 0 on success, 1 when the work failed or was interrupted, 2 on bad usage. "
        "'nram VERB --help' tells more.",
    )
    parser.add_argument("--version", action="version", version=f"nram {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=_Parser)
    for verb in VERBS:
        verb.add_parser(verbs)
    return parser


def _load_modules(files: list[str]) -> None:
    if files:
        from nram.extensions.modules import get_module

        for file in files:
            get_module(file)


def main(argv: list[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    arguments = build_parser().parse_args(words)
    arguments.words = words
    try:
        _load_modules(getattr(arguments, "module", []))
        status = arguments.run(arguments)
        sys.stdout.flush()
        return status
    except NramError as error:
        print(f"nram {arguments.verb}: {error}", file=sys.stderr)
        return error.exit_status
    except (RuntimeError, ValueError) as error:
        # What a task of one's own raised inside compiled code comes back as neither its kind nor its words.
        callback = sys.modules.get("nram.tasks._callback")
        if callback is not None and callback.failures:
            print(f"nram {arguments.verb}: {callback.failures[0]}", file=sys.stderr)
            return callback.failures[0].exit_status
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        print(f"nram {arguments.verb}: out of memory: use a smaller population or batch", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\nnram {arguments.verb}: interrupted", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader, `head` for one, has gone: nothing more can be said, not even this
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(nowhere, stream.fileno())
        return 1
    except OSError as error:
        print(f"nram {arguments.verb}: {error.filename or 'the system'}: {error.strerror}", file=sys.stderr)
        return 1
