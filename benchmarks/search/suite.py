"""Searches the problems of examples/suite with several seeds: how often, how fast, how long, and is the program right?

    python benchmarks/search/suite.py --seeds 0..4 --workers 2 --budget 120 --out results/suite-search.jsonl
    python benchmarks/search/suite.py --from files --seeds 0..4 --workers 2 --budget 120 --out results/suite-files.jsonl
    python benchmarks/search/suite.py --problems gcd,brackets --budget 600 --out more.jsonl
    python benchmarks/tables.py suite results/suite-search.jsonl           # a row for each problem
    python benchmarks/tables.py suite-tiers results/suite-search.jsonl     # a row for each tier

By default a problem is a task: `nram search`, which tests a program that fits on fresh instances too. With `--from
files` it is a file of about 380 examples, sizes 1 to 10, as examples/files/make_examples.py makes it: `nram learn
--method search`, which sees nothing else. Its step limit is the problem's.

Every run is a process of its own and one line of JSON. Runs that are in the file already are skipped, so a second call
continues; lines with another budget, other workers or another source count as other runs. A run that finds nothing
counts as not found. `exact` says that the program is right and has halted by T(n) on fresh instances of every n up to
60, six times as long as the longest example.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from nram.extensions import get_task
from nram.programs.execute import execute
from nram.programs.files import read_program
from nram.programs.ir import Program
from nram.runtime import versions
from nram.search.instances import exact
from nram.tasks import Instance, Task

EXAMPLES = Path(__file__).parents[2] / "src" / "nram" / "examples"
SUITE = EXAMPLES / "suite"
LONGEST, OF_EACH = 60, 30  # fresh instances: the largest n, and how many of each
SAME = ("problem", "seed", "source", "workers", "budget")  # what tells one run from another
GRACE = 60.0  # seconds after the budget until a process that does not end is killed


def main() -> None:
    parser = argparse.ArgumentParser(description="The search on the problems of examples/suite.")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="one line of JSON for each run")
    parser.add_argument("--problems", metavar="NAMES", help="with commas between them (default: all)")
    parser.add_argument("--tiers", default="1,2,3,4", help="which (default: all)")
    parser.add_argument("--seeds", default="0..4", help="as 0..4 or 7 (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=2, help="threads of each run (default: %(default)s)")
    parser.add_argument("--budget", type=float, default=120.0, metavar="SECONDS", help="default: %(default)g")
    parser.add_argument("--from", dest="source", choices=("tasks", "files"), default="tasks", help="default: tasks")
    parser.add_argument("--until", type=float, metavar="SECONDS", help="begin no run after so many")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the programs that are found")
    arguments = parser.parse_args()
    tiers = {name: tier for name, tier in problems().items() if str(tier) in arguments.tiers.split(",")}
    names = arguments.problems.split(",") if arguments.problems else list(tiers)
    began = time.monotonic()
    done = [json.loads(line) for line in arguments.out.read_text().splitlines()] if arguments.out.exists() else []
    known = {tuple(line[part] for part in SAME) for line in done}
    for seed in seeds_of(arguments.seeds):
        for name in names:
            if (name, seed, arguments.source, arguments.workers, arguments.budget) in known:
                continue
            if arguments.until is not None and time.monotonic() - began > arguments.until:
                return
            line = attempt(name, tiers[name], seed, arguments)
            with arguments.out.open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(f"{name}, seed {seed}: {_in_words(line)}", file=sys.stderr, flush=True)


def seeds_of(text: str) -> range:
    """The seeds that 0..4, or 7, means."""
    first, _, last = text.partition("..")
    return range(int(first), int(last or first) + 1)


def problems() -> dict[str, int]:
    """The problems in the order of the README's tables, with their tiers."""
    parts = re.split(r"^## Tier (\d):", (SUITE / "README.md").read_text(), flags=re.MULTILINE)[1:]
    rows = zip(parts[::2], parts[1::2], strict=True)
    return {name: int(tier) for tier, part in rows for name in re.findall(r"^\| \[(\w+)\]\(\1\.py\)", part, re.M)}


