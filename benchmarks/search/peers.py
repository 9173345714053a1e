"""The search beside its peers: the same problems, examples, budget and core.

    python benchmarks/search/peers.py --budget 60 --out results/suite-peers.jsonl
    python benchmarks/search/peers.py --methods genetic,cvc5 --tiers 1 --seeds 0..2 --budget 120 --out more.jsonl
    python benchmarks/search/peers.py --problems access,increment --methods search,z3,random --budget 40 --out ten.jsonl
    python benchmarks/tables.py peers results/suite-peers.jsonl results/suite-h200.jsonl

`search` is `nram search`; `genetic` is our genetic programming in the manner of PushGP; `cvc5` is SyGuS, for problems
whose cells have an expression without a loop. `z3` and `random` get the modules in the paper's order and, like all, no
structure: they try four in turn, each for twice as long as the time before. On seven of the paper's tasks they are
given one that has a program.

All continue until a program passes the same fresh instances. `exact` is the same as in suite.py: right and halted by
T(n) on fresh instances of every n up to 60. An attempt is a process on one core, pinned to it. Its clock starts when
everything is imported and compiled. Attempts that are in the file already are skipped, so a second call continues.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import Any, NamedTuple

import random_search
import z3_synthesis
from genetic import evolve
from suite import SUITE, device, fresh_instances, looked_at, problems, seeds_of
from sygus import LOOP_FREE, express

from nram.extensions import get_task, task_names
from nram.programs.ir import Program
from nram.runtime import versions
from nram.search.job import SearchJob, Space
from nram.search.structure import Structure
from nram.tasks.base import Task

# Of the paper's tasks z3 and random search get the structure of a program that solves it; of others they try FOUR.
GIVEN = {
    "access": Structure(2, 1),
    "increment": Structure(2, 1),
    "copy": Structure(3, 1),
    "reverse": Structure(3, 1),
    "listk": Structure(3, 1),
    "swap": Structure(4, 2),
    "permutation": Structure(3, 2),
}
FOUR = (Structure(2, 1), Structure(3, 1), Structure(3, 2), Structure(4, 2))
FIRST_TURN = 2.0  # seconds of each of the four; every further turn has twice as many
WARMING = 60.0  # the most seconds for a first attempt on the easiest task, which compiles everything
STARTING = 600.0  # the most seconds until a process is ready, with much other work on the machine
GRACE = 30.0  # after the budget, until a process is killed
SAME = ("problem", "method", "seed", "budget")  # what tells one attempt from another


class Answer(NamedTuple):
    """What a method says at its end."""

    program: Any
    """A program, an expression for every cell, or None."""
    work: int
    """Candidates, or questions to a solver."""


# ---- the methods: (task, seed, timeout) -> a program that fits and generalises, and the work


def by_search(task: Task, seed: int, timeout: float) -> Answer:
    outcome = SearchJob.open(task, Space(), seed=seed).run(timeout, workers=1)
    return Answer(outcome.program, outcome.state.candidates)


def by_genetic(task: Task, seed: int, timeout: float) -> Answer:
    done = evolve(task, seed, timeout)
    return Answer(done.program, done.candidates)


def by_sygus(task: Task, seed: int, timeout: float) -> Answer:
    done = express(task, seed, timeout)
    return Answer(done.expression, done.questions)


def by_z3(task: Task, seed: int, timeout: float) -> Answer:
    def one(structure: Structure, turn: int, seconds: float) -> Answer:
        done = z3_synthesis.synthesise(task, structure, seed + turn, seconds)
        return Answer(done.program, done.questions)

    return in_turns(task, timeout, one)


def at_random(task: Task, seed: int, timeout: float) -> Answer:
    def one(structure: Structure, turn: int, seconds: float) -> Answer:
        done = random_search.draw(task, structure, 1000 * seed + turn, seconds)
        return Answer(done.program, done.candidates)

    return in_turns(task, timeout, one)


def in_turns(task: Task, timeout: float, one: Callable[[Structure, int, float], Answer]) -> Answer:
    """Try structures in turn, every time for twice as long. A structure that is given has all the time."""
    began, work, seconds = time.monotonic(), 0, FIRST_TURN
    if task.name in GIVEN:
        return one(GIVEN[task.name], 0, timeout)
    turn = 0
    while time.monotonic() - began < timeout:
        for structure in FOUR:
            left = timeout - (time.monotonic() - began)
            if left > 0:
                answer = one(structure, turn, min(seconds, left))
                work, turn = work + answer.work, turn + 1
                if answer.program is not None:
                    return Answer(answer.program, work)
        seconds *= 2
    return Answer(None, work)


METHODS: dict[str, Callable[[Task, int, float], Answer]] = {
    "search": by_search,
    "genetic": by_genetic,
    "cvc5": by_sygus,
    "z3": by_z3,
    "random": at_random,
}
# cvc5 has nothing to compile. The loop-free tasks of the paper's ten, beside the suite's.
TASKS_OF = {"cvc5": (*LOOP_FREE, "access", "increment", "copy", "reverse", "swap", "permutation")}


# ---- an attempt in its process


def attempt(method: str, name: str, seed: int, budget: float, core: int) -> dict[str, Any]:
    """One line: what a method has found within the budget."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_work, args=(method, name, seed, budget, core, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        if not ours.poll(STARTING):
            raise SystemExit(f"{name}, {method}: not ready after {STARTING:.0f} s")
        ours.recv()
        if ours.poll(budget + GRACE):
            result = ours.recv()
            if result["found"]:
                result |= ours.recv()  # the test of the program, which has its own time
        else:
            result = {"found": False, "seconds": budget, "killed": True}
    except EOFError:
        raise SystemExit(f"{name}, {method}, seed {seed}: the process ended without an answer") from None
    finally:
        process.kill()
        process.join()
    shown = f"python benchmarks/search/peers.py --problems {name} --methods {method} --seeds {seed} --budget {budget:g}"
    origin = {"command": shown, "load": round(os.getloadavg()[0], 1), "device": device(), "versions": versions()}
    start = {"subject": name, "problem": name, "method": method, "seed": seed, "budget": budget, "exact": False}
    return start | result | origin


