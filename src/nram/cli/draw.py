"""`nram draw`: the circuits of a program as pictures."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from nram.cli.output import print_json
from nram.cli.program_argument import add_modules, add_program, program_of
from nram.errors import NramError, UsageError
from nram.files import check_destination, write_result
from nram.pictures.circuits import circuit_dot, circuit_svg, program_dot, program_rows, program_svg
from nram.programs.ir import Program


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Draw the circuits of a program, one for each row of its table: the registers before the step at the left, "
        "then the modules, then the registers after the step. Operations whose outputs are not used are left out."
    )
    add_program(parser)
    parser.add_argument(
        "--row",
        type=_row,
        metavar="STATE:ROW",
        help="draw one row; rows count from 1, states from 0 and can be left out (default: all)",
    )
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="FILE.svg, FILE.dot for graphviz, a folder (written FOLDER/) for a picture of each row, or - for SVG on "
        "standard output (default: the program's name with .svg)",
    )
    add_modules(parser)


def _row(text: str) -> tuple[int, int] | None:
    """The state and the row that an argument names, both from 0; None for all."""
    if text == "all":
        return None
    found = re.fullmatch(r"(?:(\d{1,9}):)?(\d{1,9})", text)
    if found is None or int(found[2]) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a row: write it like 0:1, state and row, or 'all'")
    return int(found[1] or 0), int(found[2]) - 1


def run(arguments: argparse.Namespace) -> int:
    program = program_of(arguments)
    if arguments.out == "-":
        if arguments.json:
            raise UsageError("--out - prints the picture and --json prints JSON: choose one, or name a file")
        sys.stdout.write(_picture(program, arguments.row, ".svg"))
        return 0
    out = Path(arguments.out or _file_name(program.name))
    into_folder = out.is_dir() or (arguments.out or "").endswith("/")
    if not into_folder and out.suffix not in (".svg", ".dot"):
        raise UsageError(f"{out} ends neither in .svg nor in .dot: choose one of these, or a folder ({out}/)")
    if into_folder:
        rows = program_rows(program) if arguments.row is None else [arguments.row]
        pictures = {out / f"state-{s}-row-{r + 1}.svg": _picture(program, (s, r), ".svg") for s, r in rows}
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise NramError(f"cannot make the folder {out}: {error.strerror}") from None
    else:
        check_destination(out)
        pictures = {out: _picture(program, arguments.row, out.suffix)}
    for path, picture in pictures.items():
        write_result(path, picture.encode())
    drawn = program.rows if arguments.row is None else 1
    if arguments.json:
        print_json({"program": program.name, "rows": drawn, "files": [str(path) for path in pictures]})
        return 0
    what = f"{drawn} row{'' if drawn == 1 else 's'} of {program.name}"
    print(f"{what}: {out}{f', {len(pictures)} files' if into_folder else ''}")
    return 0


def _picture(program: Program, row: tuple[int, int] | None, ending: str) -> str:
    if row is not None:
        return (circuit_svg if ending == ".svg" else circuit_dot)(program, *row)
    return (program_svg if ending == ".svg" else program_dot)(program)


def _file_name(name: str) -> str:
    """A file name for the picture of the program of this name."""
    return (re.sub(r"[^\w.-]+", "-", name).strip("-.")[:80] or "program") + ".svg"