def attempt(name: str, tier: int, seed: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """One run in its own process."""
    task = get_task(SUITE / f"{name}.py")
    with tempfile.TemporaryDirectory() as folder:
        words, program_file, shown = _command(name, task, seed, arguments, Path(folder))
        began = time.monotonic()
        try:
            process = subprocess.run(
                [sys.executable, "-m", "nram", *words, "--json"],
                capture_output=True,
                text=True,
                timeout=arguments.budget + GRACE,
            )
            stdout, status, errors = process.stdout, process.returncode, process.stderr
        except subprocess.TimeoutExpired:
            stdout, status, errors = "", 124, "killed"
        took = time.monotonic() - began
        result = json.loads(stdout) if stdout.strip().startswith("{") else {}
        found = bool(result.get("found"))
        line: dict[str, Any] = {
            "subject": name,
            "problem": name,
            "tier": tier,
            "seed": seed,
            "source": arguments.source,
            "found": found,
            "exact": False,
            "seconds": round(result.get("seconds", took), 2),
            "whole_process": round(took, 2),
            "candidates": result.get("candidates", (result.get("search") or {}).get("candidates")),
            "command": shown,
            "workers": arguments.workers,
            "budget": arguments.budget,
            "status": status,
            "load": round(os.getloadavg()[0], 1),
            "device": device(),
            "versions": versions(),
        }
        if found:
            program = read_program(program_file)
            line |= looked_at(program, task)
            if arguments.keep is not None:
                arguments.keep.mkdir(parents=True, exist_ok=True)
                kept = arguments.keep / f"{name}-{seed}{program_file.suffix}"
                kept.write_bytes(program_file.read_bytes())
        elif not result:
            line["error"] = errors.strip()[-500:]
    return line


def _command(
    name: str, task: Task, seed: int, arguments: argparse.Namespace, folder: Path
) -> tuple[Sequence[str], Path, str]:
    """The words of the command, where its program will be, and the command as one would write it."""
    numbers = ["--seed", str(seed), "--budget", f"{arguments.budget:g}", "--workers", str(arguments.workers)]
    file = SUITE / f"{name}.py"
    if arguments.source == "tasks":
        out = folder / f"{name}.nram"
        rest = [*numbers, "--verify-budget", "0"]
        shown = " ".join(["nram search", f"examples/suite/{name}.py", *rest])
        return ["search", str(file), *rest, "--out", str(out)], out, shown
    maker = EXAMPLES / "files" / "make_examples.py"
    subprocess.run([sys.executable, str(maker), str(folder), str(file)], check=True)
    rest = ["--method", "search", "--steps", str(task.step_limit), *numbers, "--alternatives", "0"]
    shown = " ".join(["nram learn", f"made/{name}.jsonl", *rest])
    words = ["learn", str(folder / f"{name}.jsonl"), *rest, "--out", str(folder / "learned")]
    return words, folder / "learned" / "program.nram", shown


def looked_at(program: Program, task: Task) -> dict[str, Any]:
    """The size of a program, and how many fresh instances it gets right."""
    right = total = 0
    for wrong, count in _fresh(program, task):
        right, total = right + count - wrong, total + count
    return {
        "exact": right == total,
        "fresh": total,
        "fresh_right": right,
        "operations": program.operations,
        "rows": program.rows,
        "registers": len(program.registers),
        "states": len(program.states),
    }


def _fresh(program: Program, task: Task) -> Iterator[tuple[int, int]]:
    """For every n: how many fresh instances the program gets wrong or does not halt on, and of how many."""
    for instances in fresh_instances(task):
        result = execute(program, [instance.input for instance in instances], instances[0].steps)
        pairs = zip(exact(instances, result.memory), result.halted, strict=True)
        yield sum(not (fine and halted) for fine, halted in pairs), OF_EACH


def fresh_instances(task: Task) -> Iterator[list[Instance]]:
    """Instances of every n that no program has seen."""
    for n in range(task.min_complexity, LONGEST + 1):
        yield task.sample(n, OF_EACH, 7_654_321 + n, task.least_memory(n) + n % 7)


def device() -> str:
    """The processor, as Linux names it."""
    cpuinfo = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*:\s*(.+)$", cpuinfo.read_text(), re.MULTILINE) if cpuinfo.exists() else None
    return f"{found[1] if found else platform.machine()}, {os.cpu_count()} cores"


def _in_words(line: dict[str, Any]) -> str:
    if not line["found"]:
        return f"not found in {line['seconds']:.0f} s, {line['candidates'] or 0:,} candidates"
    exactly = "exact" if line["exact"] else f"right on {line['fresh_right']} of {line['fresh']}"
    return f"{line['seconds']:.1f} s, {line['operations']} + {line['rows']}, {exactly}"


if __name__ == "__main__":
    main()
