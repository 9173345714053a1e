"""`nram doctor`: what became of a training run, why, and what to try next."""

from __future__ import annotations

import argparse
import textwrap
from dataclasses import asdict
from typing import Any

from nram.cli.output import print_json, table, terminal_width
from nram.cli.run_argument import add_run_folder, open_run
from nram.messages import visible
from nram.training.cures import cure_lines
from nram.training.diagnosis import Diagnosis, StageSummary, diagnose
from nram.training.history import duration

FIRST_CURES = 3  # at the end of other verbs
LEGEND = {
    "restarts": "islands that restarted",
    "level": "the highest",
    "error": "the least on training batches",
    "soft": "members solved at a time, at most",
    "hard": "members solved at a time, at most, as programs",
    "best": "what the best member solves of the validation set, as a program",
}
"""What columns of the table mean."""


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
        rows = _rows(found)
        print(f"\n{table(rows)}")
        print_wrapped(f"({'; '.join(f'{name}: {words}' for name, words in LEGEND.items() if name in rows[0])})")
        print()
    for fact in found.facts:
        print_wrapped(fact)
    if found.cures:
        print()
    print_advice(found)
    print(f"\nNext: {found.next}")


def _rows(found: Diagnosis) -> list[list[str]]:
    """A row for each stage. Columns that say nothing about this run are left out."""
    grouped = any(one.group_name is not None for one in found.stages)
    # A run with a perfect member can end before the soft ones are counted, and groups have no curriculum.
    left_out = {"level", "soft", "stage", "members"} if grouped else {"group", "restarts"}
    left_out |= {"soft"} if found.learned else set()
    rows = [_cells(one) for one in found.stages]
    names = [name for name in rows[0] if name not in left_out]
    return [names, *([row[name] for name in names] for row in rows)]


def _cells(one: StageSummary) -> dict[str, str]:
    early = " early" if one.ended and one.steps < one.stage_steps else ""
    tries = f", try {one.attempts}" if one.attempts > 1 else ""
    shares = {"soft": one.solved_soft, "hard": one.solved_hard, "best": one.best_hard}
    return {
        "group": one.group_name or "",
        "stage": str(one.stage),
        "n": f"<= {one.max_complexity}",
        "members": str(one.population),
        "steps": f"{one.steps}/{one.stage_steps}{early}{tries}",
        "time": duration(one.seconds),
        "restarts": str(one.restarts),
        "level": f"{one.highest_level}/{one.max_complexity}",
        "error": f"{one.best_error:.3f}",
        **{name: "-" if share is None else f"{share:.0%}" for name, share in shares.items()},
    }


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
