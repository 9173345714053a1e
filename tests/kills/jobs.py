"""The jobs that are killed, and what must be the same at their end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.numpy import load_file
from support.studies import TRAIN
from support.training_runs import ending as ending_of_run

from nram.errors import NramError
from nram.extensions import get_task
from nram.programs.files import read_program

TIMES = ("seconds", "seconds_left", "budget_left", "example_steps_per_s", "date", "created")
# Three modules instead of fourteen compile within a second. Every stage ends with a checkpoint.
SETTINGS = (
    "registers=2",
    "hidden=8",
    'modules=["READ","INC","WRITE"]',
    "batch=8",
    "validation=16",
    "check_every=40",
    f"stages={json.dumps([{'max_complexity': 3, 'steps': 80, 'population': members} for members in (8, 8, 6, 4)])}",
)


@dataclass(frozen=True)
class Job:
    """A command that writes into the folder `place`, next to its current folder."""

    name: str
    words: tuple[str, ...]
    ending: Callable[[Path], Any]
    """From the folder `place` to what must be the same."""
    share: int
    """How often it is chosen."""


def jobs_in(folder: Path) -> dict[str, Job]:
    """All jobs by name. The files that they read are written into this folder."""
    settings = tuple(word for setting in SETTINGS for word in ("--set", setting))
    study = folder / "study.toml"
    study.write_text(TRAIN.format(seeds="[1, 2]"))
    swaps, elements = folder / "swaps.jsonl", folder / "elements.jsonl"
    swaps.write_text(_examples("swap", range(2, 9), 8))
    elements.write_text(_examples("access", range(2, 7), 12))
    jobs = (
        Job(
            "train",
            ("train", "access", "--seed", "1", "--device", "cpu", *settings, *_out("run")),
            ending_of_training,
            4,
        ),
        Job(
            "search",
            ("search", "swap", "--seed", "0", "--verify-budget", "0", *_out("a.nram")),
            ending_of_files,
            4,
        ),
        Job("learn", ("learn", str(swaps), "--seed", "1", *_out("learned")), ending_of_files, 4),
        Job(
            "learn by training",
            ("learn", str(elements), "--method", "train", "--device", "cpu", "--budget", "900", *_out("learned")),
            ending_of_learning,
            1,
        ),
        Job("study", ("sweep", str(study), *_out("study")), ending_of_study, 2),
    )
    return {job.name: job for job in jobs}


def _out(name: str) -> tuple[str, ...]:
    return "--out", f"../place/{name}", "--resume"


def _examples(task: str, sizes: range, count: int) -> str:
    instances = [one for size in sizes for one in get_task(task).sample(size, count, size)]
    return "".join(json.dumps(instance.as_dict()) + "\n" for instance in instances)


# ---- endings


def ending_of_training(place: Path) -> Any:
    """Members, arrays of the checkpoint, metrics and result, and the names of all files."""
    return _names(place), ending_of_run(place / "run")


def ending_of_files(place: Path) -> Any:
    """The content of every file: programs, pictures and reports."""
    return {name: _timeless_text((place / name).read_text()) for name in _names(place)}


def ending_of_learning(place: Path) -> Any:
    """Programs, picture and report, and the endings of all training runs that have ended."""
    names = _names(place)
    ended = [name.removesuffix("/result.json") for name in names if name.endswith("/result.json")]
    runs = [ending_of_run(place / name) for name in ended]
    own = {name: _timeless_text((place / name).read_text()) for name in names if name.count("/") == 1}
    return names, own, runs


def ending_of_study(place: Path) -> Any:
    """What each trial came to, once, and the endings of all runs."""
    study = place / "study"
    lines = [json.loads(line) for line in (study / "results.jsonl").read_text().splitlines()]
    lines = sorted((dict(_timeless(line)) for line in lines), key=lambda line: line["trial"])
    own = {path.name: dict(_timeless(json.loads(path.read_text()))) for path in (study / "trials").glob("*.json")}
    return lines, own, {path.name: ending_of_run(path) for path in sorted((study / "runs").iterdir())}


# ---- files in the middle of a job


def files_in(place: Path) -> list[str]:
    """The files that a job must not lose: not its locks and temporary files, nor what makes the disk full."""
    return [name for name in _names(place) if not Path(name).name.startswith(".") and name != "filling"]


def damaged_files(place: Path) -> list[str]:
    """Those that cannot be read. The last line of metrics may be torn: it is written again."""
    return [name for name in files_in(place) if not _is_whole(place / name)]


def _is_whole(path: Path) -> bool:
    try:
        if path.suffix == ".nram":
            read_program(path)
        elif path.suffix in (".json", ".search"):
            json.loads(path.read_text())
        elif path.suffix == ".safetensors":
            load_file(path)
        return path.suffix != ".svg" or path.read_text().endswith("</svg>\n")
    except (NramError, ValueError, SafetensorError):
        return False


def _names(place: Path) -> list[str]:
    return sorted(str(file.relative_to(place)) for file in place.rglob("*") if file.is_file())


def _timeless_text(text: str) -> Any:
    if text.startswith("{"):
        return dict(_timeless(json.loads(text)))
    return [line for line in text.splitlines() if not line.startswith("made date: ")]


def _timeless(value: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, part in value.items():
        if name not in TIMES:
            if name == "programs":
                part = [dict(_timeless(one)) for one in part]
            yield name, dict(_timeless(part)) if isinstance(part, dict) else part
