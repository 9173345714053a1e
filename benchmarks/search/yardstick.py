"""How much work the search needs until a program fits and has no counterexamples, in candidates and processor time.

    .venv/bin/python benchmarks/search/yardstick.py --problems permutation,merge --seeds 0..4 [--most 50e6] [--out FILE]

A yardstick for changes of the engine that other work on the machine disturbs little. One worker, no shortening, and
the processor's time of the one process; chains and seeds are those of `nram search`. A problem is a task by name or a
file with a task or examples. Candidates do not depend on the machine at all: a search that was given up after --most of
them counts as one that takes forever.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from nram.search import engine
from nram.search.job import SearchJob, Space
from nram.search.shortening import simplified


def main() -> None:
    parser = argparse.ArgumentParser(description="Candidates and processor time until a program is found.")
    parser.add_argument("--problems", required=True, help="with commas between them")
    parser.add_argument("--seeds", default="0..4", help="as 0..4 or 7 (default: %(default)s)")
    parser.add_argument("--most", type=float, default=20e6, help="candidates of one search (default: %(default)g)")
    parser.add_argument("--out", type=Path, help="one line of JSON for each search; those in it are skipped")
    arguments = parser.parse_args()
    done = [json.loads(line) for line in arguments.out.read_text().splitlines()] if known(arguments.out) else []
    engine.shortened = lambda structure, genes, pool, *_: simplified(structure, genes, pool)
    engine.shortest = lambda program, *_: program
    first, _, last = arguments.seeds.partition("..")
    for problem in arguments.problems.split(","):
        for seed in range(int(first), int(last or first) + 1):
            if not any((one["problem"], one["seed"], one["most"]) == (problem, seed, arguments.most) for one in done):
                done.append(one := attempt(problem, seed, arguments.most))
                print(f"{problem}, seed {seed}: {one}", file=sys.stderr, flush=True)
                if arguments.out:
                    with arguments.out.open("a") as file:
                        file.write(json.dumps(one) + "\n")
        print(line([one for one in done if one["problem"] == problem]), flush=True)


def known(out: Path | None) -> bool:
    return out is not None and out.exists()


def attempt(problem: str, seed: int, most: float) -> dict[str, Any]:
    job = SearchJob.open(problem, Space(), seed=seed)
    ends: Counter[str] = Counter()
    original = engine.Search._use

    def use(self: Any, run: Any, pool: Any) -> Any:
        failed, strategy = original(self, run, pool), run.chain.strategy
        kind = "goes on" if strategy.goes_on else "small" if strategy.small_first else "length"
        ends[f"{run.chain.structure} {kind} {'wrong' if failed else 'right'}"] += 1
        return failed

    engine.Search._use = use
    began = time.process_time()
    try:
        outcome = job.run(float("inf"), workers=1, candidates=int(most))
    finally:
        engine.Search._use = original
    return {
        "problem": problem,
        "seed": seed,
        "most": most,
        "found": outcome.program is not None,
        "candidates": outcome.state.candidates,
        "cpu": round(time.process_time() - began, 2),
        "round": outcome.state.round,
        "fitting": dict(ends),
    }


def line(results: list[dict[str, Any]]) -> str:
    """A row of a table: medians, in which a search without a program counts as one that takes forever."""
    found = [one for one in results if one["found"]]
    middle = []
    for part in ("candidates", "cpu"):
        middle.append(statistics.median([one[part] if one["found"] else float("inf") for one in results]))
    rate = sum(one["candidates"] for one in results) / max(1e-9, sum(one["cpu"] for one in results))
    return (
        f"| {Path(results[0]['problem']).stem} | {len(found)} of {len(results)} | {middle[0] / 1e6:.2f} million "
        f"| {middle[1]:.1f} s | {rate / 1e6:.2f} million |"
    )


if __name__ == "__main__":
    main()
