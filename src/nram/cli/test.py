"""`nram test`: run a program on other examples, or on fresh instances of a task."""

import argparse

from nram.cli.arguments import add_reading, natural, positive, reading_of
from nram.cli.memory_argument import options_for
from nram.cli.output import print_json
from nram.cli.program_argument import add_modules, add_program, program_of
from nram.messages import command
from nram.programs.testing import COUNT, FAR, run_test

MOST_CELLS = 100  # of a memory in a command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Test a program on examples that it was not made from: a file as 'nram learn' reads it, or fresh instances of "
        "a task. Say how many are right under every step limit, show the smallest that is wrong, and how the steps "
        "grow with the size."
    )
    parser.epilog = "The exit status is 0 only if none is wrong."
    add_program(parser)
    parser.add_argument(
        "source",
        metavar="FILE|TASK",
        help="a file of examples (.csv, .jsonl, .json), or a task: a name that 'nram tasks' lists, or a .py file",
    )
    parser.add_argument(
        "--count", type=positive, default=COUNT, metavar="K", help=f"instances of a task (default: {COUNT})"
    )
    parser.add_argument(
        "--complexity",
        type=positive,
        metavar="N",
        help=f"the largest n of a task, which half of the instances have (default: {FAR}, or more if it was trained "
        "on more)",
    )
    parser.add_argument("--seed", type=natural, default=0, metavar="S", help="seed of the instances (default: 0)")
    add_reading(parser)
    add_modules(parser)


def run(arguments: argparse.Namespace) -> int:
    tested = run_test(
        program_of(arguments),
        arguments.source,
        count=arguments.count,
        complexity=arguments.complexity,
        seed=arguments.seed,
        reading=reading_of(arguments),
    )
    if arguments.json:
        print_json(tested.to_json())
    else:
        print(tested)
        smallest = tested.score.smallest
        if smallest is not None and len(smallest.obtained) <= MOST_CELLS:
            given = options_for(smallest.example, tested.program)
            print(f"Watch it: {command('trace', arguments.program, **given, max_steps=smallest.limit)}")
    return 1 if tested.wrong else 0
