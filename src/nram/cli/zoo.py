"""`nram zoo`: list the programs that ship with the package."""

import argparse

from nram.cli.output import print_json, table
from nram.errors import UsageError
from nram.programs.files import to_json
from nram.programs.ir import ORIGINS, Program
from nram.programs.library import ZooEntry, find_entry, zoo_entries


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "List the programs that ship with nram, or show the card of one. NAME@ORIGIN names one program. NAME alone "
        f"means the first that exists of the origins {', '.join(ORIGINS)}."
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="show the card of this program")


def run(arguments: argparse.Namespace) -> int:
    entries = zoo_entries()
    if arguments.name is not None:
        entry = find_entry(arguments.name)
        if entry is None:
            have = ", ".join(entry.title for entry in entries)
            raise UsageError(f"the zoo has no '{arguments.name}': it has {have}")
        if arguments.json:
            print_json(_card(entry))
        else:
            print(f"{entry.program}\n# weights: {'yes' if entry.has_weights else 'no'}")
        return 0
    if arguments.json:
        print_json([_card(entry) for entry in entries])
        return 0
    rows = [["program", "task", "rows", "operations", "T(n)", "right", "proven", "run on all inputs", "tested"]]
    for entry in entries:
        program = entry.program
        size = [str(program.rows), str(program.operations), str(program.limit or "-")]
        rows.append([entry.title, program.task or "-", *size, _strength(program), *_reach(program)])
    print(table(rows))
    print("\nproven: for all values at once; run on all inputs: in the smallest memories. 'nram show NAME' tells more.")
    print("'nram zoo NAME' shows a card, 'nram run NAME --memory \"...\"' runs a program.")
    return 0


def _strength(program: Program) -> str:
    if not program.verified:
        return "not verified"
    return "at T(n)" if program.needs_limit else "under every limit"


def _reach(program: Program) -> list[str]:
    """The largest n of each method."""
    words = []
    for method, form in (("symbolic", "n <= {}"), ("exhaustive", "n <= {}"), ("random", "n = {}")):
        largest = max((e.complexity[1] for e in program.verified if e.method == method), default=None)
        words.append("-" if largest is None else form.format(largest))
    return words


def _card(entry: ZooEntry) -> dict:
    return {"name": entry.name, "origin": entry.origin, "weights": entry.has_weights, **to_json(entry.program)}
