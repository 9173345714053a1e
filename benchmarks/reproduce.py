"""Makes the numbers of the README again: each by its commands, in reproduce.toml.

    python benchmarks/reproduce.py --list                 # what there is, how long it takes, and what fits this machine
    python benchmarks/reproduce.py                        # run what fits this machine, each at most two hours
    python benchmarks/reproduce.py search proofs          # some of it
    python benchmarks/reproduce.py --minutes 30           # another limit

Everything but the pictures of the explorer goes to runs/reproduce, with a log of each result and a line in
summary.jsonl. Most results end with two tables: the new figures, and those of the documentation. Nothing in results/
changes: compare, then copy what is better measured. Studies go on where they were stopped; a result that has ended is
not made again, unless it is named.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tables import table

from nram.cluster.gpus import gpu_names
from nram.cluster.spec_file import read_spec
from nram.display import text_table
from nram.runtime import cpu_cores
from nram.training.history import rough_duration

ROOT = Path(__file__).parent.parent
OUT = ROOT / "runs" / "reproduce"


@dataclass(frozen=True)
class Result:
    """Numbers that belong together, and the commands that make them."""

    name: str
    what: str
    shows: list[str]
    """Words of the page that are about these numbers."""
    commands: list[str]
    needs: Literal["cpu", "gpu"]
    seconds: float | None = None
    measured: str = ""
    """How the seconds are known."""
    lines: str | None = None
    """The file with the raw results. The commands make one with the same name in runs/reproduce."""
    table: str | None = None
    """Of both files, a kind of tables.py."""
    page: str = "README.md"

    @property
    def cores(self) -> int:
        """Those of one trial, in the studies that the commands run."""
        specs = re.findall(r"nram sweep (\S+\.toml)", " ".join(self.commands))
        return max((read_spec(ROOT / spec).resources.cores for spec in specs), default=1)

    @property
    def duration(self) -> str:
        return "not measured" if self.seconds is None else rough_duration(self.seconds)


def read_results() -> list[Result]:
    data = tomllib.loads((ROOT / "benchmarks" / "reproduce.toml").read_text())
    return [Result(**one) for one in data["results"]]


def listed(results: list[Result], gpus: int) -> str:
    rows = [["result", "what", "needs", "takes", "fits here"]]
    for one in results:
        rows.append([one.name, one.what, one.needs, one.duration, "yes" if _fits(one, gpus) else "no"])
    return text_table(rows)


def _fits(result: Result, gpus: int) -> bool:
    return result.cores <= cpu_cores() and (result.needs == "cpu" or gpus > 0)


def run(result: Result) -> bool:
    """Run the commands of a result, until one fails. Returns whether all ended well."""
    began, log = time.monotonic(), OUT / f"{result.name}.log"
    here = f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    environment = {**os.environ, "PATH": here}
    for command in result.commands:
        print(f"{result.name}: {command}", flush=True)
        with open(log, "ab") as file:
            file.write(f"$ {command}\n".encode())
            file.flush()
            status = subprocess.run(
                ["bash", "-c", command], cwd=ROOT, env=environment, stdout=file, stderr=file
            ).returncode
        if status != 0:
            print(f"{result.name} FAILED with status {status}: see {log}", flush=True)
            return False
    line = {"name": result.name, "commands": result.commands, "seconds": round(time.monotonic() - began, 1)}
    with open(OUT / "summary.jsonl", "a") as file:
        file.write(json.dumps(line) + "\n")
    print(f"{result.name}: done in {rough_duration(line['seconds'])}", flush=True)
    if result.table is not None and result.lines is not None:
        for whose, file in (("here", OUT / Path(result.lines).name), ("in the documentation", ROOT / result.lines)):
            print(f"\n{result.name}, {whose}:\n\n{table(result.table, [file])}\n", flush=True)
    return True


def _ended() -> set[str]:
    file = OUT / "summary.jsonl"
    return {json.loads(line)["name"] for line in file.read_text().splitlines()} if file.is_file() else set()


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="results (default: those that fit, and have not ended)")
    parser.add_argument("--list", action="store_true", help="run nothing")
    parser.add_argument(
        "--minutes",
        type=float,
        default=120.0,
        help="if no results are named, leave out those that take longer or were never measured (default: %(default)g)",
    )
    arguments = parser.parse_args(words)
    results, gpus = read_results(), len(gpu_names())
    if unknown := set(arguments.names) - {one.name for one in results}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; choose from {', '.join(one.name for one in results)}")
    chosen = sorted(results, key=lambda one: math.inf if one.seconds is None else one.seconds)
    if arguments.names:
        chosen = [one for one in chosen if one.name in arguments.names]
    elif not arguments.list:
        ended, most = _ended(), 60 * arguments.minutes
        chosen = [one for one in chosen if one.name not in ended and _fits(one, gpus)]
        chosen = [one for one in chosen if one.seconds is not None and one.seconds <= most]
    if arguments.list:
        print(listed(chosen, gpus))
        return 0
    OUT.mkdir(parents=True, exist_ok=True)
    failed = [one.name for one in chosen if not run(one)]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
