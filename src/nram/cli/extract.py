"""`nram extract`: turn a trained member of a run into a program."""

import argparse
from dataclasses import asdict
from pathlib import Path

from nram.cli.output import note, print_json
from nram.cli.run_argument import add_run, open_run
from nram.extensions.modules import files_of
from nram.extras import require
from nram.files import check_destination
from nram.messages import command
from nram.programs.files import save_found, to_json
from nram.programs.ir import names_in_words
from nram.programs.text import table_to_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Turn a trained member of a run into a program: the table of its discretised controller, "
        "simplified. An LSTM is first merged into a finite automaton, if there is one that does the same."
    )
    parser.epilog = (
        "By default, rows that no input of the run's task leads to are dropped. This makes the program short; run "
        "'nram verify' on the result. The program is written as JSON, or in the text form if FILE ends in .nram."
    )
    add_run(parser)
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: RUN/program.json (program-K for member K)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--every-input",
        action="store_const",
        const="every-input",
        dest="form",
        help="keep the same behaviour on every memory, not only on inputs of the task",
    )
    form.add_argument("--raw", action="store_const", const="raw", dest="form", help="do not simplify")
    parser.set_defaults(form="task")


def run(arguments: argparse.Namespace) -> int:
    folder = open_run(arguments.path, arguments)
    name = "program.json" if arguments.member == 0 else f"program-{arguments.member}.json"
    out = arguments.out or arguments.path / name
    check_destination(out)
    require("train", "extraction")
    from nram.programs.extract.from_run import extract_run

    extraction = extract_run(folder, arguments.member, arguments.form, on_note=note)
    program = extraction.program
    save_found(program, out)
    if arguments.json:
        sizes = {"before": asdict(extraction.raw_size), "after": asdict(extraction.size)}
        print_json({"out": str(out), "size": sizes, "note": extraction.note, "program": to_json(program)})
        return 0
    print(f"{extraction.raw_size} -> {extraction.size}{names_in_words(program.registers)}")
    if extraction.note:
        print(extraction.note)
    print()
    print(table_to_text(program))
    # A program stores only the name of its task, so the file of a user-defined task must be named.
    task = None if folder.config.task == program.task else folder.config.task
    print(f"{out}\nNext: {command('verify', out, task=task, module=files_of(program.modules))}")
    return 0
