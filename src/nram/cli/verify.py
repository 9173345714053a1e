"""`nram verify`: what can be shown of a program."""

import argparse
import shutil
import sys
from pathlib import Path

from nram.cli.arguments import natural, seconds
from nram.cli.output import print_json
from nram.cli.program_argument import add_modules, add_program, program_of
from nram.errors import NramError, UsageError
from nram.programs.files import save_program
from nram.programs.verify import verify


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Show that a program solves a task: by running every legal input of small sizes, by proofs for all "
        "values and memory sizes at once, and by random instances up to very large ones, under the step limits T(n), "
        "2T(n) and 20n+200. The report says what was proven, what was only tested, and for which n and M."
    )
    parser.epilog = (
        "The exit status is 0 if nothing wrong was found at T(n), also if the program must be stopped there; 1 "
        "with the smallest counterexample if it is wrong. T(n) is the program's own, or else the task's."
    )
    add_program(parser)
    parser.add_argument("--task", metavar="TASK", help="default: the program's own")
    parser.add_argument(
        "--budget", type=seconds, default=20.0, metavar="S", help="seconds for each of the three parts (default: 20)"
    )
    parser.add_argument("--max-n", type=natural, metavar="N", help="run all inputs only up to this n (0: none)")
    parser.add_argument(
        "--symbolic", type=natural, default=6, metavar="N", help="prove it up to this n (default: 6; 0: not at all)"
    )
    parser.add_argument(
        "--largest",
        type=natural,
        default=100_000,
        metavar="N",
        help="draw random instances up to this n (default: 100000; 0: none)",
    )
    parser.add_argument("--seed", type=natural, default=0, metavar="S", help="of the random instances (default: 0)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the program there with what was shown of it")
    add_modules(parser)


def run(arguments: argparse.Namespace) -> int:

    program = program_of(arguments)
    if arguments.out and not arguments.out.parent.is_dir():
        raise UsageError(f"--out {arguments.out} cannot be written: there is no folder {arguments.out.parent}")

    def progress(words: str) -> None:
        end = "\n" if not sys.stderr.isatty() else "\033[K\r"
        print(words, end=end, file=sys.stderr, flush=True)

    report = verify(
        program,
        arguments.task,
        budget=arguments.budget,
        exhaustive_up_to=arguments.max_n,
        symbolic_up_to=arguments.symbolic,
        largest=arguments.largest,
        seed=arguments.seed,
        progress=progress,
    )
    if sys.stderr.isatty():
        print("\033[K", end="", file=sys.stderr)
    if arguments.out and report.right:
        save_program(report.recorded(), arguments.out)
    if arguments.json:
        print_json({**report.to_json(), "out": str(arguments.out) if arguments.out and report.right else None})
    else:
        print(report.to_text(arguments.program, max(60, shutil.get_terminal_size((120, 40)).columns)), end="")
        if arguments.out and report.right:
            print(f"the program with this evidence: {arguments.out}")
    if report.right:
        if report.harmful:
            print(f"nram verify: {program.name} is right only when it is stopped at T(n)", file=sys.stderr)
        return 0
    if arguments.out:
        print(f"nram verify: {arguments.out} was not written", file=sys.stderr)
    if report.verdict == "nothing shown":
        raise NramError("nothing was shown: allow more time (--budget) or more sizes (--max-n, --symbolic, --largest)")
    return 1