def _work(method: str, name: str, seed: int, budget: float, core: int, parent: Any) -> None:
    os.sched_setaffinity(0, {core})
    task = task_of(name)
    if method != "cvc5":
        METHODS[method](get_task("access"), 0, WARMING)
    parent.send("ready")
    began, used = time.monotonic(), time.process_time()
    answer = METHODS[method](task, seed, budget)
    seconds, cpu = time.monotonic() - began, time.process_time() - used
    found = answer.program is not None and seconds <= budget + 1  # a last check may end a little later
    parent.send({"found": found, "seconds": round(seconds, 2), "cpu": round(cpu, 2), "candidates": answer.work})
    if found:
        parent.send(_judged(answer.program, task))


def _judged(found: Any, task: Task) -> dict[str, Any]:
    """Whether a program, or an expression for every cell, is right on fresh instances."""
    if isinstance(found, Program):
        return looked_at(found, task)
    right = total = 0
    for instance in (one for instances in fresh_instances(task) for one in instances):
        total += 1
        right += all(found(instance.input, cell) == instance.output[cell] for cell in instance.cells)
    return {"exact": right == total, "fresh": total, "fresh_right": right}


def task_of(name: str) -> Task:
    return get_task(name if name in task_names() else SUITE / f"{name}.py")


# ---- all of them


def jobs(arguments: argparse.Namespace, known: set[tuple[Any, ...]]) -> Iterator[tuple[str, str, int]]:
    """The attempts that are not in the file yet, in their order: first one seed of everything."""
    tiers = [str(tier) for tier in arguments.tiers.split(",")]
    names = [name for name, tier in problems().items() if str(tier) in tiers]
    for seed in seeds_of(arguments.seeds):
        for name in arguments.problems.split(",") if arguments.problems else names:
            for method in arguments.methods.split(","):
                fits = name in TASKS_OF.get(method, (name,))
                if fits and (name, method, seed, arguments.budget) not in known:
                    yield name, method, seed


def main() -> None:
    parser = argparse.ArgumentParser(description="The search beside its peers, on the problems of examples/suite.")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="one line of JSON for each attempt")
    parser.add_argument("--problems", metavar="NAMES", help="with commas between them; also the paper's tasks")
    parser.add_argument("--tiers", default="1,2,3,4", help="which (default: all)")
    parser.add_argument("--methods", default=",".join(METHODS), help="default: %(default)s")
    parser.add_argument("--seeds", default="0", help="as 0..4 or 7 (default: %(default)s)")
    parser.add_argument("--budget", type=float, default=60.0, metavar="SECONDS", help="default: %(default)g")
    parser.add_argument("--side-by-side", type=int, default=1, metavar="N", help="attempts at a time, a core each")
    parser.add_argument("--until", type=float, metavar="SECONDS", help="begin no attempt after so many")
    arguments = parser.parse_args()
    unknown = set(arguments.methods.split(",")) - METHODS.keys()
    if unknown or arguments.budget <= 0:
        parser.error(f"--methods are of {', '.join(METHODS)}, and --budget is above 0")
    cores = sorted(os.sched_getaffinity(0))
    if not 1 <= arguments.side_by_side <= len(cores):
        parser.error(f"--side-by-side is from 1 to {len(cores)}, the cores of this process")
    done = [json.loads(line) for line in arguments.out.read_text().splitlines()] if arguments.out.exists() else []
    known = {tuple(line[part] for part in SAME) for line in done}
    began, lock, free = time.monotonic(), Lock(), SimpleQueue()
    for core in cores[-arguments.side_by_side :]:
        free.put(core)

    def one(job: tuple[str, str, int]) -> None:
        if arguments.until is not None and time.monotonic() - began > arguments.until:
            return
        (name, method, seed), core = job, free.get()
        try:
            line = attempt(method, name, seed, arguments.budget, core)
        finally:
            free.put(core)
        with lock, arguments.out.open("a") as file:
            file.write(json.dumps(line) + "\n")
        outcome = "exact" if line["exact"] else "found" if line["found"] else "not found"
        print(f"{name}, {method}, seed {seed}: {outcome}, {line['seconds']:.1f} s", file=sys.stderr, flush=True)

    with ThreadPoolExecutor(arguments.side_by_side) as executor:
        for _ in executor.map(one, jobs(arguments, known)):
            pass


if __name__ == "__main__":
    main()
