"""`nram draw`: the circuits of a program as pictures."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from nram.cli.arguments import add_theme, positive
from nram.cli.output import print_json
from nram.cli.program_argument import add_modules, add_program, program_of
from nram.errors import NramError, UsageError
from nram.files import check_destination, write_result
from nram.pictures.circuits import SUFFIXES, drawn_program, program_rows


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
        help="FILE.svg, FILE.png, FILE.pdf, FILE.dot for graphviz, a folder (written FOLDER/) for an SVG of each row, "
        "or - for SVG on standard output (default: the program's name with .svg)",
    )
    parser.add_argument(
        "--columns",
        type=positive,
        metavar="K",
        help="draw all rows in K columns (default: one, and more if the program is long)",
    )
    add_theme(parser)
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
    options = arguments.columns, arguments.theme
    if arguments.out == "-":
        if arguments.json:
            raise UsageError("--out - prints the picture and --json prints JSON: choose one, or name a file")
        sys.stdout.write(drawn_program(program, Path("picture.svg"), arguments.row, *options).decode())
        return 0
    out = Path(arguments.out or _file_name(program.name))
    into_folder = out.is_dir() or (arguments.out or "").endswith("/")
    if into_folder:
        rows = program_rows(program) if arguments.row is None else [arguments.row]
        paths = [(out / f"state-{s}-row-{r + 1}.svg", (s, r)) for s, r in rows]
        pictures = {path: drawn_program(program, path, row, *options) for path, row in paths}
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise NramError(f"cannot make the folder {out}: {error.strerror}") from None
    else:
        if out.suffix.lower() in SUFFIXES:  # otherwise the suffix is what is wrong
            check_destination(out)
        pictures = {out: drawn_program(program, out, arguments.row, *options)}
    for path, picture in pictures.items():
        write_result(path, picture)
    drawn = program.rows if arguments.row is None else 1
    if arguments.json:
        print_json({"program": program.name, "rows": drawn, "files": [str(path) for path in pictures]})
        return 0
    what = f"{drawn} row{'' if drawn == 1 else 's'} of {program.name}"
    print(f"{what}: {out}{f', {len(pictures)} files' if into_folder else ''}")
    return 0


def _file_name(name: str) -> str:
    """A file name for the picture of the program of this name."""
    return (re.sub(r"[^\w.-]+", "-", name).strip("-.")[:80] or "program") + ".svg"
