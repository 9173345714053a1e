"""The lines of results/ from a study: what the tables of the docs are made of.

    nram sweep benchmarks/studies/ablation.toml
    python benchmarks/lines.py studies/ablation --out results/ablation.jsonl
    python benchmarks/tables.py arms results/ablation.jsonl

Every trial that has ended is a line, whether or not it learned, and none is there twice. To what `nram sweep` keeps
come the fingerprint of the recipe with which the study began and, for the paper's protocol, how many members had
converged after how many updates.
With `--first`, the first-ranked member of a finished run is tested on 1,000 fresh instances, up to the size of training
and at n = 50.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from convergence import first_member

ROOT = Path(__file__).parent.parent
SAME = ("seed", "learned", "ended", "seconds", "device", "versions")


def line_of(study: Path, outcome: dict[str, Any], record: dict[str, Any], first: bool) -> dict[str, Any]:
    """The line of a trial, from its line in results.jsonl, its run folder, and the study.json of its study."""
    resources = record["spec"]["resources"]
    run, subject = study / outcome["run"], Path(outcome["subject"])
    line = {"subject": subject.name, "arm": outcome["label"] or "all"}
    line |= {"command": outcome["command"].replace(f"{ROOT.resolve()}/", "")}
    line |= {name: outcome[name] for name in SAME} | {"limit": outcome["budget"]}
    line |= {"cores": resources["cores"], "gpus": resources["gpus"]} | outcome["result"]
    line |= {"recipe": record["recipe"]} if record.get("recipe") else {}
    if (_read(run / "run.json").get("config") or {}).get("ranked_by") == "training":
        line |= members_by_updates(run)
    if first and outcome["verb"] == "train" and (run / "result.json").is_file():
        tested = first_member(str(run))
        line["first"] = {name: tested[name] for name in ("errors", "halts", "perfect", "instances")}
    return line


def members_by_updates(run: Path) -> dict[str, Any]:
    """How many members had converged at each check that all groups reached: [updates, soft, hard]; and by group."""
    groups = (_read(run / "run.json").get("config") or {}).get("groups") or []
    checks: list[dict[int, tuple[int, int]]] = [{} for _ in groups]
    metrics = run / "metrics.jsonl"
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


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.is_file() else {}


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path, help="the folder of a study, or several after each other", nargs="+")
    parser.add_argument("--first", action="store_true", help="also test the first-ranked member of every finished run")
    parser.add_argument("--out", type=Path, required=True, help="the file of lines, which is written anew")
    arguments = parser.parse_args(words)
    lines = []
    for study in arguments.study:
        if not (study / "results.jsonl").is_file():
            parser.error(f"{study} is not a study that has run: it has no results.jsonl")
        record = _read(study / "study.json")
        found = map(json.loads, (study / "results.jsonl").read_text().splitlines())
        found = sorted(found, key=lambda one: (one["subject"], one["label"], one["seed"]))
        lines += [line_of(study, outcome, record, arguments.first) for outcome in found]
    arguments.out.write_text("".join(json.dumps(line) + "\n" for line in lines))
    print(f"{len(lines)} lines in {arguments.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
