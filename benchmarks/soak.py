"""Hours of training and search side by side: does memory grow, does either get slower?

    python benchmarks/soak.py --seconds 7200 --out results/soak.jsonl

Training has a population of 512 with culling, on merge, in a first stage without an end. The search looks for a program
for a checksum that no program computes. Each has a core of its own if there are two. Once both are at work,
every minute their memory, open files, threads, seconds of the processor and work done go into the file, one line of
JSON for each. The last line is the verdict, which is also printed; the exit status is 1 if something grew or slowed.
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
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import linear_regression, median
from typing import Any

from nram.runtime import cpu_cores, versions

CONFIG = Path(__file__).parent.parent / "src" / "nram" / "examples" / "configs" / "merge.toml"
ENDLESS = ["stages.0.steps=100000000", "stop_at=0"]
TASK = """
import zlib

from nram.tasks import StepLimit, Task


def sample_input(rng, n, memory_size):
    values = [rng.randrange(1, memory_size) for _ in range(n)]
    return [n, *values] + [0] * (memory_size - n - 1)


def oracle(memory):
    return [zlib.crc32(bytes(memory)) % len(memory), *memory[1:]], [0]


TASK = Task(
    name="checksum",
    summary="Given an array, return a checksum of the memory: no program does.",
    layout="n, A[0..n-1], 0; the checksum goes to cell 0",
    step_limit=StepLimit(1, 6),
    least_memory=lambda n: n + 2,
    sample_input=sample_input,
    oracle=oracle,
)
"""
START = 900  # seconds until both must be at work
WARM_UP = 0.1  # of the samples: what compiled code and caches take at first
GROWTH = 0.05  # of the memory, by a straight line through all samples after the warm-up
SLOWING = 0.1
LEAST = 8  # samples after the warm-up


@dataclass(frozen=True)
class Sample:
    """A process at one moment."""

    job: str
    seconds: float  # since both were at work
    memory: int  # bytes, resident
    files: int
    threads: int
    processor: float  # seconds of the processor that the process has used
    done: int  # steps of training, or candidates of the search


@dataclass(frozen=True)
class Job:
    """A process, and a function that says how much it has done."""

    name: str
    process: subprocess.Popen[bytes]
    done: Callable[[], int]

    def sample(self, seconds: float) -> Sample:
        own = Path("/proc", str(self.process.pid))
        status = dict(line.split(":", 1) for line in (own / "status").read_text().splitlines())
        after_name = (own / "stat").read_text().rpartition(")")[2].split()
        ticks = int(after_name[11]) + int(after_name[12])  # in user and in kernel mode
        return Sample(
            self.name,
            round(seconds, 1),
            int(status["VmRSS"].split()[0]) * 1024,
            len(list((own / "fd").iterdir())),
            int(status["Threads"]),
            ticks / os.sysconf("SC_CLK_TCK"),
            self.done(),
        )


def start(folder: Path, settings: list[str]) -> list[Job]:
    """Start both jobs in this folder."""
    task = folder / "checksum.py"
    task.write_text(TASK)
    words = [word for setting in [*ENDLESS, *settings] for word in ("--set", setting)]
    train = ["train", "merge", "--config", CONFIG, *words, "--device", "cpu", "--out", folder / "run"]
    budget = ["--budget", str(10**9), "--workers", "1", "--registers", "3", "--repeats", "2", "--states", "1"]
    search = ["search", task, *budget, "--verify-budget", "0", "--out", folder / "found.nram"]
    cores = sorted(os.sched_getaffinity(0))
    jobs = [("train", train, partial(steps_in, folder / "run" / "metrics.jsonl"))]
    jobs += [("search", search, partial(candidates_in, folder / "search.log"))]
    return [
        Job(name, _start(folder / f"{name}.log", words, cores[number % len(cores)]), done)
        for number, (name, words, done) in enumerate(jobs)
    ]


def _start(log: Path, words: list[Any], core: int) -> subprocess.Popen[bytes]:
    with log.open("w") as output:
        return subprocess.Popen(
            ["taskset", "-c", str(core), sys.executable, "-m", "nram", *map(str, words)],
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def steps_in(metrics: Path) -> int:
    """The step of the last whole line."""
    lines = metrics.read_text().splitlines(keepends=True) if metrics.exists() else []
    whole = [line for line in lines[-2:] if line.endswith("\n")]
    return json.loads(whole[-1])["step"] if whole else 0


def candidates_in(log: Path) -> int:
    """The candidates in the last line of progress: those of the chains that have ended."""
    found = re.findall(r"([\d.]+)M candidates", log.read_text())
    return round(float(found[-1]) * 1e6) if found else 0


def watch(jobs: list[Job], seconds: float, every: float, keep: Callable[[dict[str, Any]], None]) -> list[Sample]:
    """Samples at equal distances, from when both have done something. Ends early if a job ends."""
    samples, began = [], time.monotonic()
    while not all(job.done() for job in jobs):
        _check_alive(jobs)
        if time.monotonic() - began > START:
            raise SystemExit(f"soak: nothing is done after {START} s")
        time.sleep(min(every, 1))
    began, number = time.monotonic(), 0
    while number * every <= seconds:
        time.sleep(max(0.0, began + number * every - time.monotonic()))
        _check_alive(jobs)
        now = [job.sample(time.monotonic() - began) for job in jobs]
        for sample in now:
            keep(asdict(sample))
        samples += now
        number += 1
    return samples


def _check_alive(jobs: list[Job]) -> None:
    for job in jobs:
        if job.process.poll() is not None:
            raise SystemExit(f"soak: {job.name} has ended with status {job.process.returncode}; its log is kept")


def verdict(samples: list[Sample]) -> dict[str, Any]:
    """What became of one job: all figures are of the time after the warm-up."""
    steady = samples[int(WARM_UP * len(samples)) :]
    if len(steady) < LEAST:
        raise SystemExit(f"soak: {len(steady)} samples after the warm-up are too few: more --seconds, or less --every")
    times, memory = [one.seconds for one in steady], [one.memory for one in steady]
    slope, _ = linear_regression(times, memory)
    quarter = len(steady) // 4
    first, last = steady[: quarter + 1], steady[-quarter - 1 :]
    middle = median(memory)
    growth = slope * (times[-1] - times[0]) / middle
    rates = [[_rate(part, over) for part in (first, last)] for over in ("seconds", "processor")]
    by_clock, by_processor = (after / before if before else 0.0 for before, after in rates)
    more = {name: median(getattr(one, name) for one in last) for name in ("files", "threads")}
    before = {name: median(getattr(one, name) for one in first) for name in ("files", "threads")}
    return {
        "hours": round((times[-1] - times[0]) / 3600, 3),
        "memory_mib": round(middle / 2**20, 1),
        "memory_mib_per_hour": round(slope * 3600 / 2**20, 2),
        "memory_growth": round(growth, 4),
        "per_second": [round(rate, 3) for rate in rates[0]],
        "last_quarter_by_clock": round(by_clock, 3),
        "last_quarter_by_processor": round(by_processor, 3),
        "files": [before["files"], more["files"]],
        "threads": [before["threads"], more["threads"]],
        "flat": growth <= GROWTH and all(more[name] <= before[name] for name in more),
        "as_fast": by_processor >= 1 - SLOWING,
    }


def _rate(samples: list[Sample], over: str) -> float:
    """The work of these samples by the clock, or by the seconds of the processor."""
    first, last = samples[0], samples[-1]
    return (last.done - first.done) / max(1e-9, getattr(last, over) - getattr(first, over))


def stop(jobs: list[Job]) -> None:
    for job in jobs:
        if job.process.poll() is None:
            job.process.terminate()  # SIGINT is ignored in the background of a script
    for job in jobs:
        try:
            job.process.wait(60)
        except subprocess.TimeoutExpired:
            job.process.kill()
            job.process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description="Training and search side by side, for hours.")
    parser.add_argument("--seconds", type=float, default=7200, help="from when both are at work (default: 7200)")
    parser.add_argument("--every", type=float, default=60, help="seconds between two samples (default: 60)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of training")
    parser.add_argument("--folder", type=Path, help="where they work (default: a new temporary folder)")
    parser.add_argument("--out", type=Path, required=True, help="the samples and the verdict, as lines of JSON")
    arguments = parser.parse_args()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="nram-soak-"))
    folder.mkdir(parents=True, exist_ok=True)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    print(f"soak: logs and runs are in {folder}", file=sys.stderr, flush=True)
    with arguments.out.open("w", buffering=1) as lines:

        def keep(line: dict[str, Any]) -> None:
            about = {"subject": line.get("job", "verdict"), "seed": 0, "command": " ".join(sys.argv)}
            device = f"{cpu_cores()} x {platform.machine()} CPU"
            lines.write(json.dumps(about | line | {"device": device, "versions": versions()}) + "\n")

        jobs = start(folder, arguments.set)
        try:
            samples = watch(jobs, arguments.seconds, arguments.every, keep)
        finally:
            stop(jobs)
        found = {job.name: verdict([one for one in samples if one.job == job.name]) for job in jobs}
        keep({"seconds": samples[-1].seconds, "verdict": found})
    print(json.dumps(found, indent=1))
    return 0 if all(one["flat"] and one["as_fast"] for one in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
