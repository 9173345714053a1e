"""`nram sample`: draw instances of a task, with their answers."""

import argparse

from nram.cli.arguments import natural, positive
from nram.cli.output import print_json
from nram.extensions import get_task


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Draw random instances of a task. Show their input memory and the expected output."
    parser.add_argument(
        "task", metavar="TASK", help="a name that 'nram tasks' lists, or the file (.py) of a user-defined task"
    )
    parser.add_argument(
        "--complexity", type=positive, metavar="N", help="default: 5, or the task's smallest if that is larger"
    )
    parser.add_argument("--count", type=natural, default=1, metavar="K", help="number of instances (default: 1)")
    parser.add_argument("--seed", type=natural, default=0, metavar="S", help="seed of the instances (default: 0)")
    parser.add_argument(
        "--memory-size", type=positive, metavar="M", help="memory cells (default: the least that N needs)"
    )


def run(arguments: argparse.Namespace) -> int:
    task = get_task(arguments.task)
    complexity = max(5, task.min_complexity) if arguments.complexity is None else arguments.complexity
    instances = task.sample(complexity, arguments.count, arguments.seed, arguments.memory_size)
    if arguments.json:
        print_json([instance.as_dict() for instance in instances])
        return 0
    print(f"{task.name}: {task.layout}")
    for instance in instances:
        wide = len(str(len(instance.input) - 1))
        asked = set(instance.cells)
        marks = [("^" if cell in asked else " ") * wide for cell in range(len(instance.input))]
        print()
        print("input   " + " ".join(f"{value:{wide}}" for value in instance.input))
        print("output  " + " ".join(f"{value:{wide}}" for value in instance.output))
        print(("        " + " ".join(marks)).rstrip() + f"  within {instance.steps} steps")
    return 0
