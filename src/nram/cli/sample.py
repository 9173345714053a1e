"""`nram sample`: instances of a task, with their answers."""

import argparse

from nram.cli.arguments import natural, positive
from nram.cli.output import print_json
from nram.extensions import get_task


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Draw instances of a task: input memory and expected output."
    parser.add_argument(
        "task", metavar="TASK", help="a name that 'nram tasks' lists, or a file (.py) with a task of one's own"
    )
    parser.add_argument(
        "--complexity", type=positive, metavar="N", help="default: the task's smallest or 5, the larger"
    )
    parser.add_argument("--count", type=natural, default=1, metavar="K", help="default: 1")
    parser.add_argument("--seed", type=natural, default=0, metavar="S", help="default: 0")
    parser.add_argument("--memory-size", type=positive, metavar="M", help="default: the least that N needs")


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
