"""The command line of the kills: `PYTHONPATH=tests python -m kills --help`."""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")

from kills.trials import Trials, write_line
from kills.trouble import TROUBLES, can_mount


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m kills", description="Kill jobs, resume them, compare the bits.")
    parser.add_argument("--kills", type=int, default=120, help="stop after so many (default: 120)")
    parser.add_argument("--seed", type=int, default=0, help="of jobs, signals and moments (default: 0)")
    parser.add_argument("--jobs", help="names with commas (default: train,search,learn,learn by training,study)")
    parser.add_argument("--troubles", default=",".join(TROUBLES), help="default: %(default)s")
    parser.add_argument("--out", type=Path, help="a folder for summary.json and trials.jsonl")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="nram-kills-"))
    troubles = arguments.troubles.split(",")
    if "full disk" in troubles and not can_mount(folder):
        troubles.remove("full disk")
        print("without full disks: no small disk can be mounted here", flush=True)
    if arguments.out is not None:
        arguments.out.mkdir(parents=True, exist_ok=True)
    raw = (lambda line: None) if arguments.out is None else write_line(arguments.out / "trials.jsonl")
    names = arguments.jobs and arguments.jobs.split(",")
    trials = Trials(folder, arguments.seed, names, troubles, lambda text: print(text, flush=True))
    summary = {"seed": arguments.seed, **trials.run(arguments.kills, raw)}
    print(json.dumps(summary, indent=1))
    if arguments.out is not None:
        (arguments.out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    if summary["trials_with_problems"]:
        print(f"what the trials with problems left: {folder}")
    return 1 if summary["trials_with_problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
