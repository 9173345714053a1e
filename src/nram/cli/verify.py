"""`nram verify`: what can be shown of a program."""

import argparse
import shutil
import sys
from pathlib import Path

from nram.cli.output import add_json, add_modules, natural, print_json


def add_parser(verbs) -> None:
    parser = verbs.add_parser(
        "verify",
        help="show that a program solves its task, or find where it fails",
        description="Show that a program solves a task: by running every legal input of small sizes, by proofs for all "
        "values and memory sizes at once, and by random instances up to very large ones, under the step limits T(n), "
        "2T(n) and 20n+200. The report says what was proven, what was only tested, and for which n and M.",
        epilog="The exit status is 0 if nothing wrong was found at T(n), also if the program must be stopped there; 1 "
        "with the smallest counterexample if it is wrong. T(n) is the program's own, or else the task's.",
    )
    parser.add_argument("program", metavar="PROGRAM", help="a program of the zoo by its name, or a program file")
    parser.add_argument("--task", metavar="TASK", help="default: the program's own")
    parser.add_argument(
        "--budget", type=_seconds, default=20.0, metavar="S", help="seconds for each of the three parts (default: 20)"
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
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments) -> int:
    from nram.errors import NramError, UsageError
    from nram.programs.files import save_program
    from nram.programs.library import load_program
    from nram.programs.verify import verify

    program = load_program(arguments.program)
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


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds") from None
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is no time: give a number of seconds above 0")
    return value
