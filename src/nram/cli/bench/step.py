"""`nram bench step`: how fast is the training step?"""

import argparse
from typing import get_args

from nram.bench.shape import StepShape
from nram.cli.arguments import add_device, positive
from nram.cli.output import print_json, table
from nram.errors import UsageError
from nram.extensions import get_task
from nram.kinds import ControllerKind
from nram.runtime import device_name, prepare_devices

SIZES = {
    "memory_size": ("M", "cells"),
    "registers": ("R", "number of registers"),
    "steps": ("T", "timesteps of an episode"),
    "repeats": ("K", "repetitions of the 14 modules"),
    "states": ("S", "states of the automaton"),
    "hidden": ("H", "width of the controller's layers"),
    "batch": ("B", "examples of a member"),
    "population": ("P", "members"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Example-steps a second (one example through one timestep), forward alone and in training, of the plain step, "
        "of the kernel (fast) and, in the same run, of the frozen reference step of benchmarks/ (MLP controllers, in "
        "a checkout). Pin it to one core (taskset -c 0) to compare them on one core: a population uses all cores."
    )
    default = StepShape()
    parser.add_argument(
        "--task", default=default.task, metavar="TASK", help="draw its instances (default: %(default)s)"
    )
    parser.add_argument(
        "--controller",
        choices=get_args(ControllerKind),
        default=default.controller,
        help="kind of controller (default: %(default)s)",
    )
    for name, (letter, meaning) in SIZES.items():
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            type=positive,
            default=getattr(default, name),
            metavar=letter,
            help=f"{meaning} (default: %(default)s)",
        )
    parser.add_argument("--seconds", type=positive, default=3, help="of each measurement (default: %(default)s)")
    add_device(parser)


def run(arguments: argparse.Namespace) -> int:
    shape = StepShape(**{name: getattr(arguments, name) for name in StepShape._fields})
    task = get_task(shape.task)
    if task.largest_complexity(shape.memory_size) < task.min_complexity:
        least = task.least_memory(task.min_complexity)
        raise UsageError(f"--memory-size {shape.memory_size} is too small for {task.name}: use {least} or more")
    devices = prepare_devices(arguments.device)
    from nram.bench.step import measure  # imports JAX

    rates = measure(shape, devices, arguments.seconds)
    result = {"configuration": shape._asdict(), "device": device_name(devices), **rates}
    if arguments.json:
        print_json(result)
        return 0
    print(", ".join(f"{name} {value}" for name, value in shape._asdict().items()) + f" on {result['device']}\n")
    rows = [["example-steps a second", "forward", "training", "training, x reference"]]
    base = rates["reference"] and rates["reference"]["train_example_steps_per_s"]
    for name in ("reference", "plain", "fast"):
        rate = rates[name]
        if rate is None:
            rows.append([name, "-", "-", "-"])
            continue
        forward, train = rate["forward_example_steps_per_s"], rate["train_example_steps_per_s"]
        rows.append([name, f"{forward:.0f}", f"{train:.0f}", f"{train / base:.2f}" if base else "-"])
    print(table(rows))
    if rates["why_plain"]:
        print(f"\nno kernel: {rates['why_plain']}")
    return 0
