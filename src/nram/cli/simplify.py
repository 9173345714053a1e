"""`nram simplify`: make a program shorter."""

import argparse
from dataclasses import asdict
from pathlib import Path

from nram.cli.output import note, print_json
from nram.cli.program_argument import add_modules, add_program, program_of
from nram.files import check_destination
from nram.programs.files import save_found, to_json
from nram.programs.ir import names_in_words
from nram.programs.simplify import size_of
from nram.programs.text import table_to_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Make a program shorter. For every memory and step limit the result has the same final memory, number "
        "of steps and halting. With --task this holds only for inputs of that task."
    )
    add_program(parser)
    parser.add_argument("--task", metavar="TASK", help="also drop the rows that no input of this task leads to")
    parser.add_argument("--keep-registers", action="store_true", help="also keep the final values of the registers")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write it to this file (JSON, or text for .nram)")
    add_modules(parser)


def run(arguments: argparse.Namespace) -> int:
    before = program_of(arguments)
    if arguments.out:
        check_destination(arguments.out)
    after = before.simplify(arguments.task, keep_registers=arguments.keep_registers)
    if arguments.out:
        save_found(after, arguments.out)
    if arguments.json:
        sizes = {"before": asdict(size_of(before)), "after": asdict(size_of(after))}
        print_json({"out": arguments.out and str(arguments.out), "size": sizes, "program": to_json(after)})
        return 0
    note(f"{size_of(before)} -> {size_of(after)}{names_in_words(after.registers)}")
    print(table_to_text(after), end="")
    return 0
