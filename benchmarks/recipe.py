"""How often training succeeds: many runs side by side, and one line of JSON for each.

    python benchmarks/recipe.py merge copy --seeds 0..9 --side-by-side 12 --limit 475 --device gpu --out runs.jsonl
    python benchmarks/recipe.py examples/files/sum.jsonl --limit 600 --device gpu --out files.jsonl
    python benchmarks/recipe.py listk merge --arms all,culling,gradients --seeds 0..4 --limit 300 --out ablation.jsonl
    python benchmarks/recipe.py listk --protocol paper --arms all,noise --out paper.jsonl
    python benchmarks/tables.py runs runs.jsonl

A task, or the file of one (.py), is trained by `nram train`; a file of examples by `nram learn --method train`. Every
run is counted, and none is repeated: a run that is stopped by the limit counts as not learned. Arms switch one thing
off at a time, `all` nothing; all have the same limit. With `--first`, the first-ranked member of a finished run is
tested on 1,000 fresh instances, up to the size of training and at n = 50.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from convergence import first_member

RECIPE = Path(__file__).parent.parent / "src" / "nram" / "training" / "recipe.toml"
GRACE = 30  # seconds after the limit until a run that does not stop is killed
OF_PAPER = {
    "noise": ["noise=0"],
    "entropy_bonus": ["entropy_bonus=0"],
    "curriculum": ["curriculum.enabled=false"],
    "clip_activations": ["clip_activations=inf"],  # C1
    "clip_gradient": ["clip_gradient=inf"],  # C2
    "renormalise": ["renormalise=false"],
}
"""What the paper's protocol can do without."""

OURS = {
    "culling": ["cull.share=0", "cull.lexicase=false", "cull.patience=0", "cull.islands=1", "cull.soften=0"],
    "islands": ["cull.islands=1", "cull.patience=0"],
    "restarts": ["cull.patience=0"],
    "restart_scale": ["cull.restart_scale=0"],
    "margin": ["cull.margin=1"],
    "lexicase": ["cull.lexicase=false"],
    "hard_stages": ["straight_through=false"],
    "module_order": ["modules=all", "repeats=2"],
    "turns": ["turns=equal"],
    "gradients": ["learning_rate=0"],
}
"""What the recipe can do without. Without gradients, selection and mutation are all there is."""


