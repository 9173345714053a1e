"""`nram eval`: how good is what a run has learned?"""

import argparse
import sys
from pathlib import Path

from nram.cli.arguments import add_device, jax_seed, natural, positive
from nram.cli.output import print_json, table

CURVE = (10, 20, 30, 40, 50)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Error and exact match of a trained member on unseen instances, as the continuous machine (soft) "
        "and as a discrete program (hard), at the trained complexity under three step limits, and on the "
        "curve up to n = 50. Writes eval.json and eval.png (eval-K for another member) into the run's folder."
    )
    parser.add_argument("path", type=Path, metavar="RUN", help="the folder that 'nram train' wrote, as runs/copy-0")
    parser.add_argument(
        "--member", type=natural, default=0, metavar="K", help="which of the best (default: 0, the best)"
    )
    parser.add_argument(
        "--count", type=positive, default=1000, metavar="K", help="instances per figure (default: 1000)"
    )
    parser.add_argument("--seed", type=jax_seed, default=0, metavar="S", help="of the test instances (default: 0)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="default: RUN/eval.png; .svg and .pdf work too")
    parser.add_argument(
        "--solve",
        type=positive,
        metavar="N",
        help="only show the discrete program solving one instance of complexity N",
    )
    add_device(parser)


def run(arguments: argparse.Namespace) -> int:
    from nram.extensions import get_task
    from nram.training.run_folder import RunFolder

    folder = RunFolder.open(arguments.path)
    folder.member_file(arguments.member)  # a refusal need not wait for JAX
    if arguments.solve is not None:
        get_task(folder.config.task).check_complexity(arguments.solve)
    from nram.runtime import prepare_devices

    prepare_devices(arguments.device)
    controller, _ = folder.load_member(arguments.member)
    if arguments.solve is not None:
        return _solve(arguments, folder.config, controller)
    return _judge(arguments, folder, controller)


def _judge(arguments, folder, controller) -> int:
    import json

    from nram.files import write_atomically
    from nram.training.report import evaluation_report

    def progress(done: int, total: int, what: str) -> None:
        end = "\n" if not sys.stderr.isatty() else "\033[K\r"
        print(f"[{done}/{total}] {what}", end=end, file=sys.stderr, flush=True)

    report = evaluation_report(
        folder.config, controller, count=arguments.count, seed=arguments.seed, curve=CURVE, progress=progress
    )
    if sys.stderr.isatty():
        print("\033[K", end="", file=sys.stderr)
    report = {"run": str(folder.path), "member": arguments.member, **report}

    from nram.pictures.curves import plot_run, read_metrics

    name = "eval" if arguments.member == 0 else f"eval-{arguments.member}"
    plot = arguments.plot or folder.path / f"{name}.png"
    write_atomically(folder.path / f"{name}.json", (json.dumps(report, indent=2) + "\n").encode())
    plot_run(report, read_metrics(folder.metrics), plot)
    if arguments.json:
        print_json({**report, "plot": str(plot)})
        return 0
    print(
        f"{report['task']}, member {arguments.member} of {folder.path}, {arguments.count} unseen instances a figure\n"
    )
    rows = [["", "n", "step limit", "error", "exact"]]
    for row in report["perfection"]:
        figures = [f"{row['error']:.4f}", f"{row['exact']:.2%}"]
        rows.append([row["mode"], f"<= {row['max_complexity']}", row["limit"], *figures])
    print(table(rows))
    print(
        "\nperfect at the trained complexity: "
        + ", ".join(f"{mode} {'yes' if report['perfect'][mode] else 'no'}" for mode in ("soft", "hard"))
        + f"; hard at n = {report['far']}: {'yes' if report['perfect']['far'] else 'no'}\n"
    )
    rows = [["n up to", "soft error", "soft exact", "hard error", "hard exact"]]
    for point in report["curve"]:
        soft, hard = point["soft"], point["hard"]
        rows.append(
            [str(point["max_complexity"])]
            + [f"{soft['error']:.4f}", f"{soft['exact']:.2%}", f"{hard['error']:.4f}", f"{hard['exact']:.2%}"]
        )
    print(table(rows))
    print(f"\ncurve: {plot}")
    return 0


def _solve(arguments, config, controller) -> int:
    import jax.numpy as jnp

    from nram.extensions import get_task
    from nram.limits import wrong_cells
    from nram.machine import run_hard
    from nram.training.member import wiring_of

    task = get_task(config.task)
    instance = task.sample(arguments.solve, 1, arguments.seed)[0]
    limit = task.step_limit.longest(arguments.solve)
    result = run_hard(controller, wiring_of(config.machine), jnp.array(instance.input), limit)
    memory = [int(value) for value in result.memory]
    right = not wrong_cells(memory, instance)
    if arguments.json:
        print_json(
            {
                "task": task.name,
                "input": instance.input,
                "memory": memory,
                "expected": instance.output,
                "cells": instance.cells,
                "right": right,
                "steps": int(result.steps),
                "halted": bool(result.halted),
            }
        )
        return 0 if right else 1
    print(f"{task.name}: {task.layout}\n")
    for name, cells in (("input", instance.input), ("output", memory)):
        print(name)
        _print_cells(cells, instance.cells)
    ending = "halted by itself" if result.halted else f"did not halt within {limit} steps"
    print(f"{'right' if right else 'WRONG'}: {len(instance.cells)} output cells, {int(result.steps)} steps, {ending}")
    return 0 if right else 1


def _print_cells(memory: list[int], marked: list[int], columns: int = 20) -> None:
    """The memory in rows; output cells in brackets."""
    width = len(str(len(memory)))
    inside = set(marked)
    for start in range(0, len(memory), columns):
        cells = range(start, min(start + columns, len(memory)))
        words = [f"[{memory[c]:{width}}]" if c in inside else f" {memory[c]:{width}} " for c in cells]
        print(f"  {start:4}: {''.join(words)}")
