"""`nram sweep`: a study of many runs, on this machine or on a Ray cluster."""

from __future__ import annotations

import argparse
from pathlib import Path

from nram.cli.arguments import positive
from nram.cli.output import note, print_json
from nram.cli.program_argument import add_modules, load_modules
from nram.cli.run_argument import add_trust
from nram.cluster.display import StudyDisplay
from nram.cluster.job import Studied, StudyJob
from nram.cluster.table import legend, table_text
from nram.display import counted
from nram.extensions import get_task
from nram.extras import require
from nram.files import check_destination
from nram.pictures.trace_records import require_picture
from nram.process import interruptible


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Run a study: tasks or files, times seeds, times settings, by train, search or learn. A short TOML file says "
        "what (docs/scale.md). Each trial is an ordinary run folder, in a process of its own; as many run side by side "
        "as there are cores and GPUs. Ctrl-C saves and stops; --resume goes on, after anything."
    )
    parser.epilog = (
        "The study holds results.jsonl with a line for each trial that has ended, and summary.json with the table. The "
        "exit status is 0 if every trial has ended, whether or not it learned."
    )
    parser.add_argument("spec", type=Path, metavar="SPEC", help="a TOML file, or with --resume the folder of a study")
    parser.add_argument("--out", type=Path, metavar="STUDY", help="the study's folder (default: studies/SPEC)")
    parser.add_argument(
        "--resume", action="store_true", help="go on with the study in --out, or start it if there is none"
    )
    parser.add_argument(
        "--workers", type=positive, metavar="W", help="trials side by side (default: as cores and GPUs allow)"
    )
    parser.add_argument(
        "--address",
        metavar="A",
        help="run the trials on the Ray cluster at HOST:PORT; auto: the one of this machine; local: start Ray here",
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help="also draw the shares with their intervals")
    parser.add_argument("--task", action="append", default=[], metavar="FILE", help="a task's file that SPEC names")
    add_modules(parser, "a trial")
    add_trust(parser, "SPEC")


def run(arguments: argparse.Namespace) -> int:
    load_modules(arguments)
    for file in arguments.task:
        get_task(file)
    if arguments.plot is not None:
        require("plots", "a plot")
        require_picture(arguments.plot)
        check_destination(arguments.plot, "--plot")
    job = StudyJob.open(arguments.spec, arguments.out, arguments.words, resume=arguments.resume, trust=arguments.trust)
    with interruptible() as stopping:
        studied = job.run(StudyDisplay(), stopping, workers=arguments.workers, address=arguments.address)
    if arguments.plot is not None:
        from nram.pictures.shares import plot_shares

        plot_shares(studied.rows, studied.study.path.name, arguments.plot)
    if arguments.json:
        print_json(studied.to_json())
    else:
        _print(studied)
    if not studied.finished:
        note(_what_is_left(studied))
        return 1
    return 0


def _print(studied: Studied) -> None:
    rows = studied.rows
    print(table_text(rows))
    if lines := legend(rows):
        print("", *lines, sep="\n")
    print(f"\n{studied.study.results}")


def _what_is_left(studied: Studied) -> str:
    left = len(studied.trials) - len(studied.outcomes)
    verbs = ("has", "is") if len(studied.trials) == 1 else ("have", "are")
    words = f"{left} of {counted(len(studied.trials), 'trial')} {verbs[0]} not ended, and {verbs[1]} not in the table"
    lines = [f"nram sweep: {words}" + (f": {studied.trouble}" if studied.trouble else "")]
    lines += [f"  {name}: {message}" for name, message in list(studied.failed.items())[:10]]
    lines += [f"  and {len(studied.failed) - 10} more that failed"] if len(studied.failed) > 10 else []
    if any(_is_damage(name, message) for name, message in studied.failed.items()):
        stored = studied.study.spec.storage is not None
        what = "its snapshots are" if stored else f"its folder in {studied.study.path / 'runs'} is"
        lines.append(f"A trial whose files are damaged starts anew when {what} removed.")
    return "\n".join([*lines, f"go on with: {studied.onwards}"])


def _is_damage(trial: str, message: str) -> bool:
    """Whether a trial failed because of a file in its run folder, and not because it could not write one."""
    return f"runs/{trial}" in message and "cannot write" not in message
