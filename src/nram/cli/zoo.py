"""`nram zoo`: the programs that ship with the package."""

import argparse

from nram.cli.output import print_json, table
from nram.errors import UsageError
from nram.programs.files import to_json
from nram.programs.library import find_entry, zoo_entries
from nram.programs.text import limit_to_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "List the programs that ship with nram, or show the card of one. A bare name means the first of "
        "trained, repaired, searched, written that exists; NAME@ORIGIN names one."
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="show the card of this program")


def run(arguments: argparse.Namespace) -> int:
    if arguments.name is not None:
        entry = find_entry(arguments.name)
        if entry is None:
            have = ", ".join(entry.title for entry in zoo_entries())
            raise UsageError(f"the zoo has no '{arguments.name}': it has {have}")
        if arguments.json:
            print_json(_card(entry))
        else:
            print(str(entry.program), end="")
            print(f"\n# weights: {'yes' if entry.has_weights else 'no'}")
        return 0
    entries = zoo_entries()
    if arguments.json:
        print_json([_card(entry) for entry in entries])
        return 0

    rows = [["program", "task", "rows", "operations", "T(n)", "right", "proven", "run on all inputs", "tested"]]
    for entry in entries:
        program = entry.program
        limit = "-" if program.limit is None else limit_to_text(program.limit)
        shown = [entry.title, program.task or "-", str(program.rows), str(program.operations), limit]
        rows.append([*shown, _strength(program), *_reach(program)])
    print(table(rows))
    print("\nproven: for all values at once; run on all inputs: in the smallest memories. 'nram show NAME' tells more.")
    print("'nram zoo NAME' shows a card, 'nram run NAME --memory \"...\"' runs a program.")
    return 0


def _strength(program) -> str:
    if not program.verified:
        return "not verified"
    return "at T(n)" if program.needs_limit else "under every limit"


def _reach(program) -> list[str]:
    """The largest n of each method."""
    words = []
    for method, form in (("symbolic", "n <= {}"), ("exhaustive", "n <= {}"), ("random", "n = {}")):
        largest = max((e.complexity[1] for e in program.verified if e.method == method), default=None)
        words.append("-" if largest is None else form.format(largest))
    return words


def _card(entry) -> dict:
    return {"name": entry.name, "origin": entry.origin, "weights": entry.has_weights, **to_json(entry.program)}
