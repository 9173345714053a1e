"""How many examples does a problem of examples/suite need? With few, many programs fit that are not the one you mean.

    python benchmarks/search/examples.py --problems fill,minimum --out results/suite-examples.jsonl
    python benchmarks/search/examples.py --numbers 5,20,80 --seeds 0..2 --budget 60 --ask no --out more.jsonl
    python benchmarks/plots.py                                             # docs/images/suite-examples.svg
    python benchmarks/tables.py suite-examples results/suite-examples.jsonl

Every run is `nram.learn(..., method="search")` on so many lines of the file of about 380 examples that
examples/files/make_examples.py makes. A larger number has the examples of the smaller ones and more: they are the first
lines in an order that is drawn for the seed. `exact` is as in suite.py: right and halted by T(n) on fresh instances of
every n up to 60.

With questions, the problem's oracle answers what `nram learn --ask` would ask: an input on which the programs found
disagree. It skips inputs that its problem does not have: there it fails, takes long, or gives values beyond the memory.

Without `--problems`, the problems are those that the search has solved in results/suite-search.jsonl, the quickest
first. Runs that are in the file already are skipped, so a second call continues.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from runpy import run_path
from typing import Any

from suite import EXAMPLES, SUITE, device, looked_at, problems, seeds_of

import nram
from nram.extensions import get_task
from nram.learning.kept import Question
from nram.runtime import versions
from nram.tasks import Task

NUMBERS = "5,10,20,40,80,160,320"
SAME = ("problem", "examples", "ask", "seed", "budget", "workers")  # what tells one run from another
MOST_ANSWERS = 30
PATIENCE = 2  # seconds for the oracle: pointers of an input that cannot occur may lead in a circle
RESULTS = Path(__file__).parents[2] / "results" / "suite-search.jsonl"
lines_of_task = run_path(str(EXAMPLES / "files" / "make_examples.py"))["lines_of_task"]


class Oracle:
    """Answers questions about a task."""

    def __init__(self, task: Task):
        self.task, self.answered, self.skipped = task, 0, 0

    def __call__(self, question: Question) -> Any:
        if self.answered + self.skipped >= MOST_ANSWERS:
            return "stop"
        memory = self._answer(question.input)
        self.answered, self.skipped = self.answered + (memory is not None), self.skipped + (memory is None)
        return "skip" if memory is None else memory

    def _answer(self, start: list[int]) -> list[int] | None:
        """The memory after a right run, or None: the task has no such input."""
        before = signal.signal(signal.SIGALRM, _too_long)
        signal.alarm(PATIENCE)
        try:
            memory, cells = self.task.oracle(list(start))
        except Exception:  # whatever the oracle does on an input that it is not for
            return None
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)
        size = len(start)
        fine = len(memory) == size and all(0 <= value < size for value in memory) and all(c < size for c in cells)
        return list(memory) if fine else None


def _too_long(*_: Any) -> None:
    raise TimeoutError


def some_examples(task: Task, number: int, seed: int) -> list[dict[str, Any]]:
    """So many different examples, all among those of a larger number with the same seed."""
    lines = list(dict.fromkeys(lines_of_task(task)))
    Random(f"{task.name} {seed}").shuffle(lines)
    return [json.loads(line) for line in lines[:number]]


def attempt(name: str, number: int, ask: bool, seed: int, budget: float, workers: int) -> dict[str, Any]:
    """One run, and the test of its program."""
    task = get_task(SUITE / f"{name}.py")
    examples, oracle = some_examples(task, number, seed), Oracle(task)
    began, used = time.monotonic(), time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        learned = nram.learn(
            examples,
            Path(folder, "learned"),
            budget=budget,
            seed=seed,
            method="search",
            workers=workers,
            steps=str(task.step_limit),
            ask=oracle if ask else None,
            progress=False,
        )
    seconds, cpu = time.monotonic() - began, time.process_time() - used
    switches = f"--numbers {number} --ask {'yes' if ask else 'no'} --seeds {seed} --budget {budget:g}"
    line: dict[str, Any] = {
        "subject": name,
        "problem": name,
        "examples": number,
        "given": len(examples),  # fewer where the file has fewer different lines
        "ask": ask,
        "seed": seed,
        "budget": budget,
        "workers": workers,
        "found": learned.found,
        "exact": False,
        "seconds": round(seconds, 1),
        "cpu": round(cpu, 1),
        "answered": oracle.answered,
        "skipped": oracle.skipped,
        "command": f"python benchmarks/search/examples.py --problems {name} {switches} --workers {workers}",
        "load": round(os.getloadavg()[0], 1),
        "device": device(),
        "versions": versions(),
    }
    found = learned.program if learned.found else None
    return line | (looked_at(found, task) if found is not None else {})


def solved() -> list[str]:
    """The problems that the search has solved, the quickest first."""
    best: dict[str, float] = {}
    for line in map(json.loads, RESULTS.read_text().splitlines()):
        if line["exact"]:
            best[line["problem"]] = min(best.get(line["problem"], float("inf")), line["seconds"])
    return sorted(best, key=best.__getitem__)


def runs(arguments: argparse.Namespace) -> Iterator[tuple[str, int, bool, int]]:
    """All runs in their order: one problem after another, small numbers first."""
    asks = {"no": (False,), "yes": (True,), "both": (False, True)}[arguments.ask]
    for seed in seeds_of(arguments.seeds):
        for name in arguments.problems.split(",") if arguments.problems else solved():
            for number in map(int, arguments.numbers.split(",")):
                for ask in asks:
                    yield name, number, ask, seed


def main() -> None:
    parser = argparse.ArgumentParser(description="How many examples a problem of examples/suite needs.")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="one line of JSON for each run")
    parser.add_argument("--problems", metavar="NAMES", help="with commas between them (default: those solved so far)")
    parser.add_argument("--numbers", default=NUMBERS, help="of examples (default: %(default)s)")
    parser.add_argument("--ask", choices=("no", "yes", "both"), default="both", help="questions (default: both)")
    parser.add_argument("--seeds", default="0", help="as 0..4 or 7 (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=2, help="threads (default: %(default)s)")
    parser.add_argument("--budget", type=float, default=60.0, metavar="SECONDS", help="default: %(default)g")
    parser.add_argument("--until", type=float, metavar="SECONDS", help="begin no run after so many")
    arguments = parser.parse_args()
    unknown = set(arguments.problems.split(",") if arguments.problems else ()) - problems().keys()
    if unknown:
        parser.error(f"the suite has no {', '.join(sorted(unknown))}")
    began = time.monotonic()
    done = [json.loads(line) for line in arguments.out.read_text().splitlines()] if arguments.out.exists() else []
    known = {tuple(line[part] for part in SAME) for line in done}
    for run in runs(arguments):
        if (*run, arguments.budget, arguments.workers) in known:
            continue
        if arguments.until is not None and time.monotonic() - began > arguments.until:
            return
        name, number, ask, _ = run
        line = attempt(*run, arguments.budget, arguments.workers)
        with arguments.out.open("a") as file:
            file.write(json.dumps(line) + "\n")
        outcome = "exact" if line["exact"] else "found, wrong elsewhere" if line["found"] else "not found"
        asked = f", {line['answered']} answers" if ask else ""
        words = f"{name}, {number} examples{asked}: {outcome}, {line['seconds']:.0f} s"
        print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
