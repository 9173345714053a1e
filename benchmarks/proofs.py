"""Proofs for every length: which programs of the zoo are proven, and what the prover says about mutants.

    python benchmarks/proofs.py zoo --out results/proofs-zoo.jsonl
    python benchmarks/proofs.py mutants --seed 0 --seconds 600 --out results/proofs-mutants.jsonl
    python benchmarks/tables.py proofs results/proofs-zoo.jsonl

A mutant is a program of the zoo with one wire, constant, condition or module changed. In a *late* mutant the change
takes effect after a few steps only: the first steps are states of their own. So it is right for small n. Each mutant is
first run on inputs up to n = 50, which says whether it is right and, if not, from which n on it is wrong. Then the
prover tries to prove it, without looking at these runs, and the invariant of the original is tried on it. A proof of a
mutant that is wrong would be a mistake of the prover.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import nram
from nram.errors import NramError
from nram.extensions import get_module
from nram.lazy import z3
from nram.modules import MODULE_NAMES
from nram.programs.interpret import interpret
from nram.programs.ir import Constant, Operation, Output, Program, Register, Row, Value
from nram.programs.library import limit_for, zoo_entries
from nram.programs.prove import Certificate, find_proof, prove
from nram.programs.prove.certificate import altered, made_certificate
from nram.programs.prove.obligations import Problem
from nram.programs.prove.shipped import load_certificate
from nram.programs.verify import verify
from nram.runtime import cpu_cores, versions
from nram.tasks import Task

SMALL = 3  # mutants that are wrong at n <= 3 are many: most of them are left out
SHARE_OF_SMALL = 0.15
SHARE_OF_LATE = 0.3
BUDGET = 10.0  # seconds for the proof of a mutant


def line(**found: Any) -> str:
    return json.dumps({**found, "device": f"{cpu_cores()} x {platform.machine()} CPU", "versions": versions()})


def zoo() -> Iterator[str]:
    for entry in zoo_entries():
        proof = prove(entry.program)
        words = {"subject": entry.title, "seed": 0, "command": f"nram prove {entry.title}", **proof.to_json()}
        print(entry.title, proof.proven, f"{proof.seconds:.1f} s", *proof.failures[:3], flush=True)
        yield line(**words)


def mutants(seed: int, seconds: float) -> Iterator[str]:
    """Mutants of all programs of the zoo in turn, until the time is over."""
    rng, seen = Random(seed), set[str]()
    deadline = time.monotonic() + seconds
    entries = zoo_entries()
    small = {entry.name: small_inputs(nram.get_task(entry.name)) for entry in entries}
    certificates = {entry.title: load_certificate(entry.title)[0] for entry in entries}
    index = 0
    while time.monotonic() < deadline:
        entry = entries[index % len(entries)]
        index += 1
        try:
            mutant, change = (late if rng.random() < SHARE_OF_LATE else mutated)(entry.program, rng)
        except NramError:
            continue  # it is no program
        if mutant.fingerprint in seen or mutant.fingerprint == entry.program.fingerprint:
            continue
        seen.add(mutant.fingerprint)
        task = nram.get_task(entry.name)
        if wrong_on(mutant, task, small[entry.name]) and rng.random() > SHARE_OF_SMALL:
            continue
        found = judged(mutant, task, certificates[entry.title])
        print(entry.title, change, found, flush=True)
        yield line(
            subject=entry.title,
            seed=seed,
            command=f"benchmarks/proofs.py mutants --seed {seed}",
            change=change,
            fingerprint=mutant.fingerprint,
            **found,
        )


def judged(mutant: Program, task: Task, original: Certificate) -> dict[str, Any]:
    """Whether a mutant is right up to n = 50, and whether it is proven."""
    report = verify(mutant, task, budget=1.0, symbolic_up_to=0, largest=50, every_length=False)
    right = report.right and not report.harmful
    wrong_from = None if report.counterexample is None else report.counterexample.complexity
    began = time.monotonic()
    checked, _ = find_proof(mutant, task, limit_for(mutant, task), BUDGET, lambda words: None)
    proven = checked is not None and checked.right
    seconds = round(time.monotonic() - began, 2)
    found = {"right": right, "wrong_at": wrong_from, "proven": proven, "seconds": seconds}
    return found | {"proven_as_original": inherits(mutant, task, original)}


def inherits(mutant: Program, task: Task, original: Certificate) -> bool:
    """Whether z3 proves every obligation that the invariant of the original leads to for the mutant."""
    try:
        made = made_certificate(
            Problem(replace(mutant, verified=()), task, limit_for(mutant, task)), original.invariant
        )
    except (NramError, LookupError):  # it has other rows
        return False
    return altered(made, task) is None and all(map(proven_by_z3, (text for _, text in made.obligations)))


def proven_by_z3(text: str) -> bool:
    solver = z3.Solver()
    solver.set("timeout", 5000)
    solver.from_string(text)
    return str(solver.check()) == "unsat"


def small_inputs(task: Task) -> list[tuple[list[int], int]]:
    rng = Random(0)
    sizes = [(n, extra) for n in range(task.min_complexity, SMALL + 1) for extra in (0, 1, 2, 5)]
    return [(task.sample_input(rng, n, task.least_memory(n) + extra), n) for n, extra in sizes for _ in range(6)]


def wrong_on(program: Program, task: Task, inputs: list[tuple[list[int], int]]) -> bool:
    limit = limit_for(program, task)
    for memory, n in inputs:
        expected, cells = task.oracle(memory)
        for steps in (limit(n), 2 * limit(n)):
            ending = interpret(program, memory, steps)
            if any(ending.memory[cell] != expected[cell] for cell in cells):
                return True
    return False


def mutated(program: Program, rng: Random) -> tuple[Program, str]:
    """The program with one change, and which. A NramError if the result is no program."""
    states = [list(rows) for rows in program.states]
    state = rng.randrange(len(states))
    row = rng.randrange(len(states[state]))
    old = states[state][row]
    kind = rng.choice(["argument", "argument", "register", "condition", "module"])
    changes = {"argument": _argument, "register": _register, "condition": _condition, "module": _module}
    new = changes[kind](old, rng, len(program.registers))
    states[state][row] = new
    made = replace(program, states=tuple(map(tuple, states)), verified=(), name=f"{program.name} mutant")
    return made, f"{kind} of row {row + 1}"


def late(program: Program, rng: Random) -> tuple[Program, str]:
    """A mutant whose first steps are those of the program: copies of its states, of which the last one is mutated."""
    count, copies = len(program.states), rng.randint(3, 8)
    mutant, change = mutated(program, rng)
    states = []
    for copy in range(copies + 1):
        first = count * min(copy + 1, copies)
        rows = (mutant if copy == copies else program).states
        states += [tuple(replace(row, next_state=first + row.next_state) for row in of_state) for of_state in rows]
    return replace(mutant, states=tuple(states)), f"{change}, after {copies} steps"


def _value(rng: Random, registers: int, outputs: int) -> Value:
    choices: list[Value] = [*map(Register, range(registers)), *map(Output, range(outputs)), *map(Constant, range(3))]
    return rng.choice(choices)


def _argument(row: Row, rng: Random, registers: int) -> Row:
    takers = [i for i, operation in enumerate(row.operations) if operation.arguments]
    if not takers:
        return row
    index = rng.choice(takers)
    arguments = list(row.operations[index].arguments)
    arguments[rng.randrange(len(arguments))] = _value(rng, registers, index)
    operations = list(row.operations)
    operations[index] = Operation(operations[index].module, tuple(arguments))
    return replace(row, operations=tuple(operations))


def _module(row: Row, rng: Random, registers: int) -> Row:
    takers = [i for i, operation in enumerate(row.operations) if operation.arguments]
    if not takers:
        return row
    index = rng.choice(takers)
    old = row.operations[index]
    same = [name for name in MODULE_NAMES if len(get_module(name).arguments) == len(old.arguments) and name != "WRITE"]
    operations = list(row.operations)
    operations[index] = Operation(rng.choice(same), old.arguments)
    return replace(row, operations=tuple(operations))


def _register(row: Row, rng: Random, registers: int) -> Row:
    new = list(row.registers)
    new[rng.randrange(registers)] = _value(rng, registers, len(row.operations))
    return replace(row, registers=tuple(new))


def _condition(row: Row, rng: Random, registers: int) -> Row:
    when = list(row.when)
    when[rng.randrange(registers)] = rng.choice([True, False, None])
    return replace(row, when=tuple(when))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["zoo", "mutants"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--out", type=Path, required=True, help="the file to which a line for each program is added")
    chosen = parser.parse_args()
    with chosen.out.open("a") as out:
        for words in zoo() if chosen.what == "zoo" else mutants(chosen.seed, chosen.seconds):
            out.write(words + "\n")
            out.flush()


if __name__ == "__main__":
    main()
