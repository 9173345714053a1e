"""`nram verify`: check whether a program solves a task."""

import argparse
from pathlib import Path

from nram.cli.arguments import natural, seconds
from nram.cli.output import ProgressLine, note, print_json, terminal_width
from nram.cli.program_argument import add_modules, add_program, program_of
from nram.errors import NramError, UsageError
from nram.files import check_destination
from nram.messages import pasted
from nram.programs.files import save_found
from nram.programs.verify import verify


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Check whether a program solves a task: run every legal input of small sizes, prove small n for all values and "
        "memory sizes at once, run random instances up to very large ones, under the step limits T(n), 2T(n) and "
        "20n+200, and prove it for every length. The report says what was proven, what was only tested, and for which "
        "n and M."
    )
    parser.epilog = (
        "The exit status is 0 if no failure was found at T(n), even if the program must be stopped there; it is 1 "
        "if the program is wrong. Then the smallest counterexample is printed. T(n) is the program's limit, or else "
        "the task's."
    )
    add_program(parser)
    parser.add_argument("--task", metavar="TASK", help="the task (default: the program's task)")
    parser.add_argument(
        "--budget",
        type=seconds,
        default=20.0,
        metavar="S",
        help="seconds for each of the four parts, so four times as many in all (default: 20)",
    )
    parser.add_argument(
        "--max-n",
        type=natural,
        metavar="N",
        help="largest n to run exhaustively (0: none)",
    )
    parser.add_argument(
        "--symbolic", type=natural, default=6, metavar="N", help="largest n to prove (default: 6; 0: none)"
    )
    parser.add_argument(
        "--largest",
        type=natural,
        default=100_000,
        metavar="N",
        help="largest n of random instances (default: 100000; 0: none)",
    )
    parser.add_argument(
        "--certificate",
        type=pasted,
        metavar="CERTIFICATE",
        help="take the proof for every length from this file of 'nram prove' (those of the zoo are known)",
    )
    parser.add_argument("--no-proof", action="store_true", help="try no proof for every length")
    parser.add_argument("--seed", type=natural, default=0, metavar="S", help="for random instances (default: 0)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the program with its evidence to this file")
    add_modules(parser)


def run(arguments: argparse.Namespace) -> int:
    program = program_of(arguments)
    if arguments.no_proof and arguments.certificate:
        raise UsageError("--no-proof and --certificate contradict each other: give one of them")
    if arguments.out:
        check_destination(arguments.out)
    with ProgressLine() as progress:
        report = verify(
            program,
            arguments.task,
            budget=arguments.budget,
            exhaustive_up_to=arguments.max_n,
            symbolic_up_to=arguments.symbolic,
            largest=arguments.largest,
            every_length=not arguments.no_proof,
            certificate=arguments.certificate,
            seed=arguments.seed,
            progress=progress.show,
        )
    out = arguments.out if report.right else None
    unsaved = None
    if out:
        try:
            save_found(report.recorded(), out)
        except NramError as error:  # the report is printed all the same
            out, unsaved = None, error
    if arguments.json:
        print_json({**report.to_json(), "out": out and str(out)})
    else:
        print(report.to_text(arguments.program, terminal_width()), end="")
        if out:
            print(f"the program with this evidence: {out}")
    if unsaved is not None:
        raise unsaved
    if report.right:
        if report.harmful:
            note(f"nram verify: {program.name} is right only when it is stopped at T(n)")
        return 0
    if arguments.out:
        note(f"nram verify: {arguments.out} was not written")
    if report.verdict == "nothing shown":
        raise NramError("nothing was shown: allow more time (--budget) or more sizes (--max-n, --symbolic, --largest)")
    return 1
