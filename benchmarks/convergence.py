"""How often members succeed that train alone, and what became of the first-ranked members of whole runs.

    python benchmarks/convergence.py first runs/copy-*          # the first-ranked member of each, up to n = 50
    python benchmarks/convergence.py draw runs/listk-0          # the winner's settings, as --set words
    python benchmarks/convergence.py members listk              # 128 members of every group's first stage, no culling

`nram sweep` says how often whole runs succeed. Starting members have the structure that the seed draws for their
group. One counts as soft if it makes no error on fresh examples of the stage. It counts as hard if it makes no error
as a discrete machine on the validation set, which goes up to twice the size and, half of the time, to twice the steps.
Intervals are Wilson's, 95%.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nram.cluster.table import share

if TYPE_CHECKING:
    from nram.training.config import TrainConfig

FITS = 4


def first_member(folder: str) -> dict[str, Any]:
    """How the first-ranked member of a run does: at the size of training and up to n = 50, soft and hard, at T(n)."""
    run = Path(folder)
    record, began = json.loads((run / "run.json").read_text()), time.monotonic()
    words = [sys.executable, "-m", "nram", "eval", folder, "--count", "1000", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "JAX_PLATFORMS": "cpu"})
    if not done.stdout.strip():
        sys.exit(f"{folder}: {done.stderr[-500:]}")
    report = json.loads(done.stdout)
    curve = {point["max_complexity"]: point for point in report["curve"]}
    places = {"trained": curve[report["trained_up_to"]], "far": curve[report["far"]]}
    errors = {f"{mode}_{name}": one[mode]["error"] for name, one in places.items() for mode in ("soft", "hard")}
    alone = next(one for one in report["perfection"] if one["mode"] == "hard" and one["limit"] == "T")
    return {
        "subject": report["task"],
        "seed": record["config"]["seed"],
        "command": " ".join(["nram", *record["arguments"]]),
        "versions": record["versions"],
        "device": record["device"],
        "instances": report["instances"],
        "seconds": round(time.monotonic() - began, 1),
        "errors": errors,
        "halts": alone["halted"] == 1.0,
        "perfect": report["perfect"],
    }


def drawn(folder: str, rank: int) -> str:
    """The settings that a member of a run drew, as words for `--set`: all else equal, seeds alone then differ."""
    from nram.training.run_folder import RunFolder

    config, _, description = RunFolder.open(Path(folder)).load_member(rank)
    machine = config.machine
    settings = {name: getattr(machine, name) for name in ("registers", "repeats", "hidden", "controller")}
    unset = ("steps_per_item", "steps_constant")
    settings |= {name: value for name, value in description["hyper"].items() if name not in unset}
    return " ".join(f"--set {name}={value}" for name, value in settings.items())


def starting_members(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row for each group of the recipe, or for the one that was chosen."""
    from nram.training.settings import load_config

    config = load_config(arguments.task, seed=arguments.seed)
    names = [group.name for group in config.groups]
    if arguments.group not in (None, *names):
        sys.exit(f"--group {arguments.group}: unknown; choose from {', '.join(names)}")
    for name, group in zip(names, config.group_configs, strict=True):
        if arguments.group in (None, name):
            yield {"group": name} | _members_of_group(group, arguments)


def _members_of_group(config: TrainConfig, arguments: argparse.Namespace) -> dict[str, Any]:
    import numpy as np

    from nram.runtime import device_name, prepare_devices, versions
    from nram.training.config import CullConfig
    from nram.training.culling import compile_fit
    from nram.training.pools import CHUNK
    from nram.training.population import compile_training, init_population, stage_keys
    from nram.training.selection import compile_validation

    devices, count, steps = prepare_devices("auto"), arguments.count, arguments.steps
    stage = replace(config.stages[0], population=count, cull=CullConfig(), steps=steps or config.stages[0].steps)
    config = replace(config, stages=(stage,))
    began = time.monotonic()
    advance, fit = compile_training(config, stage, devices), compile_fit(config, stage, devices)
    population, keys = init_population(config, count), stage_keys(config, 0)
    for first in range(0, stage.steps, CHUNK):
        population, _ = advance(population, keys, first, min(CHUNK, stage.steps - first))
    errors = np.concatenate([fit(population, 0, stage.steps + number).soft_errors for number in range(FITS)], axis=1)
    hard = compile_validation(config, stage, devices)(population).exact == 1.0
    return {
        "subject": config.task,
        "seed": config.seed,
        "command": " ".join(sys.argv),
        "versions": versions(),
        "registers": config.machine.registers,
        "repeats": config.machine.repeats,
        "steps": stage.steps,
        "n": stage.max_complexity,
        "fresh_examples": errors.shape[1],
        "soft": share(int(np.sum(np.all(errors == 0, axis=1))), count),
        "hard": share(int(np.sum(hard)), count),
        "seconds": round(time.monotonic() - began, 1),
        "device": device_name(devices),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    members = verbs.add_parser("members", help="starting members that train alone")
    members.add_argument("task")
    members.add_argument("--count", type=int, default=128)
    members.add_argument("--steps", type=int, help="training steps (default: those of the group's first stage)")
    members.add_argument("--seed", type=int, default=0)
    members.add_argument("--group", metavar="NAME", help="a group of the recipe (default: all)")
    first = verbs.add_parser("first", help="the first-ranked members of finished runs, up to n = 50")
    first.add_argument("folders", nargs="+")
    draw = verbs.add_parser("draw", help="the settings of a run's winner, as words for --set")
    draw.add_argument("folder")
    draw.add_argument("--rank", type=int, default=0, help="of the member (default: 0, the winner)")
    arguments = parser.parse_args()
    if arguments.verb == "draw":
        print(drawn(arguments.folder, arguments.rank))
        return
    for row in map(first_member, arguments.folders) if arguments.verb == "first" else starting_members(arguments):
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
