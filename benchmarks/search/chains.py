"""How many chains end at a table that fits? For comparing settings of the annealer on a machine that is busy.

    python benchmarks/search/chains.py --variant before --out results/search-chains.jsonl
    python benchmarks/tables.py chains results/search-chains.jsonl

Chains of 400,000 candidates from random tables of four registers and sixteen modules, on the problems of `tuning` and
four of the ten tasks, without rounds, shortening or counterexamples. Where all answers are single cells four of five
chains start with small instances, elsewhere every second one. Candidates and fits do not depend on the machine;
`seconds` is the processor's time. `--variant` names the code as it is: to compare, run another commit under another
name.
"""

from __future__ import annotations

import argparse
import json
import platform
import shlex
import sys
import time
from pathlib import Path
from typing import Any

from nram.extensions import get_task
from nram.runtime import versions
from nram.search.chains import blocks_of, new_monitor, random_table, table_costs
from nram.search.engine import run_here
from nram.search.instances import task_pool
from nram.search.schedule import BY_LENGTH, BY_STEPS, FLOW, Chain
from nram.search.structure import Structure

TUNING = Path(__file__).parent / "tuning"
PROBLEMS = (*(path.stem for path in sorted(TUNING.glob("*.py"))), "listsearch", "merge", "permutation", "walkbst")
STRUCTURE = Structure(4, modules=FLOW)
BUDGET = 400_000


def main() -> None:
    parser = argparse.ArgumentParser(description="How many chains of the search end at a table that fits.")
    parser.add_argument("--variant", required=True, metavar="NAME", help="of the code as it is")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="one line of JSON for each problem")
    parser.add_argument("--problems", default=",".join(PROBLEMS), help="with commas between them (default: all)")
    parser.add_argument("--candidates", type=float, default=6e6, help="of each problem (default: %(default)g)")
    arguments = parser.parse_args()
    for problem in arguments.problems.split(","):
        words = f"--variant {shlex.quote(arguments.variant)} --problems {problem} --candidates {arguments.candidates:g}"
        command = f"python benchmarks/search/chains.py {words}"
        line = {"variant": arguments.variant, "command": command, **attempt(problem, int(arguments.candidates))}
        print(line, file=sys.stderr, flush=True)
        with arguments.out.open("a") as file:
            file.write(json.dumps(line) + "\n")


def attempt(problem: str, most: int) -> dict[str, Any]:
    own = TUNING / f"{problem}.py"
    pool = task_pool(get_task(str(own) if own.exists() else problem), 0)
    candidates = fits = seed = 0
    costs = []
    began = time.process_time()
    while candidates < most:
        seed += 1
        small = seed % 5 != 0 if pool.has_single_answers else seed % 2 == 1
        chain = Chain(STRUCTURE, BY_STEPS if small else BY_LENGTH, BUDGET, seed)
        genes = random_table(STRUCTURE, seed)
        end = run_here(chain, genes, pool, new_monitor())
        candidates += end.candidates
        fits += end.fits
        costs.append(float(table_costs(STRUCTURE, genes, blocks_of(pool), len(pool)).sum()))
    return {
        "subject": problem,
        "structure": str(STRUCTURE),
        "seed": 1,
        "chains": seed,
        "candidates": candidates,
        "fits": fits,
        "lower_quarter": sorted(costs)[len(costs) // 4],
        "seconds": round(time.process_time() - began, 1),
        "device": f"1 x {platform.machine()} CPU",
        "versions": versions(),
    }


if __name__ == "__main__":
    main()
