"""`nram compile`: write a program as a file that C or Python programs can use."""

import argparse
from pathlib import Path

from nram.cli.output import print_json
from nram.cli.program_argument import add_modules, add_program, program_of
from nram.errors import UsageError
from nram.programs.native.aot import FORMS, compile_program


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write a program as an object file (needs no compiler), as a shared library (needs cc, gcc or "
        "clang to link it), as C source or as LLVM text. A C header beside it declares its functions. "
        "Object files and libraries run on every processor of this computer's architecture. As Python source, a "
        "program is one readable function that needs no nram."
    )
    add_program(parser)
    parser.add_argument("--emit", choices=FORMS, help="what to write (default: by the suffix of FILE, else object)")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="default: SYMBOL with the suffix of its kind, in this folder"
    )
    parser.add_argument(
        "--name",
        metavar="SYMBOL",
        help="name of the function (default: the name of the program, in C after nram_)",
    )
    add_modules(parser)


def run(arguments: argparse.Namespace) -> int:
    program = program_of(arguments)
    given = Path(arguments.program)
    if arguments.out is not None and given.exists() and arguments.out.exists() and arguments.out.samefile(given):
        raise UsageError(f"--out {arguments.out} is the program itself: name another file")
    files = compile_program(program, arguments.emit, arguments.out, arguments.name)
    if arguments.json:
        print_json(
            {
                "program": program.name,
                "fingerprint": program.fingerprint,
                "emit": files.form,
                "out": str(files.out),
                "header": files.header and str(files.header),
                "symbol": files.symbol,
                "unchecked_symbol": files.header and f"{files.symbol}_unchecked",
                "registers": list(program.registers),
            }
        )
        return 0
    print(f"{files.out}  {files.out.stat().st_size} bytes, from the program '{program.name}'")
    if files.header is None:
        print(f"use it: from {files.out.stem} import {files.symbol}; help({files.symbol})")
        return 0
    print(f"{files.header}  int32_t {files.symbol}(memory, size, max_steps, &steps, registers)")
    if program.needs_limit:
        print("the program is right only when it is stopped in time: see the header")
    return 0
