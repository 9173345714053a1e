"""`nram learn`: a program from a file of examples, by search and training."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

from nram.cli.arguments import add_device, add_reading, jax_seed, natural, positive, reading_of
from nram.cli.memory_argument import options_for
from nram.cli.output import note, print_json
from nram.errors import UsageError
from nram.learning.asking import SKIP, STOP, expected_from, how_to_answer, question_in_words, reply_from
from nram.learning.by_search import LEAST_FURTHER
from nram.learning.columns import Columns, columns_of
from nram.learning.display import LearningProgress
from nram.learning.job import ALTERNATIVES, METHODS, LearningJob
from nram.learning.kept import Question
from nram.learning.report import to_json, to_text
from nram.limits import StepLimit
from nram.messages import command
from nram.process import interruptible
from nram.tasks.example_files import read_examples
from nram.tasks.layout import values_in_words


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Learn a program from examples: a CSV file with named columns such as values,x,result, or objects like "
        '{"values": [3, 1, 2], "x": 1, "result": 1}, one a line or in a JSON list. nram lays them out in memory. With '
        "input and output, each line gives the whole memory before and after; 'cells' then names those that must be "
        "right, 'steps' how long a program may run. The largest examples are held out: they test what is found, and "
        "nothing is learned from them. Ctrl-C keeps the best so far."
    )
    parser.epilog = (
        "The size of an example is the number of values in its lists, or else its largest input; with whole memories, "
        "the number of input cells that are not 0. The exit status is 0 only if "
        "the program is exact on every example, held-out ones included; otherwise the best is written and it is 1."
    )
    parser.add_argument("examples", type=Path, metavar="EXAMPLES", help="a file of examples, .csv, .jsonl or .json")
    parser.add_argument(
        "--budget",
        type=float,
        default=300.0,
        metavar="SECONDS",
        help="for search and training together; loading, the report, and compiling or steps that have begun when it "
        "ends add some seconds (default: 300)",
    )
    parser.add_argument("--seed", type=jax_seed, default=0, metavar="S", help="default: 0")
    parser.add_argument("--out", type=Path, metavar="DIR", help="default: learned/NAME, by the name of the file")
    parser.add_argument(
        "--method",
        choices=METHODS,
        default="both",
        help="both: search for two thirds of the budget, then, if nothing is found, train (default)",
    )
    parser.add_argument(
        "--steps",
        type=_limit,
        metavar="T(n)",
        help="step limit for a size of n, as 3n+10 or 40, where the file names none (default: 2 (n + M) + 8)",
    )
    parser.add_argument("--workers", type=positive, metavar="W", help="threads of the search (default: one a core)")
    parser.add_argument("--resume", action="store_true", help="go on with what is in --out")
    add_reading(parser)
    parser.add_argument(
        "--alternatives",
        type=natural,
        default=ALTERNATIVES,
        metavar="N",
        help="after the first program that fits, look for at most N others, for as many candidates again as the first "
        f"took and at least {LEAST_FURTHER:,}, or until the same programs come again; 0: stop at the first "
        f"(default: {ALTERNATIVES})",
    )
    parser.add_argument(
        "--ask",
        action="store_true",
        help="where programs that fit disagree, ask which is right (a line of standard input), and go on with it",
    )
    add_device(parser)


def _limit(text: str) -> StepLimit:
    limit = StepLimit.from_text(text.replace(" ", ""))
    if limit is None or limit(1) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a step limit: write it as 3n+10 or 40")
    return limit


def run(arguments: argparse.Namespace) -> int:
    if not arguments.budget > 0:
        raise UsageError(f"--budget {arguments.budget:g} leaves no time: give seconds above 0")
    file = read_examples(arguments.examples, reading_of(arguments))
    job = LearningJob(
        file,
        arguments.out or Path("learned") / arguments.examples.stem,
        budget=arguments.budget,
        seed=arguments.seed,
        method=arguments.method,
        steps=arguments.steps,
        workers=arguments.workers,
        device=arguments.device,
        resume=arguments.resume,
        alternatives=arguments.alternatives,
        ask=partial(_ask, columns_of(file.examples, file.layout)) if arguments.ask else None,
    )
    with interruptible() as stopping, LearningProgress(job.name, job.file.layout) as progress:
        learned = job.run(progress, stopping)
    if arguments.json:
        print_json(to_json(learned))
    else:
        print(to_text(learned))
        if learned.program is not None:
            out = job.folder
            print(f"{out / 'program.json'} (also program.nram, program.svg, report.json and programs/)")
            if learned.found:
                training = learned.parts.training
                example = next((one for one in training if one.size > 2), training[-1])  # small, but no empty list
                given = options_for(example, learned.program)
                print(f"Try it: {command('run', out / 'program.json', **given)}")
    return 0 if learned.found else 1


def _ask(columns: Columns | None, question: Question) -> Any:
    """Ask on standard error until the answer, from standard input, can be used. The end of the input means stop."""
    assert columns is not None  # otherwise there are no questions
    note("\n".join(question_in_words(question)))
    while True:
        print(how_to_answer(question), end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line:
            note("")
            return STOP
        try:
            reply = reply_from(line, question)
            if reply not in (SKIP, STOP):
                output, _ = expected_from(reply, question, columns)
                note(f"Right is: {values_in_words(columns.results(question.input, output))}")
            return reply
        except UsageError as error:
            note(str(error))
