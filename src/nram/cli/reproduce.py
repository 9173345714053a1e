"""`nram reproduce`: the paper's Table 1 with our columns beside its own, and its figure of generalisation."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from nram.cli.arguments import add_device, jax_seed, positive
from nram.cli.interruption import interruptible
from nram.cli.output import print_json
from nram.errors import UsageError

if TYPE_CHECKING:
    from nram.programs.ir import Origin
    from nram.reproduction.models import Model
    from nram.reproduction.report import Reproduction
    from nram.tasks.base import Task

ORIGINS: tuple[Origin, ...] = ("trained", "repaired", "searched", "written")
PLAIN_SECONDS = 5  # between two lines in a pipe


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Measure the zoo's trained networks and programs on unseen instances and set the figures beside "
        "those of the paper's Table 1; draw error against maximal complexity. Writes table.md, table.json and "
        "generalisation.svg into DIR. With --train, a task is trained from scratch by its recipe first, and the "
        "best member of that run is examined instead of the zoo's."
    )
    parser.epilog = (
        "The full examination takes about 40 seconds for each trained network on two CPU cores, most of them to "
        "compile, and about 10 seconds when that was done before; a network that does not halt by itself is run for "
        "all 20n+200 steps and takes one or two minutes more. --count 1000 and --at 20 are ways to look sooner."
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
        help="train this task first, in DIR/runs/TASK-S; goes on with what is there; may be repeated",
    )
    parser.add_argument(
        "--seed", type=jax_seed, default=0, metavar="S", help="of the instances, and of --train's runs (default: 0)"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("runs/reproduction"), metavar="DIR", help="default: %(default)s"
    )
    add_device(parser)


def run(arguments: argparse.Namespace) -> int:
    from nram.reproduction.examining import Plan, examine_all
    from nram.reproduction.paper import TABLE
    from nram.tasks import get_task

    names = list(dict.fromkeys([*arguments.tasks, *arguments.train])) or list(TABLE)
    origins: tuple[Origin, ...] = tuple(
        origin for origin in ORIGINS if not arguments.origin or origin in arguments.origin
    )
    strange = [name for name in names if name not in TABLE]
    if strange:
        raise UsageError(f"{', '.join(strange)}: not in the paper's Table 1, which has {', '.join(TABLE)}")
    if arguments.train and "trained" not in origins:
        raise UsageError(
            f"--train and --origin {' '.join(origins)} leave nothing of the training: add --origin trained"
        )
    plan = Plan(arguments.count, arguments.at, arguments.seed)
    tasks = [get_task(name) for name in TABLE if name in names]
    for task in tasks:
        plan.check(task)
    _make_folder(arguments.out)

    from nram.runtime import prepare_devices

    began = time.monotonic()
    devices = prepare_devices(arguments.device)
    models = [(task, _models(arguments, devices, task, origins)) for task in tasks]
    with _Progress() as progress:
        rows = examine_all(models, plan, devices, progress)

    from nram.reproduction.report import Reproduction, to_json

    table = Reproduction(plan, tuple(rows), origins)
    files = _write(table, arguments.out)
    print(f"{time.monotonic() - began:.0f} s in all", file=sys.stderr)
    if arguments.json:
        print_json({**to_json(table), "files": [str(file) for file in files]})
    else:
        _show(table)
        print("\n" + "\n".join(map(str, files)))
    return 0


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise UsageError(f"{path} is a file: choose another --out") from None
    except NotADirectoryError:
        raise UsageError(f"{path} lies below a file: choose another --out") from None


def _models(arguments, devices, task: Task, origins) -> list[Model]:
    from nram.reproduction.models import run_model, zoo_models

    if task.name not in arguments.train:
        return zoo_models(task, origins)
    folder = _train(arguments, devices, task.name)
    trained = run_model(task, folder, on_note=lambda text: print(f"{task.name}: {text}", file=sys.stderr))
    return [trained, *zoo_models(task, [origin for origin in origins if origin != "trained"])]


def _train(arguments, devices, task: str):
    """What `nram train TASK --seed S --out DIR/runs/TASK-S --resume` does."""
    from nram.cli.progress import progress_display
    from nram.runtime import device_name
    from nram.training.footprint import check_fits
    from nram.training.run_folder import RunFolder
    from nram.training.settings import load_config
    from nram.training.trainer import train

    config = load_config(task, seed=arguments.seed)
    path = arguments.out / "runs" / f"{task}-{arguments.seed}"
    folder = RunFolder(path)
    if folder.exists:
        folder = RunFolder.open(path)
        folder.require_same(config)
        if folder.result is not None:
            print(f"{path} is finished already.", file=sys.stderr)
            return folder
    check_fits(config, devices)
    if folder.exists:
        for difference in folder.differences(device_name(devices)):
            print(f"nram reproduce: {difference}: the result may differ from an uninterrupted run's", file=sys.stderr)
    else:
        words = ["train", task, "--seed", str(arguments.seed)]
        folder = RunFolder.create(path, config, words, device_name(devices))
    with folder.locked(), progress_display(config, path, devices) as display, interruptible() as stopping:
        train(folder, config, devices, on_report=display.report, on_note=display.note, stopping=stopping)
    return folder


def _write(table: Reproduction, out: Path) -> list[Path]:
    import json

    from nram.files import write_atomically
    from nram.reproduction.figure import draw_generalisation
    from nram.reproduction.report import to_json, to_markdown

    files = [out / name for name in ("table.md", "table.json", "generalisation.svg")]
    write_atomically(files[0], to_markdown(table, files[2].name).encode())
    write_atomically(files[1], (json.dumps(to_json(table), indent=2) + "\n").encode())
    draw_generalisation(table, files[2])
    return files


def _show(table: Reproduction) -> None:
    from rich.console import Console

    from nram.reproduction.report import curve_cells, legend, line_cells, trained_ones

    console = Console(highlight=False, width=None if sys.stdout.isatty() else 140)
    console.print(f"Table 1 of the paper, and ours; generalisation at n = {table.plan.at}", style="bold")
    console.print(_grid(line_cells(table)))
    for line in legend(table):
        console.print(line, style="dim", markup=False)
    if trained_ones(table.rows):
        console.print("\nGeneralisation: error at T(n), complexities uniform up to n", style="bold")
        console.print(_grid(curve_cells(table)))


def _grid(rows: list[list[str]]):
    """A table; where the first column is filled, a new task begins."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    grid = Table(*rows[0], box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows[1:]:
        grid.add_row(*map(Text, row), style="dim" if row[1] == "paper" else None)
    return grid


class _Progress:
    """Jobs done and what is being done: one line on a terminal, now and then a line in a pipe."""

    def __enter__(self):
        self.live, self.last = sys.stderr.isatty(), 0.0
        return self

    def __call__(self, done: int, total: int, what: str) -> None:
        if self.live:
            print(f"\r\033[K[{done}/{total}] {what}", end="", file=sys.stderr, flush=True)
        elif done == total or (time.monotonic() - self.last >= PLAIN_SECONDS):
            self.last = time.monotonic()
            print(f"[{done}/{total}] {what}", file=sys.stderr, flush=True)

    def __exit__(self, *exception):
        if self.live:
            print("\r\033[K", end="", file=sys.stderr)
