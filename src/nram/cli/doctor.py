"""`nram doctor`: what became of a training run, why, and what to try next."""

from __future__ import annotations

import argparse
import textwrap
from dataclasses import asdict
from typing import Any

from nram.cli.output import print_json, table, terminal_width
from nram.cli.run_argument import add_run_folder, open_run
from nram.messages import visible
from nram.training.diagnosis import Diagnosis, cure_lines, diagnose, duration

FIRST_CURES = 3  # at the end of other verbs
LEGEND = (
    "(level: the highest; error: the least on training batches; {columns}: members solved at a time, at most; "
    "best: what the best member solves of the validation set, hard)"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Read the folder of a training run that is finished, running or stopped, and explain it: how far it got, "
        "whether it was still getting better, what probably went wrong, and what to try next, as commands. It trains "
        "and evaluates nothing; after 'nram eval RUN' it knows more."
    )
    parser.epilog = "The exit status is 0 if the run could be read, whether it learned its task or not."
    add_run_folder(parser)


def run(arguments: argparse.Namespace) -> int:
    found = diagnose(open_run(arguments.path, arguments))
    if arguments.json:
        print_json(asdict(found))
    else:
        _print(found)
    return 0


def _print(found: Diagnosis) -> None:
    print_wrapped(f"{found.task}, seed {found.seed}, in {found.run}: {found.machine}")
    print_wrapped(found.verdict)
    if found.stages:
        print(f"\n{table(_rows(found))}")
        print_wrapped(LEGEND.format(columns="hard" if found.learned else "soft, hard"))
        print()
    for fact in found.facts:
        print_wrapped(fact)
    if found.cures:
        print()
    print_advice(found)
    print(f"\nNext: {found.next}")


def _rows(found: Diagnosis) -> list[list[str]]:
    """A row for each stage. A run with a perfect member has no column for soft: it can end before that is counted."""
    soft = [] if found.learned else ["soft"]
    rows = [["stage", "n", "members", "steps", "time", "level", "error", *soft, "hard", "best"]]
    for one in found.stages:
        shares = (
            [one.solved_hard, one.best_hard] if found.learned else [one.solved_soft, one.solved_hard, one.best_hard]
        )
        early = " early" if one.ended and one.steps < one.stage_steps else ""
        rows.append(
            [
                str(one.stage),
                f"<= {one.max_complexity}",
                str(one.population),
                f"{one.steps}/{one.stage_steps}{early}",
                duration(one.seconds),
                f"{one.highest_level}/{one.max_complexity}",
                f"{one.best_error:.3f}",
                *("-" if share is None else f"{share:.0%}" for share in shares),
            ]
        )
    return rows


def print_advice(found: Diagnosis, most: int | None = None) -> None:
    """What probably went wrong and the first cures."""
    if found.explanation is not None:
        print_wrapped(f"What happened: {found.explanation}")
    if found.cures:
        print("What may help, the most likely first:")
        print(visible("\n".join(cure_lines(found.cures[:most]))))


def advice_json(found: Diagnosis) -> dict[str, Any]:
    """The same for JSON."""
    return {"cause": found.cause, "explanation": found.explanation, "cures": asdict(found)["cures"]}


def print_wrapped(text: str) -> None:
    """Print a text in lines that fit the terminal."""
    print(textwrap.fill(visible(text), terminal_width(), break_long_words=False, break_on_hyphens=False))
