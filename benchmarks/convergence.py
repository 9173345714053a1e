"""How often training succeeds: for whole runs, and for starting members that train alone.

    python benchmarks/convergence.py runs runs/copy-*           # shares of finished runs, by task
    python benchmarks/convergence.py members listk              # 128 members of every group's first stage, no culling
    python benchmarks/convergence.py members listk --group soft --without entropy_bonus,clipping --with noise

A whole run counts as perfect if a member passed the final test: soft and hard, under every limit, and hard at n = 50.
Unfinished runs are named and left out. Starting members have the structure that the seed draws for their group. One
counts as soft if it makes no error on fresh examples of the stage. It counts as hard if it makes no error as a discrete
machine on the validation set, which goes up to twice the size and, half of the time, to twice the steps. Intervals are
Wilson's, 95%.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nram.training.config import TrainConfig

OFF = {
    "entropy_bonus": ["entropy_bonus=0"],
    "curriculum": ["curriculum.enabled=false"],
    "clipping": ["clip_activations=inf"],  # C1, of activations; C2 stays
}
ON = {"noise": ["noise=0.3"]}
FITS = 4
CHUNK = 50


def share(successes: int, tries: int) -> dict[str, Any]:
    """The share of successes, with Wilson's 95% interval."""
    if tries == 0:
        return {"of": 0}
    z, p = 1.959964, successes / tries
    middle = (p + z * z / (2 * tries)) / (1 + z * z / tries)
    half = z * math.sqrt(p * (1 - p) / tries + z * z / (4 * tries * tries)) / (1 + z * z / tries)
    low, high = max(0.0, middle - half), min(1.0, middle + half)
    return {"of": tries, "are": successes, "share": round(p, 4), "from": round(low, 4), "to": round(high, 4)}


def whole_runs(folders: list[str]) -> list[dict[str, Any]]:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for folder in folders:
        file = Path(folder) / "result.json"
        if not file.is_file():
            print(f"{folder} is not finished", file=sys.stderr)
            continue
        result = json.loads(file.read_text())
        found[result["task"]].append(result)
    rows = []
    for task, results in sorted(found.items()):
        seconds = sorted(result["seconds"] for result in results)
        perfect = sum(result["perfect_members"] > 0 for result in results)
        rows.append(
            {
                "task": task,
                "perfect": share(perfect, len(results)),
                "median_seconds": seconds[len(seconds) // 2],
                "devices": sorted({result["device"] for result in results}),
            }
        )
    return rows


def starting_members(overrides: list[str], arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row for each group of the recipe, or for the one that was chosen."""
    from nram.training.settings import load_config

    task, seed = arguments.task, arguments.seed
    config = load_config(task, overrides=overrides, seed=seed)
    if overrides and config == load_config(task, seed=seed):
        sys.exit(f"{', '.join(overrides)} changes nothing: the recipe has it already")
    names = [group.name for group in config.groups]
    if arguments.group not in (None, *names):
        sys.exit(f"--group {arguments.group}: unknown; choose from {', '.join(names)}")
    for name, group in zip(names, config.group_configs, strict=True):
        if arguments.group in (None, name):
            yield {"group": name, "settings": overrides} | _members_of_group(group, arguments)


def _members_of_group(config: TrainConfig, arguments: argparse.Namespace) -> dict[str, Any]:
    import numpy as np

    from nram.runtime import device_name, prepare_devices, versions
    from nram.training.config import CullConfig
    from nram.training.culling import compile_fit
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


def _changes(without: str, added: str) -> list[tuple[str | None, list[str]]]:
    changes: list[tuple[str | None, list[str]]] = [(None, [])]
    for word, names, known in (("without", without, OFF), ("with", added, ON)):
        for name in filter(None, names.split(",")):
            if name not in known:
                sys.exit(f"--{word} {name}: unknown; choose from {', '.join(known)}")
            changes.append((f"{word} {name}", known[name]))
    return changes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    runs = verbs.add_parser("runs", help="shares of finished whole runs")
    runs.add_argument("folders", nargs="+")
    members = verbs.add_parser("members", help="starting members that train alone")
    members.add_argument("task")
    members.add_argument("--count", type=int, default=128)
    members.add_argument("--steps", type=int, help="training steps (default: those of the group's first stage)")
    members.add_argument("--seed", type=int, default=0)
    members.add_argument("--group", metavar="NAME", help="a group of the recipe (default: all)")
    members.add_argument("--without", default="", help=f"switch these off, one at a time: {', '.join(OFF)}")
    members.add_argument("--with", default="", dest="added", help="switch on noise, which the recipe does not use")
    arguments = parser.parse_args()
    if arguments.verb == "runs":
        rows = whole_runs(arguments.folders)
    else:
        for changed, overrides in _changes(arguments.without, arguments.added):
            for row in starting_members(overrides, arguments):
                print(json.dumps({"changed": changed} | row), flush=True)
        return
    for row in rows:
        print(json.dumps(row))


if __name__ == "__main__":
    main()
