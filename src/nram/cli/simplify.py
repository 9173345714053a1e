"""`nram simplify`: the same program, shorter."""

import sys
from dataclasses import asdict, replace
from pathlib import Path

from nram.cli.output import add_json, add_modules, print_json


def add_parser(verbs) -> None:
    parser = verbs.add_parser(
        "simplify",
        help="make a program shorter without changing what it does",
        description="Make a program shorter. For every memory and step limit the result has the same memory, number "
        "of steps and halting; for inputs of one task alone, if --task names it.",
    )
    parser.add_argument("program", metavar="PROGRAM", help="a name of the zoo or a program file")
    parser.add_argument("--task", metavar="T", help="also drop the rows that no input of this task leads to")
    parser.add_argument("--keep-registers", action="store_true", help="keep the registers' values at the halt as well")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the program there (JSON, or text for .nram)")
    add_modules(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments) -> int:
    from nram.errors import UsageError
    from nram.programs.files import save_program, to_json
    from nram.programs.library import load_program
    from nram.programs.simplify import simplify, size_of
    from nram.programs.simplify.specialise import specialise
    from nram.programs.text import table_to_text
    from nram.tasks import get_task

    if arguments.task and arguments.keep_registers:
        raise UsageError("--keep-registers does not go with --task: leave one of them out")
    before = load_program(arguments.program)
    if arguments.task:
        after = specialise(before, get_task(arguments.task))
    else:
        after = simplify(before, keep_registers=arguments.keep_registers)
    scope = f"for the inputs of {arguments.task}" if arguments.task else "with the same meaning on every memory"
    kept = tuple(pair for pair in after.made if pair[0] != "simplified")
    after = replace(after, made=(*kept, ("simplified", f"from {size_of(before)}, {scope}")))
    if arguments.out:
        save_program(after, arguments.out)
    if arguments.json:
        sizes = {"before": asdict(size_of(before)), "after": asdict(size_of(after))}
        print_json({"out": arguments.out and str(arguments.out), "size": sizes, "program": to_json(after)})
        return 0
    print(f"{size_of(before)} -> {size_of(after)}", file=sys.stderr)
    print(table_to_text(after), end="")
    return 0
