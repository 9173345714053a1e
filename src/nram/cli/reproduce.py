"""`nram reproduce`: the paper's Table 1 with our columns beside its own, and its figure of generalisation."""

import argparse
import sys
import time
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from nram.cli.arguments import add_device, jax_seed, positive
from nram.cli.output import PLAIN_SECONDS, ProgressLine, note, print_json
from nram.process import interruptible
from nram.programs.ir import ORIGINS, Origin
from nram.reproduction.examining import Plan
from nram.reproduction.job import ReproductionJob
from nram.reproduction.report import Reproduction, curve_cells, legend, line_cells, to_json
from nram.training.display import TrainingDisplay


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Measure the zoo's trained networks and programs on unseen instances and set the figures beside "
        "those of the paper's Table 1; draw error against maximal complexity. Writes table.md, table.json and "
        "generalisation.svg into DIR. With --train, a task is trained from scratch first, and the "
        "best member of that run is examined instead of the zoo's."
    )
    parser.epilog = (
        "The full examination of ten networks takes some minutes on two CPU cores. --count 1000 and --at 20 give a "
        "quicker look."
    )
    parser.add_argument("tasks", nargs="*", metavar="TASK", help="default: the paper's ten, or those of --train")
    parser.add_argument(
        "--count",
        type=positive,
        default=10_000,
        metavar="K",
        help="instances at the trained complexity; a tenth of them at --at and for each point of the figure "
        "(default: 10000, the full examination)",
    )
    parser.add_argument(
        "--at", type=positive, default=50, metavar="N", help="the complexity of generalisation (default: 50)"
    )
    parser.add_argument(
        "--origin", action="append", choices=ORIGINS, help="only programs of this origin; may be repeated"
    )
    parser.add_argument(
        "--train",
        action="append",
        default=[],
        metavar="TASK",
        help="train this task first, in DIR/runs/TASK-S, or continue its run there; may be repeated",
    )
    parser.add_argument(
        "--seed", type=jax_seed, default=0, metavar="S", help="of the instances, and of --train's runs (default: 0)"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("runs/reproduction"), metavar="DIR", help="default: %(default)s"
    )
    add_device(parser)


def run(arguments: argparse.Namespace) -> int:
    origins: tuple[Origin, ...] = tuple(
        origin for origin in ORIGINS if not arguments.origin or origin in arguments.origin
    )
    plan = Plan(arguments.count, arguments.at, arguments.seed)
    job = ReproductionJob(arguments.tasks, arguments.train, origins, plan, arguments.out, arguments.device)
    began = time.monotonic()
    display = TrainingDisplay("nram reproduce")
    with interruptible() as stopping:
        job.run_training(display, stopping)
    with ProgressLine(PLAIN_SECONDS) as line:
        table, files = job.run(line.show_count, display.note)
    note(f"{time.monotonic() - began:.0f} s in all")
    if arguments.json:
        print_json({**to_json(table), "files": [str(file) for file in files]})
    else:
        _show(table)
        print("\n" + "\n".join(map(str, files)))
    return 0


def _show(table: Reproduction) -> None:
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 140)
    console.print(f"Table 1 of the paper, and ours; generalisation at n = {table.plan.at}", style="bold")
    console.print(_grid(line_cells(table)))
    for line in legend(table):
        console.print(line, style="dim", markup=False)
    if table.trained:
        console.print("\nGeneralisation: error at T(n), complexities uniform up to n", style="bold")
        console.print(_grid(curve_cells(table)))


def _grid(rows: list[list[str]]):
    """A table for the terminal, with the paper's lines dimmed."""
    grid = Table(*rows[0], box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows[1:]:
        grid.add_row(*map(Text, row), style="dim" if row[1] == "paper" else None)
    return grid
