"""`nram tasks`: list the tasks."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from nram.cli.output import note, print_json, table
from nram.extensions.tasks import REGISTRY
from nram.tasks import Task


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "List the tasks of nram and of installed packages: what each asks for, and the layout of its memory. "
        "Check and show the task that a Python file defines."
    )
    parser.add_argument("tasks", nargs="*", metavar="TASK", help="only these, by name or file (default: all by name)")


def run(arguments: argparse.Namespace) -> int:
    tasks, problems = REGISTRY.load(arguments.tasks)
    for problem in problems:
        note(f"nram tasks: {problem}")
    if arguments.json:
        print_json([_to_json(task) for task in tasks])
        return 1 if problems else 0
    rows = [["task", "n", "T(n)", "what is asked for"]]
    for task in tasks:
        rows.append([task.name, f"{task.min_complexity}..{task.trained_up_to}", str(task.step_limit), task.summary])
    print(table(rows))
    print()
    for task in tasks if arguments.tasks else ():
        print(f"{task.name}: {task.layout}\n  {_parts_in_words(task)}")
    if not arguments.tasks:
        print("n: complexities of training; T(n): default step limit. --json also gives the memory layouts.")
    return 1 if problems else 0


def _to_json(task: Task) -> dict[str, Any]:
    value = {name: getattr(task, name) for name in ("name", "summary", "layout", "min_complexity", "trained_up_to")}
    return value | {
        "step_limit": asdict(task.step_limit),
        "least_memory": task.least_memory(task.trained_up_to),
    }


def _parts_in_words(task: Task) -> str:
    """Which optional parts a task has, and what they make possible."""
    parts = (
        ("legal_inputs", task.legal_inputs, "verification can run all inputs of small sizes"),
        ("symbolic", task.symbolic, "programs can be proven for all values at once"),
        ("sample_traced", task.sample_traced, "training draws its batches in compiled code"),
    )
    present = [f"{name}: {use}" for name, part, use in parts if part is not None]
    missing = [name for name, part, _ in parts if part is None]
    return "; ".join(present + ([f"without {', '.join(missing)}"] if missing else []))
