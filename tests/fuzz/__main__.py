"""The command line of the fuzzing: `PYTHONPATH=tests python -m fuzz --help`."""

import argparse
import json
import os
import sys
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its buffers for many cores exceed the limit of a worker

from fuzz.kinds import KINDS
from fuzz.runner import FINDINGS, Fuzzing, attempt, to_table


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Broken and hostile files.")
    parser.add_argument("--kinds", "--kind", default=",".join(KINDS), help=f"default: {','.join(KINDS)}")
    parser.add_argument("--seed", type=int, default=0, help="of the mutations (default: 0)")
    parser.add_argument("--inputs", type=int, default=10_000, help="of each kind, at least (default: 10000)")
    parser.add_argument("--seconds", type=float, default=0.0, help="go on with more inputs until then (default: 0)")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes (default: one per core)")
    parser.add_argument("--out", type=Path, help="write the summary to this JSON file")
    parser.add_argument("--save", type=Path, default=Path("runs/fuzz"), help="folder for the inputs of findings")
    parser.add_argument("--only", type=int, metavar="K", help="show input K of the one kind, and what comes of it")
    arguments = parser.parse_args()
    names = arguments.kinds.split(",")
    if unknown := [name for name in names if name not in KINDS]:
        parser.error(f"there is no kind {unknown[0]}: choose of {', '.join(KINDS)}")
    if arguments.only is not None:
        return show(names[0], arguments.seed, arguments.only)
    inputs = {KINDS[name]: arguments.inputs for name in names}
    fuzzing = Fuzzing(inputs, arguments.seed, arguments.seconds, arguments.workers, arguments.save)
    summary = fuzzing.run()
    print(to_table(summary))
    missing = {name: row["missing"] for name, row in summary["kinds"].items() if "missing" in row}
    for name, package in missing.items():
        print(f"{name}: not tried, since {package} is not installed")
    for finding in summary["findings"]:
        again = f"--kind {finding['kind']} --seed {arguments.seed} --only {finding['first']}"
        print(f"{finding['count']} x {finding['verdict']}: {finding['what']}\n    python -m fuzz {again}")
    if arguments.out is not None:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(summary, indent=1) + "\n")
    return 1 if summary["findings"] or missing else 0


def show(name: str, seed: int, index: int) -> int:
    """Print one input and try it in this process."""
    for file, content in KINDS[name].input(seed, index).items():
        print(f"---- {file}, {len(content):,} bytes")
        print(content[:4000].decode("utf-8", "backslashreplace"))
    verdict = attempt(KINDS[name], seed, index)
    print(f"---- {verdict.verdict} {verdict.what}\n{verdict.details}")
    return 1 if verdict.verdict in FINDINGS else 0


if __name__ == "__main__":
    sys.exit(main())
