"""`nram show`: print a program: what is known about it, and its table."""

from __future__ import annotations

import argparse
import textwrap
from dataclasses import asdict

from nram.cli.output import print_json, table
from nram.cli.program_argument import add_modules, add_program, program_of
from nram.extensions import known_task, task_names
from nram.programs.evidence import evidence_table
from nram.programs.files import to_json
from nram.programs.ir import Program
from nram.programs.simplify import size_of
from nram.programs.text import table_to_text, to_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Print a program: where it comes from, how large it is, what was verified, and its table. Rows are "
        "tried from the top; the first whose conditions hold is carried out."
    )
    add_program(parser)
    parser.add_argument(
        "--text",
        "--raw",
        dest="raw",
        action="store_true",
        help="print the text form alone, as it can be saved, edited and read again",
    )
    add_modules(parser)


def run(arguments: argparse.Namespace) -> int:
    program = program_of(arguments)
    if arguments.json:
        columns, *rows = evidence_table(program.verified)
        print_json(
            {
                "program": to_json(program),
                "size": asdict(size_of(program)),
                "fingerprint": program.fingerprint,
                "verified": ["; ".join(map(": ".join, zip(columns, row, strict=True))) for row in rows],
                "text": to_text(program),
            }
        )
    elif arguments.raw:
        print(to_text(program), end="")
    else:
        print(card(program))
        print()
        print(table_to_text(program), end="")
    return 0


def card(program: Program) -> str:
    """What is known about a program: one fact a line, and a table of its evidence."""
    facts = [("task", _task_in_words(program.task)), ("origin", program.origin)]
    if program.limit is not None:
        needed = ", and it must be stopped there" if program.needs_limit else ""
        facts.append(("limit", f"T(n) = {program.limit} steps{needed}"))
    facts.append(("size", str(size_of(program))))
    facts += [(f"made {key}", value) for key, value in program.made]
    if not program.verified:
        facts.append(("verified", "nothing yet: run 'nram verify'"))
    width = max(len(name) for name, _ in facts) + 2
    lines = [program.name]
    for name, value in facts:
        lines += textwrap.wrap(
            value, 110, initial_indent=f"  {name:{width}}", subsequent_indent=" " * (width + 2), break_on_hyphens=False
        )
    if program.verified:
        lines += ["", "  verified", textwrap.indent(table(evidence_table(program.verified)), "    ")]
    return "\n".join(lines)


def _task_in_words(name: str | None) -> str:
    if name is None:
        return "none"
    return f"{name}: {known_task(name).summary}" if name in task_names() else name