def start(subject: str, seed: int, arm: str, arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Start a run. Returns what is known about it."""
    name = f"{Path(subject).name}-{seed}"  # sum.py and sum.jsonl
    out = folder / (name if arm == "all" else f"{name}-{arm}")
    words = ["train", subject] if is_task(subject) else ["learn", subject, "--method", "train"]
    words += ["--protocol", arguments.protocol] if arguments.protocol else []
    words += ["--seed", str(seed), "--device", arguments.device]
    words += [word for setting in [*_switched(arm, arguments), *arguments.set] for word in ("--set", setting)]
    if not is_task(subject):
        words += ["--budget", str(arguments.limit)]
    limit = ["timeout", "-s", "INT", "-k", str(GRACE), str(arguments.limit)] if is_task(subject) else []
    log = folder / f"{out.name}.log"
    process = subprocess.Popen(
        [*limit, sys.executable, "-m", "nram", *words, "--out", str(out), "--json"],
        stdout=subprocess.PIPE,
        stderr=log.open("w"),
        env={**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
        text=True,
    )
    command = " ".join(["nram", *words])
    known = {"subject": subject, "seed": seed, "arm": arm, "command": command}
    return known | {"process": process, "out": out, "log": log, "began": time.time()}


def is_task(subject: str) -> bool:
    return Path(subject).suffix in ("", ".py")


def _switched(arm: str, arguments: argparse.Namespace) -> list[str]:
    return [] if arm == "all" else (OF_PAPER if arguments.protocol else OURS)[arm]


def ended(run: dict[str, Any], arguments: argparse.Namespace) -> dict[str, Any]:
    """The line of a run that has ended."""
    stdout, _ = run["process"].communicate()
    found = json.loads(stdout) if stdout.strip().startswith("{") else _read(run["out"] / "result.json")
    record = _read(run["out"] / "run.json") or _read(run["out"] / "training" / "0" / "run.json")
    line = {name: run[name] for name in ("subject", "seed", "arm", "command")}
    line |= {
        "learned": bool(found.get("learned")) if is_task(run["subject"]) else run["process"].returncode == 0,
        "status": run["process"].returncode,
        "seconds": round(run["took"], 1),
        "limit": arguments.limit,
        "side_by_side": arguments.side_by_side,
        "device": record.get("device"),
        "versions": record.get("versions"),
        "recipe": hashlib.sha256(RECIPE.read_bytes()).hexdigest()[:12],
    }
    kept = ("perfect_members", "halting_members", "best_validation_exact_hard", "group", "stages", "converged")
    line |= {name: found[name] for name in kept if name in found}
    reached = _reached(run["out"])
    if not reached:  # it failed before its first check: the reason is worth keeping
        line["error"] = run["log"].read_text().strip()[-500:]
    if arguments.protocol:
        line |= members_by_updates(run["out"])
    if arguments.first and is_task(run["subject"]) and (run["out"] / "result.json").is_file():
        tested = first_member(str(run["out"]))
        line["first"] = {name: tested[name] for name in ("errors", "halts", "perfect", "instances")}
    return line | {"reached": reached}


def members_by_updates(out: Path) -> dict[str, Any]:
    """How many members had converged at each check that all groups reached: [updates, soft, hard]; and by group."""
    groups = (_read(out / "run.json").get("config") or {}).get("groups") or []
    checks: list[dict[int, tuple[int, int]]] = [{} for _ in groups]
    metrics = out / "metrics.jsonl"
    for words in metrics.read_text().splitlines() if metrics.is_file() else ():
        row = json.loads(words)
        if row["step"] % groups[row["group"]]["check_every"] == 0:
            shares = (row["solved_soft"], row["solved_hard"] or 0.0)
            soft, hard = (round(share * row["population"]) for share in shares)
            checks[row["group"]][row["step"]] = soft, hard
    updates = sorted(set.intersection(*map(set, checks))) if checks else []
    curve = [[step, *(sum(one[step][part] for one in checks) for part in (0, 1))] for step in updates]
    kept = ("registers", "repeats", "hidden", "controller")
    ended = [
        {name: group["machine"][name] for name in kept}
        | {"members": group["stages"][0]["population"]}
        | ({"soft": found[updates[-1]][0], "hard": found[updates[-1]][1]} if updates else {})
        for group, found in zip(groups, checks, strict=True)
    ]
    return {"members": sum(one["members"] for one in ended), "curve": curve, "structures": ended}


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
    waiting = [(subject, seed, arm) for subject in arguments.subjects for seed in seeds for arm in arguments.arms]
    end = time.time() + (arguments.total or float("inf"))
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(1) as threads:
        folder = Path(arguments.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        running: list[dict[str, Any]] = []
        written: list[Future[None]] = []
        while waiting or running:
            while waiting and len(running) < arguments.side_by_side:
                running.append(start(*waiting.pop(0), arguments, folder))
            time.sleep(0.5)
            if time.time() > end:
                waiting, end = [], float("inf")
                for run in running:
                    run["process"].send_signal(signal.SIGINT)
            for run in [run for run in running if run["process"].poll() is not None]:
                running.remove(run)
                run["took"] = time.time() - run["began"]
                written.append(threads.submit(write, run, arguments))
        for line in written:
            line.result()  # an error is told


def write(run: dict[str, Any], arguments: argparse.Namespace) -> None:
    """Add the line of a run that has ended to the file. One thread does this: the test of a member takes a while."""
    line = ended(run, arguments)
    with arguments.out.open("a") as file:
        file.write(json.dumps(line) + "\n")
    told = (line[name] for name in ("subject", "seed", "arm", "learned", "seconds", "reached"))
    print(*told, line.get("converged", ""), flush=True)


def _arms(words: str) -> list[str]:
    return [word for word in words.split(",") if word]


def main(words: Iterable[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("subjects", nargs="+", help="those that take long first")
    parser.add_argument("--seeds", default="0", help="one, or a range as 0..9")
    parser.add_argument("--side-by-side", type=int, default=1)
    parser.add_argument("--limit", type=int, default=1800, help="seconds of one run")
    parser.add_argument("--total", type=int, help="seconds until all runs are stopped; those that wait never start")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--protocol", choices=["paper"])
    arms = f"with the recipe: {', '.join(OURS)}; with --protocol paper: {', '.join(OF_PAPER)}"
    parser.add_argument("--arms", type=_arms, default=["all"], help=f"all, and what is switched off, {arms}")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--first", action="store_true", help="also test the first-ranked member of every finished run")
    parser.add_argument("--keep", help="a folder for the runs (default: they are removed)")
    parser.add_argument("--out", type=Path, required=True, help="the file to which a line for each run is added")
    arguments = parser.parse_args(None if words is None else list(words))
    known = ("all", *(OF_PAPER if arguments.protocol else OURS))
    if unknown := [arm for arm in arguments.arms if arm not in known]:
        parser.error(f"unknown arms {', '.join(unknown)}: choose from {', '.join(known)}")
    files = [subject for subject in arguments.subjects if not is_task(subject)]
    if files and (arguments.protocol or arguments.set or arguments.arms != ["all"]):
        parser.error(f"{files[0]}: files are learned by the recipe as it is, without --protocol, --set and --arms")
    run_all(arguments)


if __name__ == "__main__":
    main()
