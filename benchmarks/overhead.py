"""What `nram sweep` adds to the trials of a study: the same trials by hand and as a study, in turn.

    python benchmarks/overhead.py --out results/overhead.jsonl
    python benchmarks/overhead.py --starts --out results/start-up.jsonl

A round trains four small populations for a fixed number of updates, one after another: by `nram train`, then by `nram
sweep --workers 1`. Each half of a round gives a line of JSON, with the seconds by the clock and those of the processor.
Every half begins in an empty folder, and compiled code comes from the cache. Run nothing else on the machine meanwhile.

`--starts` measures the seconds from the command to the first process of a trial, of a small study and a large one, on
this machine's cores and on a Ray cluster that the command starts here. The study is stopped then.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from nram.runtime import cpu_cores, versions

TASK, SEEDS = "access", 4
SIZES = 2, 900  # trials of the studies whose start is measured
SETTINGS = {"copies": 1, "population": 64, "registers": 3, "repeats": 1, "hidden": 8, "controller": "mlp"}


def by_hand(folder: Path, settings: dict[str, Any]) -> None:
    words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    for seed in range(SEEDS):
        fixed = ["--protocol", "paper", "--seed", str(seed), "--device", "cpu", "--json"]
        run("train", TASK, *fixed, *words, "--out", str(folder / str(seed)))


def by_sweep(folder: Path, settings: dict[str, Any]) -> None:
    study = folder / "study.toml"
    head = f'tasks = ["{TASK}"]\nseeds = "0..{SEEDS - 1}"\nprotocol = "paper"\n'
    head += f"[resources]\ncores = {cpu_cores()}\ngpus = 0\n"
    study.write_text(head + "[settings]\n" + "".join(f"{name} = {json.dumps(v)}\n" for name, v in settings.items()))
    run("sweep", str(study), "--workers", "1", "--out", str(folder / "study"), "--json")


def run(*words: str) -> None:
    done = subprocess.run([sys.executable, "-m", "nram", *words], capture_output=True, text=True)
    if done.returncode not in (0, 1):  # 1: the population has not learned the task in so few updates
        sys.exit(f"nram {' '.join(words)}: {done.stderr[-500:]}")


def measured(work: Callable[[Path, dict[str, Any]], None], settings: dict[str, Any]) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        work(Path(folder), settings)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": round(time.monotonic() - began, 2), "processor": round(processor, 2)}


def rounds(count: int, settings: dict[str, Any]) -> Iterator[dict[str, Any]]:
    by_hand_once, by_sweep_once = (measured(work, settings | {"steps": 25}) for work in (by_hand, by_sweep))
    print(f"nearly empty trials: by hand {by_hand_once}, by nram sweep {by_sweep_once}", flush=True)
    for number in range(count):
        for how, work in (("by hand", by_hand), ("nram sweep", by_sweep)):
            line = {"subject": TASK, "seed": number, "how": how, **measured(work, settings)}
            print(line, flush=True)
            yield line


def starts(count: int) -> Iterator[dict[str, Any]]:
    for seed in range(count):
        for trials in SIZES:
            for where, words in (("processes", []), ("ray", ["--address", "local"])):
                line = {
                    "subject": TASK,
                    "seed": seed,
                    "trials": trials,
                    "where": where,
                    "seconds": start(trials, words),
                }
                print(line, flush=True)
                yield line


def start(trials: int, words: list[str]) -> float:
    """The seconds until a study has started the process of a trial."""
    with tempfile.TemporaryDirectory() as name:
        spec, study = Path(name, "study.toml"), Path(name, "study")
        spec.write_text(f'verb = "search"\ntasks = ["{TASK}"]\nseeds = "0..{trials - 1}"\nbudget = 60\n')
        command = [sys.executable, "-m", "nram", "sweep", str(spec), "--out", str(study), *words]
        began = time.monotonic()
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            while not list(study.glob("trials/*.log")):
                if process.poll() is not None or time.monotonic() > began + 120:
                    process.kill()
                    sys.exit(f"no trial has started: {process.communicate()[1][-500:]}")
                time.sleep(0.01)
            seconds = time.monotonic() - began
            process.send_signal(signal.SIGINT)
            process.communicate()
    return round(seconds, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--starts", action="store_true", help="measure the start of studies instead")
    parser.add_argument("--steps", type=int, default=3000, help="updates of each trial (default: 3000)")
    parser.add_argument("--out", type=Path, required=True, help="the file to which a line for each half is added")
    chosen = parser.parse_args()
    lines = starts(chosen.rounds) if chosen.starts else rounds(chosen.rounds, SETTINGS | {"steps": chosen.steps})
    device = f"{cpu_cores()} x {platform.machine()} CPU"
    with chosen.out.open("a") as out:
        for line in lines:
            line |= {"command": shlex.join(["python", *sys.argv]), "device": device, "versions": versions()}
            out.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
