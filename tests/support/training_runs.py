"""Training runs in tests: compiled once for all runs of a file, and compared by what they leave behind."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file

from nram.training import group, trainer

CLOCK = ("seconds", "seconds_left", "budget_left", "example_steps_per_s", "peak_memory", "notice")


@contextmanager
def shared_compilation() -> Iterator[pytest.MonkeyPatch]:
    """A checkpoint at every chance, and compiled programs that all runs share."""

    def remember(function):
        kept = lru_cache(lambda config, stage, devices, *kernel: function(config, stage, list(devices), *kernel))
        return lambda config, stage, devices, *kernel: kept(config, stage, tuple(devices), *kernel)

    with pytest.MonkeyPatch.context() as patch:
        for name in ("compile_training", "compile_validation", "compile_fit"):
            patch.setattr(group, name, remember(getattr(group, name)))
        patch.setattr(group, "init_population", lru_cache(group.init_population))
        patch.setattr(trainer, "CHECKPOINT_SECONDS", 0)
        yield patch


def ending(
    path: Path, checkpoint: bool = True
) -> tuple[dict[str, bytes], dict[str, bytes], list[dict[str, Any]], dict[str, Any]]:
    """The results of a finished run: members, arrays of the checkpoint, metrics and result, without times."""

    def timeless(row: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in row.items() if name not in CLOCK}

    best = {file.name: file.read_bytes() for file in (path / "best").iterdir()}
    loaded = load_file(path / "checkpoint.safetensors") if checkpoint else {}
    arrays = {name: array.tobytes() for name, array in loaded.items()}
    metrics = [timeless(json.loads(line)) for line in (path / "metrics.jsonl").read_text().splitlines()]
    return best, arrays, metrics, timeless(json.loads((path / "result.json").read_text()))
