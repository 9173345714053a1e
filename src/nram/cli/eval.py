"""`nram eval`: how good is a trained member of a run?"""

import argparse
import json
from pathlib import Path
from typing import Any

from nram.cli.arguments import add_device, add_theme, jax_seed, positive
from nram.cli.doctor import FIRST_CURES, print_advice
from nram.cli.output import ProgressLine, note, print_json
from nram.cli.run_argument import add_run, file_options, open_run
from nram.errors import UsageError
from nram.extensions import known_task
from nram.extras import missing, require
from nram.files import check_destination, write_result
from nram.messages import command
from nram.runtime import prepare_devices
from nram.tasks.base import Task
from nram.training.diagnosis import diagnose
from nram.training.evaluated import CURVE, Evaluation


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Error and exact match of a trained member on unseen instances, as the continuous machine (soft) "
        "and as a discrete program (hard), at the trained complexity under three step limits, and on the "
        "curve up to n = 50. Writes eval.json and eval.png (eval-K for another member) into the run's folder, "
        "if it can."
    )
    add_run(parser)
    parser.add_argument(
        "--count", type=positive, default=1000, metavar="K", help="instances per figure (default: 1000)"
    )
    parser.add_argument("--seed", type=jax_seed, default=0, metavar="S", help="of the test instances (default: 0)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="default: RUN/eval.png; .svg and .pdf work too")
    add_theme(parser)
    parser.add_argument(
        "--solve",
        type=positive,
        metavar="N",
        help="only show the discrete program solving one instance of complexity N",
    )
    add_device(parser)


def run(arguments: argparse.Namespace) -> int:
    folder = open_run(arguments.path, arguments)
    require("train", "an evaluation")
    task = known_task(folder.config.task)
    name = "eval" if arguments.member == 0 else f"eval-{arguments.member}"
    figures = folder.path / f"{name}.json"
    saves = arguments.solve is None and _can_save(figures)
    plot = arguments.plot or (folder.path / f"{name}.png" if saves else None)
    if arguments.plot is not None:
        require("plots", "--plot")
    elif plot is not None and (library := missing("plots")):
        note(f"nram eval: no plot: it needs {library}")
        plot = None
    if arguments.solve is not None:
        task.check_complexity(arguments.solve)
    elif plot is not None:
        check_destination(plot, "--plot")
    prepare_devices(arguments.device)
    config, controller, _ = folder.load_member(arguments.member)
    from nram.training import report

    if arguments.solve is not None:
        return _show_solved(arguments, task, report.solve(config, controller, arguments.solve, arguments.seed))
    with ProgressLine() as line:
        found = report.evaluation_report(
            config, controller, count=arguments.count, seed=arguments.seed, curve=CURVE, progress=line.show_count
        )
    found = {"run": str(folder.path), "member": arguments.member, **found}
    if saves:
        write_result(figures, (json.dumps(found, indent=2) + "\n").encode())
    if plot is not None:
        from nram.pictures.curves import plot_run  # matplotlib

        plot_run(found, folder.read_metrics(), plot, arguments.theme)
    if arguments.json:
        print_json({**found, "plot": plot and str(plot)})
    else:
        print(Evaluation(found))
        if plot is not None:
            print(f"\ncurve: {plot}")
        if not all(found["perfect"].values()):
            print()
            print_advice(diagnose(folder), FIRST_CURES)
            print(f"More: {command('doctor', folder.path, **file_options(folder.config))}")
    return 0


def _can_save(figures: Path) -> bool:
    """Whether the run's folder can take the figures. Otherwise they are only printed: evaluating a run reads it."""
    try:
        check_destination(figures)
        return True
    except UsageError:
        note(f"nram eval: {figures} cannot be written; the figures are only printed")
        return False


def _show_solved(arguments: argparse.Namespace, task: Task, solved: dict[str, Any]) -> int:
    if arguments.json:
        print_json(solved)
    else:
        print(f"{task.name}: {task.layout}\n")
        for title, cells in (("input", solved["input"]), ("output", solved["memory"])):
            print(title)
            _print_cells(cells, solved["cells"])
        ending = "halted by itself" if solved["halted"] else f"did not halt within {solved['steps']} steps"
        verdict = "right" if solved["right"] else "WRONG"
        print(f"{verdict}: {len(solved['cells'])} output cells, {solved['steps']} steps, {ending}")
    return 0 if solved["right"] else 1


def _print_cells(memory: list[int], marked: list[int], columns: int = 20) -> None:
    """Print the memory in rows, with the output cells in brackets."""
    width = len(str(len(memory)))
    inside = set(marked)
    for start in range(0, len(memory), columns):
        cells = range(start, min(start + columns, len(memory)))
        words = [f"[{memory[c]:{width}}]" if c in inside else f" {memory[c]:{width}} " for c in cells]
        print(f"  {start:4}: {''.join(words)}")
