"""Runs that stop and go on on another number of CPU devices, in a process that has four: they end in the same bits."""

import tempfile
from itertools import count, cycle
from pathlib import Path
from typing import Any

import jax
from safetensors.numpy import load_file

from nram.training.callbacks import Interrupted, Report, TrainingCallbacks
from nram.training.config import TrainConfig
from nram.training.run_folder import RunFolder
from nram.training.settings import config_from_dict
from nram.training.trainer import train
from support.training_runs import ending, shared_compilation


def _stage(**more):
    cull = {"share": 0.5, "islands": 2, "patience": 1, "soften": 0.5, "lexicase": True}
    return {"max_complexity": 2, "population": 4, "steps": 30, "step_slack": 1, "cull": cull, **more}


def _group(name: str, *stages, **more):
    machine = {"registers": 2, "hidden": 4, "modules": ["READ", "INC", "WRITE"]}
    return {"name": name, "machine": machine, "batch": 4, "validation": 8, "check_every": 10, "stages": stages, **more}


CONFIG = config_from_dict(
    {
        "task": "access",
        "seed": 3,
        "curriculum": {"enabled": False},
        "groups": [
            _group("soft", _stage(), _stage(population=6, cull={})),
            _group("hard", _stage(straight_through=True), _stage(steps=10, cull={}), joins=2),
        ],
    }
)


class _Reports(TrainingCallbacks):
    def __init__(self):
        self.seen: list[Report] = []

    def report(self, report: Report) -> None:
        self.seen.append(report)


def _go_on(path: Path, devices: int, most: int | None = None, config: TrainConfig = CONFIG) -> bool:
    """Train on so many devices, up to `most` reports; whether the run has ended."""
    run, reports = RunFolder(path), _Reports()
    run = RunFolder.open(path) if (path / "run.json").is_file() else RunFolder.create(path, config, [], "")
    try:
        train(run, config, jax.devices()[:devices], reports, lambda: most is not None and len(reports.seen) >= most)
    except Interrupted:
        return False
    return True


def main() -> None:
    with shared_compilation(), tempfile.TemporaryDirectory() as folder:
        alone, moved = Path(folder, "alone"), Path(folder, "moved")
        _go_on(alone, 1)
        turns = cycle((4, 2, 1, 3))
        stops = next(number for number in count() if _go_on(moved, next(turns), 1))
        assert stops > 8, f"it stopped {stops} times"
        assert _ended(moved) == _ended(alone)
    print("devices", jax.device_count(), "ended the same")


def _ended(path: Path) -> list[Any]:
    """What a run leaves behind, without the name of its devices."""
    _, arrays, metrics, result = ending(path)
    members = {file.name: load_file(file) for file in (path / "best").iterdir()}
    best = {(file, name): array.tobytes() for file, member in members.items() for name, array in member.items()}
    return [best, arrays, metrics, {name: value for name, value in result.items() if name != "device"}]


if __name__ == "__main__":
    main()
