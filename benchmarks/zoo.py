"""Puts a trained member of a run into the zoo: the first that is exact up to n = 50, soft and hard, and halts.

    python benchmarks/zoo.py runs/merge-1 --why "of seeds 0 and 1, the one with members that halt" --seconds 100

Members are tried in the order of their rank. One is taken if it makes no mistake on fresh instances up to n = 50, as a
continuous machine and as a program, under every step limit, halts within T(n) as a program, and `nram verify` finds no
fault in its program. The card says how it was chosen.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import nram
from nram.limits import LIMIT_NAMES
from nram.programs.files import save_program
from nram.training.evaluation import FAR, Trial, evaluate
from nram.training.run_folder import RunFolder

ZOO = Path(__file__).parent.parent / "src" / "nram" / "zoo"


def is_good(folder: RunFolder, member: int, count: int) -> bool:
    config, controller, _ = folder.load_member(member)
    for mode in ("hard", "soft"):
        for limit in LIMIT_NAMES:
            trial = Trial(config.task, FAR, count, config.seed, "choice", uniform=True)
            score = evaluate(config, controller, trial, mode, limit)
            halts = mode == "soft" or limit != "T" or score.halted == 1.0
            print(f"member {member}, {mode}, {limit}: exact {score.exact:.4f}, halts {score.halted}", file=sys.stderr)
            if score.exact < 1.0 or not halts:
                return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--why", required=True, help="why this run, of which others")
    parser.add_argument("--count", type=int, default=1000, help="instances of each test")
    parser.add_argument("--seconds", type=int, default=20, help="of each part of the verification")
    arguments = parser.parse_args()
    run, folder = nram.load_run(arguments.run), RunFolder(arguments.run)
    for member in run.members:
        if is_good(folder, member, arguments.count) and put(run, member, arguments):
            return
    sys.exit(f"no member of {arguments.run} is exact up to n = {FAR}, halts within T(n) and is verified")


def put(run: nram.Run, member: int, arguments: argparse.Namespace) -> bool:
    """Verify the program of a member, and write it and the weights if it is right."""
    program = nram.extract(run, member)
    tests = f"the first of {len(run.members)} members without a mistake at n <= {FAR}, soft and hard, that halts"
    chosen = "chosen", f"{arguments.why}; in it {tests} ({arguments.count} instances under each limit) and is verified"
    program = replace(program, made=(*program.made, chosen))
    place = ZOO / f"{program.task}@trained"
    place.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary) / "program.nram"
        save_program(program, file)
        words = ["verify", str(file), "--budget", str(arguments.seconds), "--out", str(place / "program.nram")]
        if subprocess.run([sys.executable, "-m", "nram", *words]).returncode:
            return False
    shutil.copy(arguments.run / "best" / f"{member}.safetensors", place / "weights.safetensors")
    return True


if __name__ == "__main__":
    main()
