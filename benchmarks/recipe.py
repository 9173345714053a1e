"""How often the one recipe learns a task: many runs side by side, and one line of JSON for each.

    python benchmarks/recipe.py merge copy --seeds 0..9 --side-by-side 12 --limit 475 --device gpu --out runs.jsonl
    python benchmarks/recipe.py examples/files/sum.jsonl --seeds 0 --limit 600 --device gpu --out files.jsonl
    python benchmarks/tables.py runs runs.jsonl

A task, or the file of one (.py), is trained by `nram train`; a file of examples by `nram learn --method train`. Every
run is counted, and none is repeated: a run that is stopped by the limit counts as not learned.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

GRACE = 30  # seconds after the limit until a run that does not stop is killed


def start(subject: str, seed: int, arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Start a run. Returns what is known about it."""
    out = folder / f"{Path(subject).name}-{seed}"  # sum.py and sum.jsonl
    words = ["train", subject] if is_task(subject) else ["learn", subject, "--method", "train"]
    words += ["--seed", str(seed), "--device", arguments.device]
    words += [word for setting in arguments.set for word in ("--set", setting)]
    if not is_task(subject):
        words += ["--budget", str(arguments.limit)]
    limit = ["timeout", "-s", "INT", "-k", str(GRACE), str(arguments.limit)] if is_task(subject) else []
    log = (folder / f"{out.name}.log").open("w")
    process = subprocess.Popen(
        [*limit, sys.executable, "-m", "nram", *words, "--out", str(out), "--json"],
        stdout=subprocess.PIPE,
        stderr=log,
        env={**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
        text=True,
    )
    command = " ".join(["nram", *words])
    return {"subject": subject, "seed": seed, "command": command, "process": process, "out": out, "began": time.time()}


def is_task(subject: str) -> bool:
    return Path(subject).suffix in ("", ".py")


def ended(run: dict[str, Any], arguments: argparse.Namespace) -> dict[str, Any]:
    """The line of a run that has ended."""
    stdout, _ = run["process"].communicate()
    found = json.loads(stdout) if stdout.strip().startswith("{") else _read(run["out"] / "result.json")
    record = _read(run["out"] / "run.json") or _read(run["out"] / "training" / "0" / "run.json")
    line = {name: run[name] for name in ("subject", "seed", "command")}
    line |= {
        "learned": found.get("perfect_members", 0) > 0 if is_task(run["subject"]) else run["process"].returncode == 0,
        "status": run["process"].returncode,
        "seconds": round(time.time() - run["began"], 1),
        "limit": arguments.limit,
        "side_by_side": arguments.side_by_side,
        "device": record.get("device"),
        "versions": record.get("versions"),
    }
    kept = ("perfect_members", "halting_members", "best_validation_exact_hard", "group", "stages")
    line |= {name: found[name] for name in kept if name in found}
    return line | {"reached": _reached(run["out"])}


def _reached(out: Path) -> dict[str, Any]:
    """For each group, its last stage and step, and the best share as a program."""
    reached: dict[str, Any] = {}
    for metrics in (out / "metrics.jsonl", *sorted(out.glob("training/*/metrics.jsonl"))):
        for words in metrics.read_text().splitlines() if metrics.is_file() else ():
            row = json.loads(words)
            group = reached.setdefault(str(row["group"]), {"best_hard": 0.0})
            group |= {"stage": row["stage"], "step": row["step"]}
            group["best_hard"] = max(group["best_hard"], round(row["best_hard"] or 0.0, 3))
    return reached


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.is_file() else {}


def run_all(arguments: argparse.Namespace) -> None:
    first, _, last = arguments.seeds.partition("..")
    seeds = range(int(first), int(last or first) + 1)
    waiting = [(subject, seed) for subject in arguments.subjects for seed in seeds]
    end = time.time() + (arguments.total or float("inf"))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(arguments.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        running: list[dict[str, Any]] = []
        while waiting or running:
            while waiting and len(running) < arguments.side_by_side:
                running.append(start(*waiting.pop(0), arguments, folder))
            time.sleep(0.5)
            if time.time() > end:
                waiting = []
                for run in running:
                    run["process"].send_signal(signal.SIGINT)
                end = float("inf")
            for run in [run for run in running if run["process"].poll() is not None]:
                running.remove(run)
                line = ended(run, arguments)
                with arguments.out.open("a") as file:
                    file.write(json.dumps(line) + "\n")
                print(line["subject"], line["seed"], line["learned"], line["seconds"], line["reached"], flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("subjects", nargs="+", help="those that take long first")
    parser.add_argument("--seeds", default="0", help="one, or a range as 0..9")
    parser.add_argument("--side-by-side", type=int, default=1)
    parser.add_argument("--limit", type=int, default=1800, help="seconds of one run")
    parser.add_argument("--total", type=int, help="seconds until all runs are stopped; those that wait never start")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--keep", help="a folder for the runs (default: they are removed)")
    parser.add_argument("--out", type=Path, required=True, help="the file to which a line for each run is added")
    run_all(parser.parse_args())


if __name__ == "__main__":
    main()
