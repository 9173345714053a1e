"""`nram show`: a program in words: what it is, what is known of it, and its table."""

from __future__ import annotations

import argparse
import textwrap

from nram.cli.output import print_json
from nram.cli.program_argument import add_modules, add_program, program_of
from nram.programs import Evidence, Program
from nram.programs.files import to_json
from nram.programs.text import limit_to_text, table_to_text, to_text
from nram.tasks import get_task, task_names


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Print a program: where it comes from, how large it is, what was verified, and its table. Rows are "
        "tried from the top; the first whose conditions hold is carried out."
    )
    add_program(parser)
    parser.add_argument(
        "--raw", action="store_true", help="print the text form alone, as it can be saved, edited and read again"
    )
    add_modules(parser)


def run(arguments: argparse.Namespace) -> int:

    program = program_of(arguments)
    if arguments.json:
        print_json(
            {
                "program": to_json(program),
                "size": _size(program),
                "fingerprint": program.fingerprint,
                "verified": [evidence_in_words(evidence) for evidence in program.verified],
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
    """What is known of a program, a fact a line."""

    facts = [("task", _task_in_words(program.task)), ("origin", program.origin)]
    if program.limit is not None:
        needed = ", and it must be stopped there" if program.needs_limit else ""
        facts.append(("limit", f"T(n) = {limit_to_text(program.limit)} steps{needed}"))
    counts = ", ".join(f"{count} {name if count != 1 else name[:-1]}" for name, count in _size(program).items())
    facts.append(("size", counts))
    facts += [(f"made {key}", value) for key, value in program.made]
    facts += [("verified", evidence_in_words(evidence)) for evidence in program.verified]
    if not program.verified:
        facts.append(("verified", "nothing yet: 'nram verify' shows what can be shown of it"))
    width = max(len(name) for name, _ in facts) + 2
    lines = [program.name]
    before = ""
    for name, value in facts:
        label = "" if name == before else name
        lines += textwrap.wrap(
            value, 110, initial_indent=f"  {label:{width}}", subsequent_indent=" " * (width + 2), break_on_hyphens=False
        )
        before = name
    return "\n".join(lines)


def _task_in_words(name: str | None) -> str:

    if name is None:
        return "none"
    return f"{name}: {get_task(name).summary}" if name in task_names() else name


def _size(program: Program) -> dict[str, int]:
    return {
        "registers": len(program.registers),
        "states": len(program.states),
        "rows": program.rows,
        "operations": program.operations,
    }


def evidence_in_words(evidence: Evidence) -> str:
    """One thing that was shown of a program, as a sentence."""
    low, high = evidence.complexity
    sizes = f"n = {low}" if low == high else f"n = {low} to {high}"
    if evidence.extra_memory is None:
        memory = "on every memory size"
    else:
        first, last = ("the least that fits" + (f" plus {extra}" if extra else "") for extra in evidence.extra_memory)
        memory = f"with M {first}" if first == last else f"with M from {first} to {last}"
    what = {
        "exhaustive": "right on every legal input",
        "symbolic": "proven right for all values at once",
        "random": "right on inputs drawn at random",
    }[evidence.method]
    count = "" if evidence.instances is None else f", {evidence.instances} inputs in all"
    if evidence.limits == ("every",):
        limits = "under every step limit from T(n) up"
    else:
        limits = f"under the step limit{'s' if len(evidence.limits) > 1 else ''} {', '.join(evidence.limits)}"
    ending = "; it always halts by itself" if evidence.halts else "; it does not always halt within these limits"
    return f"{what} of {evidence.task} with {sizes}, {memory}{count}, {limits}{ending}"
