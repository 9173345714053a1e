"""How often the one recipe learns a task: many runs side by side, one line of JSON for each, and a table of them.

    python benchmarks/recipe.py run copy merge --seeds 0..9 --side-by-side 20 --limit 480 --device gpu --out runs.jsonl
    python benchmarks/recipe.py run examples/files/sum.jsonl --seeds 0 --limit 600 --device gpu --out files.jsonl
    python benchmarks/recipe.py table runs.jsonl

A task, or the file of one (.py), is trained by `nram train`; a file of examples by `nram learn --method train`. Every
run is counted, and none is repeated: a run that is stopped by the limit counts as not learned. Intervals are Wilson's,
95%.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from convergence import share

GRACE = 30  # seconds after the limit until a run that does not stop is killed


def start(subject: str, seed: int, arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Start a run. Returns what is known about it."""
    out = folder / f"{Path(subject).stem}-{seed}"
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
    waiting = [(subject, seed) for subject in arguments.subjects for seed in seeds]  # name those that take long first
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(arguments.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        running: list[dict[str, Any]] = []
        while waiting or running:
            while waiting and len(running) < arguments.side_by_side:
                running.append(start(*waiting.pop(0), arguments, folder))
            time.sleep(0.5)
            for run in [run for run in running if run["process"].poll() is not None]:
                running.remove(run)
                line = ended(run, arguments)
                with arguments.out.open("a") as file:
                    file.write(json.dumps(line) + "\n")
                print(line["subject"], line["seed"], line["learned"], line["seconds"], line["reached"], flush=True)


def table(files: list[Path]) -> str:
    """A table in Markdown: a row for each subject."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for file in files:
        for words in file.read_text().splitlines():
            line = json.loads(words)
            found[Path(line["subject"]).stem].append(line)
    rows = ["| | runs | learned | interval | halts within T(n) | median time | longest |", "| --- |" + " --- |" * 6]
    for subject, lines in found.items():
        learned = [line for line in lines if line["learned"]]
        of = share(len(learned), len(lines))
        halting = sum(line.get("halting_members", 0) > 0 for line in learned)
        seconds = sorted(line["seconds"] for line in learned)
        times = f"{seconds[len(seconds) // 2]:.0f} s | {seconds[-1]:.0f} s" if seconds else "- | -"
        rows.append(
            f"| {subject} | {len(lines)} | {len(learned)} | {of['from']:.0%} to {of['to']:.0%} | {halting} | {times} |"
        )
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    run = verbs.add_parser("run", help="train, and add a line for each run to --out")
    run.add_argument("subjects", nargs="+")
    run.add_argument("--seeds", default="0", help="one, or a range as 0..9")
    run.add_argument("--side-by-side", type=int, default=1)
    run.add_argument("--limit", type=int, default=1800, help="seconds of one run")
    run.add_argument("--device", default="auto")
    run.add_argument("--set", action="append", default=[])
    run.add_argument("--keep", help="a folder for the runs (default: they are removed)")
    run.add_argument("--out", type=Path, required=True)
    verbs.add_parser("table", help="a table of such lines").add_argument("files", nargs="+", type=Path)
    arguments = parser.parse_args()
    if arguments.verb == "table":
        print(table(arguments.files))
    else:
        run_all(arguments)


if __name__ == "__main__":
    main()
