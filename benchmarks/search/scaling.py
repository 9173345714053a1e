"""One search on more and more workers: candidates per second, and the seconds until the same program is found.

    python benchmarks/search/scaling.py --out results/search-scaling.jsonl           # threads and Ray, 1 and 2 workers
    python benchmarks/search/scaling.py --out FILE --where threads --workers 1,2,4,8,16
    python benchmarks/tables.py scaling results/search-scaling.jsonl             # the medians

Each run is a process of its own, `nram search` with so many workers, and a line of JSON. Two searches are run: merge
for a fixed number of candidates, far from a program, which gives candidates per second; and permutation until its
program is found. `seconds` begin when everything is compiled, and with Ray when it has started; `whole_process` has
all. With `--where ray` each run starts Ray on this machine. All runs of a search must come to the same result, or the
script fails. Runs that are in the file already are not repeated. Run nothing else on the machine meanwhile.
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
from importlib.metadata import version
from pathlib import Path
from typing import Any

from nram.runtime import versions

SEARCHES = {
    "merge": ["--candidates", "5000000"],
    "permutation": [],
}
BUDGET = "600"
SAME = ("subject", "seed", "where", "workers", "repeat")  # what tells one run from another
RESULT = ("found", "candidates", "chains", "program")  # what must not depend on where chains run


def main() -> int:
    parser = argparse.ArgumentParser(description="The search on more and more workers.")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="one line of JSON for each run")
    parser.add_argument("--where", default="threads,ray", help="default: %(default)s")
    parser.add_argument("--workers", default="1,2", help="default: %(default)s")
    parser.add_argument("--repeats", type=int, default=2, help="of each run (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    arguments = parser.parse_args()
    lines = [json.loads(line) for line in arguments.out.read_text().splitlines()] if arguments.out.exists() else []
    known = {tuple(line[part] for part in SAME) for line in lines}
    for repeat in range(arguments.repeats):
        for subject in SEARCHES:
            for workers in map(int, arguments.workers.split(",")):
                for where in arguments.where.split(","):
                    if (subject, arguments.seed, where, workers, repeat) in known:
                        continue
                    lines.append(line := attempt(subject, arguments.seed, where, workers, repeat))
                    with arguments.out.open("a") as file:
                        file.write(json.dumps(line) + "\n")
                    print(f"{subject}, {where}, {workers}: {line['seconds']} s", file=sys.stderr, flush=True)
    results = {(line["subject"], line["seed"], *(line[part] for part in RESULT)) for line in lines}
    searches = [one[:2] for one in results]
    for subject, seed in (different := {one for one in searches if searches.count(one) > 1}):
        print(f"{subject}, seed {seed}: the runs came to different results", file=sys.stderr)
    return 1 if different else 0


def attempt(subject: str, seed: int, where: str, workers: int, repeat: int) -> dict[str, Any]:
    """One run in its own process."""
    words = ["search", subject, "--seed", str(seed), "--workers", str(workers), "--budget", BUDGET]
    words += [*SEARCHES[subject], "--verify-budget", "0", *(["--address", "local"] if where == "ray" else [])]
    with tempfile.TemporaryDirectory() as folder:
        load, began = os.getloadavg()[0], time.monotonic()
        process = subprocess.run(
            [sys.executable, "-m", "nram", *words, "--json", "--out", f"{folder}/program.nram"],
            capture_output=True,
            text=True,
        )
        took = time.monotonic() - began
    if process.returncode not in (0, 1) or not process.stdout.startswith("{"):
        sys.exit(f"nram {' '.join(words)} failed: {process.stderr[-500:]}")
    result = json.loads(process.stdout)
    return {
        "subject": subject,
        "seed": seed,
        "where": where,
        "workers": workers,
        "repeat": repeat,
        "command": " ".join(["nram", *words]),
        "seconds": round(result["seconds"], 2),
        "per_second": round(result["candidates"] / result["seconds"]),
        "found": result["found"],
        "candidates": result["candidates"],
        "chains": result["chains"],
        "program": json.dumps({key: value for key, value in result["program"].items() if key != "made"}),
        "whole_process": round(took, 2),
        "load": round(load, 1),
        "device": _device(),
        "versions": versions() | ({"ray": version("ray")} if where == "ray" else {}),
    }


def _device() -> str:
    """The processor, as Linux names it."""
    cpuinfo = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*:\s*(.+)$", cpuinfo.read_text(), re.MULTILINE) if cpuinfo.exists() else None
    return f"{found[1] if found else platform.machine()}, {os.cpu_count()} cores"


if __name__ == "__main__":
    sys.exit(main())
