"""Studies in tests: specifications, `nram sweep` in processes of its own, and kills of its trials."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Three modules and one group compile within seconds. The stages end with checkpoints.
TRAIN = """
tasks = ["access"]
seeds = {seeds}
[settings]
groups = []
"machine.registers" = 2
"machine.hidden" = 8
modules = ["READ", "INC", "WRITE"]
batch = 8
validation = 16
check_every = 40
stages = [{{max_complexity = 3, steps = 80, population = 8}}, {{max_complexity = 3, steps = 80, population = 8}}]
"""
SEARCH = """
verb = "search"
tasks = ["access"]
seeds = {seeds}
budget = 100
"""


class Sweep:
    """`nram sweep` in a folder."""

    def __init__(self, folder: Path):
        self.folder = folder

    def spec(self, text: str, seeds: str = "[1, 2]") -> Path:
        path = self.folder / "study.toml"
        path.write_text(text.format(seeds=seeds))
        return path

    def start(self, *words: str | Path) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "nram", "sweep", *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env={**os.environ, "JAX_PLATFORMS": "cpu"},
        )

    def run(self, *words: str | Path, status: int = 0) -> tuple[str, str]:
        process = self.start(*words)
        out, err = process.communicate(timeout=500)
        assert process.returncode == status, err
        return out, err

    def start_with_log(self, *words: str | Path) -> subprocess.Popen[str]:
        """The same with a file for all that it says: nobody reads a pipe meanwhile."""
        log = open(self.folder / "log.txt", "a")  # noqa: SIM115 - the process keeps it
        with log:
            return subprocess.Popen(
                [sys.executable, "-m", "nram", "sweep", *map(str, words)],
                stdout=log,
                stderr=log,
                text=True,
                cwd=self.folder,
                env={**os.environ, "JAX_PLATFORMS": "cpu"},
            )


def lines_of(study: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (study / "results.jsonl").read_text().splitlines()]


def processes_of(*places: Path) -> Iterator[tuple[int, str]]:
    """The processes that hold the lock of a trial in these folders, with the trial: those that run now."""
    found = [path for place in places for path in (place / "trials").glob(".*.lock")]
    locks = {str(path.resolve()): path.name[1:-5] for path in found}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if "nram.cluster.process" not in (process / "cmdline").read_text():
                continue
            for opened in (process / "fd").iterdir():
                if (name := locks.get(os.readlink(opened))) is not None:
                    yield int(process.name), name
        except OSError:  # it has just ended
            continue


def kill(*places: Path, choose: Callable[[list[int]], int] = min) -> bool:
    """Kill a process that runs a trial in these folders. Returns whether there was one."""
    found = [number for number, _ in processes_of(*places)]
    if not found:
        return False
    try:
        os.kill(choose(found), signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True
