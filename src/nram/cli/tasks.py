"""`nram tasks`: what can be learned."""

from __future__ import annotations

import argparse
import sys

from nram.cli.output import print_json, table
from nram.extensions.tasks import REGISTRY, get_task
from nram.tasks import Task


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "List the tasks: what each asks for and how its memory is laid out. Those of installed packages "
        "are among them; a file with a task of one's own (.py) is checked and shown."
    )
    parser.add_argument("tasks", nargs="*", metavar="TASK", help="only these, by name or file (default: all by name)")


def run(arguments: argparse.Namespace) -> int:
    tasks, problems = [get_task(name) for name in arguments.tasks], []
    if not arguments.tasks:
        tasks, problems = REGISTRY.load_all()
    for problem in problems:
        print(f"nram tasks: {problem}", file=sys.stderr)
    status = 1 if problems else 0
    if arguments.json:
        print_json(
            [
                {
                    "name": task.name,
                    "summary": task.summary,
                    "layout": task.layout,
                    "min_complexity": task.min_complexity,
                    "trained_up_to": task.trained_up_to,
                    "step_limit": {
                        "per_item": task.step_limit.per_item,
                        "constant": task.step_limit.constant,
                    },
                    "least_memory": task.least_memory(task.trained_up_to),
                }
                for task in tasks
            ]
        )
        return status
    rows = [["task", "n", "T(n)", "what is asked for"]]
    for task in tasks:
        limit = task.step_limit
        steps = f"{limit.per_item}n+{limit.constant}" if limit.per_item > 1 else f"n+{limit.constant}"
        rows.append(
            [
                task.name,
                f"{task.min_complexity}..{task.trained_up_to}",
                steps if limit.per_item else str(limit.constant),
                task.summary,
            ]
        )
    print(table(rows))
    if arguments.tasks:
        print()
        for task in tasks:
            print(f"{task.name}: {task.layout}")
            print(f"  {_parts_in_words(task)}")
        return status
    print("\nn: complexities of training; T(n): default step limit. --json also gives the memory layouts.")
    return status


def _parts_in_words(task: Task) -> str:
    """What of the optional parts a task has, and what follows from it."""
    parts = (
        ("legal_inputs", task.legal_inputs, "small sizes can be verified by all their inputs"),
        ("symbolic", task.symbolic, "programs can be proven for all values at once"),
        ("sample_traced", task.sample_traced, "training draws its batches in compiled code"),
    )
    present = [f"{name}: {use}" for name, part, use in parts if part is not None]
    missing = [name for name, part, _ in parts if part is None]
    return "; ".join(present + ([f"without {', '.join(missing)}"] if missing else []))
