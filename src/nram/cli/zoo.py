"""`nram zoo`: list the programs that ship with the package."""

import argparse

from nram.cli.output import print_json, table
from nram.errors import UsageError
from nram.programs.files import to_json
from nram.programs.ir import ORIGINS, Method, Program, largest_n
from nram.programs.library import ZooEntry, find_entry, zoo_entries


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "List the programs that ship with nram, or show the card of one. NAME@ORIGIN names one program. NAME alone "
        f"means the first that exists of the origins {', '.join(ORIGINS)}."
    )
    parser.add_argument("name", nargs="?", metavar="PROGRAM", help="show the card of this program")


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
            certificate = f"yes, and 'nram check {entry.title}' checks it" if entry.has_certificate else "no"
            print(f"{entry.program}\n# weights: {'yes' if entry.has_weights else 'no'}\n# certificate: {certificate}")
        return 0
    if arguments.json:
        print_json([_card(entry) for entry in entries])
        return 0
    rows = [["program", "rows", "ops", "T(n)", "right at", "then", "proven", "run", "tested"]]
    for entry in entries:
        program = entry.program
        size = [str(program.rows), str(program.operations), str(program.limit or "-")]
        rows.append([entry.title, *size, _strength(program), _ending(program), *_reach(program)])
    print(table(rows))
    print("\nright at: every step limit from T(n) up, or T(n) alone")
    print("then:     it halts by itself, idles without harm, or must be stopped")
    print("proven:   for every n, or the largest n with a proof for all values at once")
    print("run:      the largest n of which all inputs were run, in the smallest memories")
    print("tested:   the largest n of random inputs")
    print("'nram zoo NAME' shows a card, 'nram run NAME --memory \"...\"' runs a program, and")
    print("'nram check NAME' checks the certificate of one that is proven for every n.")
    return 0


def _strength(program: Program) -> str:
    if not program.verified:
        return "not verified"
    return "T(n)" if program.needs_limit else "every limit"


def _ending(program: Program) -> str:
    """Whether it halts by itself; one that does not, and is right all the same, idles when it is done."""
    if program.halts is None:
        return "-"
    return "halts" if program.halts else "idles" if program.right_under_every_limit else "must be stopped"


def _reach(program: Program) -> list[str]:
    """The largest n of each method."""
    methods: tuple[Method, ...] = ("symbolic", "exhaustive", "random")
    proven, *others = [str(largest_n(program, method) or "-") for method in methods]
    return ["every n" if program.proven_for_every_length else proven, *others]


def _card(entry: ZooEntry) -> dict:
    ships = {"weights": entry.has_weights, "certificate": entry.has_certificate}
    return {"name": entry.name, "origin": entry.origin, **ships, **to_json(entry.program)}
