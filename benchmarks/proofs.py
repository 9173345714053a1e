"""Proofs for every length: which programs of the zoo are proven, and what the prover says about mutants.

    python benchmarks/proofs.py zoo --out results/proofs-zoo.jsonl
    python benchmarks/proofs.py mutants --seed 0 --seconds 600 --out results/proofs-mutants.jsonl
    python benchmarks/tables.py mutants results/proofs-mutants.jsonl

A mutant is a program of the zoo with one wire, constant, condition or module changed. In a *late* mutant the change
takes effect after a few steps only, so it is often right for small n: it has both rows, the one before and the one
after the change, and registers that tell how far the run is. The same program without the change is its *control*.
Where the control is proven, only the change can stand in the way of a proof. Where it is not, late mutants are still
tried if they are wrong, and counted by themselves.

Each mutant is run on every input with n <= 3 and M up to the least + 2, as far as four seconds allow, and on random
inputs up to n = 50. That says whether it is right and, if not, from which n on it is wrong. Most mutants are wrong at
n = 1 or 2. So what is drawn is kept or left out until there is the wanted share of each kind. Then the prover tries to
prove it. It is told nothing of these runs, and no test comes before it. The time for a mutant depends on its original
alone, and it is processor time. The invariant of the original, or of the control, is tried on the mutant as well. A
proof of a mutant that is wrong would be a mistake of the prover. `--part 0/4` takes every fourth program, beginning
with the first: parts can run side by side. A line says which wire, constant, condition or module was changed, so that
`mutant_of` makes its program again.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import nram
from nram.errors import NramError
from nram.extensions import get_module
from nram.lazy import z3
from nram.modules import MODULE_NAMES
from nram.programs import prove as prover
from nram.programs.interpret import Machine, interpret
from nram.programs.ir import Constant, Operation, Output, Program, Register, Row, Value
from nram.programs.library import limit_for, zoo_entries
from nram.programs.prove import Certificate, deadline, find_proof, prove, questions
from nram.programs.prove.certificate import altered, made_certificate
from nram.programs.prove.invariant import RowId
from nram.programs.prove.obligations import Problem
from nram.programs.prove.shipped import load_certificate
from nram.programs.verify import Report, verify
from nram.runtime import cpu_cores, versions
from nram.tasks import Task

VERSIONS = {name: words for name, words in versions().items() if name in ("python", "nram")}
SMALL = 3  # sizes of which all inputs are run
WANTED = {"small": 0.46, "later": 0.38, "right": 0.16}  # wrong at n <= 3, wrong later, right: shares of the mutants
FAR = 9  # a size at which a late change has come
SHARE_OF_LATE = 0.8
MOST_LATE = 8  # steps
LATE_BUDGET = 8.0  # no late mutants of programs that need longer: their controls are too large
LEAST_BUDGET = 1.5  # seconds of processor time for the search of a proof, or a part of what `nram prove` needs
PART_OF_ORIGINAL = 0.6  # of its time for the original, which is mostly tests and solvers
TIMES_OF_ZOO = Path(__file__).parent.parent / "results" / "proofs-zoo.jsonl"


@dataclass(frozen=True, eq=False)
class Original:
    """A program whose mutants are looked at."""

    title: str
    program: Program
    task: Task
    certificate: Certificate
    budget: float


def line(**found: Any) -> str:
    return json.dumps({**found, "device": f"{cpu_cores()} x {platform.machine()} CPU", "versions": VERSIONS})


def zoo() -> Iterator[str]:
    for entry in zoo_entries():
        proof = prove(entry.program)
        words = {"subject": entry.title, "seed": 0, "command": f"nram prove {entry.title}", **proof.to_json()}
        print(entry.title, proof.proven, f"{proof.seconds:.1f} s", *proof.failures[:3], flush=True)
        yield line(**words)


def mutants(seed: int, seconds: float, part: tuple[int, int], slowest: float, known: list[Path]) -> Iterator[str]:
    """Mutants of the programs of the zoo, for each program in as much time, until the time is over."""
    seen = set[str]()
    end = time.monotonic() + seconds
    originals = [one for one in all_originals() if one.budget <= slowest][part[0] :: part[1]]
    small = {one.task.name: small_inputs(one.task) for one in originals}
    rngs = {one.title: Random(f"{seed} {one.title}") for one in originals}
    spent = {one.title: 0.0 for one in originals}
    counts = {one.title: dict.fromkeys(WANTED, 0) for one in originals}
    controls: dict[tuple[str, int], Certificate | None] = {}
    known_from(known, seen, controls)
    for module in (prover, deadline, questions):
        vars(module)["time"] = ProcessorTime
    while time.monotonic() < end:
        original = min(originals, key=lambda one: spent[one.title])
        began = time.monotonic()
        inputs, rng = small[original.task.name], rngs[original.title]
        for found in one_mutant(original, rng, seen, inputs, controls, counts[original.title]):
            print(original.title, found, flush=True)
            yield line(subject=original.title, seed=seed, command=" ".join(sys.argv), **found)
        spent[original.title] += time.monotonic() - began


class ProcessorTime:
    """In place of the clock on the wall, for budgets that do not depend on what else the machine does."""

    monotonic = staticmethod(time.process_time)


def known_from(files: list[Path], seen: set[str], controls: dict[tuple[str, int], Certificate | None]) -> None:
    """Mutants that were drawn already, and controls that were not proven."""
    for found in (json.loads(words) for file in files for words in file.read_text().splitlines()):
        if found["kind"] != "control":
            seen.add(found["fingerprint"])
        elif not found["proven"]:
            controls[found["subject"], found["late"]] = None


def all_originals() -> list[Original]:
    told = map(json.loads, TIMES_OF_ZOO.read_text().splitlines())
    seconds = {one["subject"]: one["seconds"] for one in told}
    return [
        Original(
            title=entry.title,
            program=entry.program,
            task=nram.get_task(entry.name),
            certificate=load_certificate(entry.title)[0],
            budget=max(LEAST_BUDGET, round(PART_OF_ORIGINAL * seconds[entry.title], 1)),
        )
        for entry in zoo_entries()
    ]


def one_mutant(
    original: Original,
    rng: Random,
    seen: set[str],
    small: list[tuple[list[int], int]],
    controls: dict[tuple[str, int], Certificate | None],
    counts: dict[str, int],
) -> Iterator[dict[str, Any]]:
    """Draw a mutant. What is found about it, unless it is left out; and about its control, where that is new."""
    steps = late_steps(original, rng) if original.budget <= LATE_BUDGET and rng.random() < SHARE_OF_LATE else 0
    try:
        changed, change, place = mutated(original.program, rng)
        mutant = after(original.program, changed, steps)
    except NramError:
        return  # it is no program
    if mutant.fingerprint in seen or changed.fingerprint == original.program.fingerprint:
        return
    seen.add(mutant.fingerprint)
    if steps and not comes_to(mutant, original, place):
        return  # the change is never met
    if wrong_on(mutant, original.task, small) and (steps or too_many("small", counts)):
        return
    runs = tested(mutant, original.task)
    of = "right" if runs["right"] else "small" if runs["wrong_at"] is None or runs["wrong_at"] <= SMALL else "later"
    if too_many(of, counts):
        return
    if steps and (original.title, steps) not in controls:
        control = after(original.program, original.program, steps)
        certificate, outcome = attempted(control, original)
        controls[original.title, steps] = certificate
        yield {"kind": "control", "late": steps, **tested(control, original.task), **outcome}
    proof = controls[original.title, steps] if steps else original.certificate
    if proof is None and of != "later":
        return
    counts[of] += 1
    _, outcome = attempted(mutant, original)
    kind = "single" if not steps else "late" if proof is not None else "late, control not proven"
    about = {"kind": kind, "late": steps, "change": change, "fingerprint": mutant.fingerprint}
    inherited = proof is not None and inherits(mutant, original.task, proof)
    yield about | runs | outcome | {"proven_as_original": inherited}


def late_steps(original: Original, rng: Random) -> int:
    """After so many steps a change comes too late for n = 3, or nearly so. 0: runs do not get longer with n."""
    soon, far = (longest(original, n) for n in (SMALL, FAR))
    return rng.randint(max(2, soon - 2), min(soon, MOST_LATE)) if 2 <= soon <= MOST_LATE and far > soon + 1 else 0


@cache
def longest(original: Original, n: int) -> int:
    """How many steps the program takes at most, on a few inputs of this size."""
    runs = far_inputs(original.task, n)
    return max(
        interpret(original.program, memory, limit_for(original.program, original.task)(n)).steps for memory in runs
    )


def far_inputs(task: Task, n: int) -> list[list[int]]:
    rng = Random(0)
    return [task.sample_input(rng, n, task.least_memory(n) + extra) for extra in (0, 1, 5, n) for _ in range(6)]


def comes_to(mutant: Program, original: Original, place: RowId) -> bool:
    """Whether the changed row of a late mutant is carried out on some input."""
    late = place[0], place[1] + len(original.program.states[place[0]])
    for memory in far_inputs(original.task, FAR):
        machine = Machine(mutant, memory)
        while not machine.halted and machine.steps < limit_for(mutant, original.task)(FAR):
            state, row = machine.state, machine.choose()
            if (state, machine.row) == late:
                return True
            machine.compute(row)
    return False


def too_many(of: str, counts: dict[str, int]) -> bool:
    """Whether there are enough mutants of this kind. Kinds that cannot be made must not stop the others for ever."""
    return counts[of] > 3 + 1.4 * WANTED[of] * sum(counts.values())


def tested(program: Program, task: Task) -> dict[str, Any]:
    """Whether a program is right on all small inputs and on random ones up to n = 50, and the first n with an error."""
    report = verify(program, task, budget=4.0, exhaustive_up_to=SMALL, symbolic_up_to=0, largest=50, every_length=False)
    wrong_at = None if report.counterexample is None else report.counterexample.complexity
    return {"right": report.right and not report.harmful, "wrong_at": wrong_at, "all_small": all_small(report)}


def all_small(report: Report) -> bool:
    """Whether all inputs with n <= 3 and M up to the least + 2 were run. After the first error, none is."""
    complete = [one for one in report.findings if one.method == "exhaustive" and one.proven]
    return any(one.complexity[1] == SMALL and one.extra_memory == (0, 2) for one in complete)


def attempted(program: Program, original: Original) -> tuple[Certificate | None, dict[str, Any]]:
    """Try to prove a program, in as much time as a mutant of the original has."""
    began, processor = time.monotonic(), time.process_time()
    limit = limit_for(program, original.task)
    checked, _ = find_proof(program, original.task, limit, original.budget, lambda words: None)
    took = {"seconds": time.monotonic() - began, "processor": time.process_time() - processor}
    outcome = {"proven": checked is not None and checked.right, "budget": original.budget}
    outcome |= {name: round(seconds, 2) for name, seconds in took.items()}
    return (checked.certificate if checked is not None and checked.right else None), outcome


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


def mutated(program: Program, rng: Random) -> tuple[Program, str, RowId]:
    """The program with one change, and which and where. A NramError if the result is no program."""
    state = rng.randrange(len(program.states))
    row = rng.randrange(len(program.states[state]))
    kind = rng.choice(["argument", "argument", "register", "condition", "module"])
    changes = CHANGES[kind](program.states[state][row], len(program.registers))
    words, new = rng.choice(changes) if changes else ("nothing", program.states[state][row])
    return replaced(program, (state, row), new), f"row {row + 1}: {words}", (state, row)


def replaced(program: Program, place: RowId, new: Row) -> Program:
    """The program with another row."""
    states = [list(rows) for rows in program.states]
    states[place[0]][place[1]] = new
    return replace(program, states=tuple(map(tuple, states)), verified=(), name=f"{program.name} mutant")


def mutant_of(line: dict[str, Any]) -> Program:
    """The mutant of a line, made again."""
    original = nram.load_program(line["subject"])
    where, _, words = line["change"].partition(": ")
    (rows,), row = original.states, int(where.removeprefix("row ")) - 1
    changes = [one for kind in CHANGES.values() for one in kind(rows[row], len(original.registers))]
    new = next(new for told, new in changes if told == words)
    return after(original, replaced(original, (0, row), new), line["late"])


def after(program: Program, changed: Program, steps: int) -> Program:
    """A program that becomes the changed one after so many steps.

    So many registers more are 0 at the start and take a 1 on, one after the other. The last one says which row to use.
    """
    if steps == 0:
        return changed
    count = len(program.registers)
    handed_on: tuple[Value, ...] = (Constant(1), *map(Register, range(count, count + steps - 1)))
    states = []
    for early, late in zip(program.states, changed.states, strict=True):
        rows = [(row, True) for row in early] + [(row, False) for row in late]
        states.append(
            tuple(
                replace(row, when=(*row.when, *[None] * (steps - 1), zero), registers=(*row.registers, *handed_on))
                for row, zero in rows
            )
        )
    names = (*program.registers, *(f"late{i + 1}" for i in range(steps)))
    return replace(changed, registers=names, states=tuple(states), verified=())


def _values(registers: int, outputs: int) -> list[Value]:
    return [*map(Register, range(registers)), *map(Output, range(outputs)), *map(Constant, range(3))]


def _told(value: Value) -> str:
    match value:
        case Register(index):
            return f"r{index + 1}"
        case Output(index):
            return f"o{index + 1}"
        case Constant(number):
            return str(number)


def _with_operation(row: Row, index: int, operation: Operation) -> Row:
    return replace(row, operations=(*row.operations[:index], operation, *row.operations[index + 1 :]))


def _arguments(row: Row, registers: int) -> list[tuple[str, Row]]:
    found = []
    for index, old in enumerate(row.operations):
        for which in range(len(old.arguments)):
            for value in _values(registers, index):
                arguments = (*old.arguments[:which], value, *old.arguments[which + 1 :])
                words = f"argument {which + 1} of operation {index + 1} is {_told(value)}"
                found.append((words, _with_operation(row, index, Operation(old.module, arguments))))
    return found


def _modules(row: Row, registers: int) -> list[tuple[str, Row]]:
    found = []
    for index, old in enumerate(row.operations):
        for name in MODULE_NAMES:
            if old.arguments and len(get_module(name).arguments) == len(old.arguments) and name != "WRITE":
                new = _with_operation(row, index, Operation(name, old.arguments))
                found.append((f"operation {index + 1} is {name}", new))
    return found


def _registers(row: Row, registers: int) -> list[tuple[str, Row]]:
    return [
        (f"r{i + 1} := {_told(value)}", replace(row, registers=(*row.registers[:i], value, *row.registers[i + 1 :])))
        for i in range(registers)
        for value in _values(registers, len(row.operations))
    ]


def _conditions(row: Row, registers: int) -> list[tuple[str, Row]]:
    words = {True: "= 0", False: "> 0", None: "is anything"}
    return [
        (f"when r{i + 1} {words[zero]}", replace(row, when=(*row.when[:i], zero, *row.when[i + 1 :])))
        for i in range(registers)
        for zero in (True, False, None)
    ]


CHANGES = {"argument": _arguments, "register": _registers, "condition": _conditions, "module": _modules}
"""All changes of a row, by kind, in words."""


def _part(words: str) -> tuple[int, int]:
    index, _, count = words.partition("/")
    return int(index), int(count)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["zoo", "mutants"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument(
        "--slowest", type=float, default=1000.0, help="seconds: programs whose proof takes longer stay out"
    )
    parser.add_argument("--wanted", type=float, nargs=3, help="shares wrong at n <= 3, wrong later, right")
    parser.add_argument("--known", type=Path, nargs="*", default=[], help="lines whose mutants are not drawn again")
    parser.add_argument("--part", type=_part, default=(0, 1), help="as 0/4: the programs 0, 4, 8 and so on")
    parser.add_argument("--out", type=Path, required=True, help="the file to which a line for each program is added")
    chosen = parser.parse_args()
    if chosen.wanted:
        WANTED.update(zip(WANTED, chosen.wanted, strict=True))
    with chosen.out.open("a") as out:
        for words in (
            zoo()
            if chosen.what == "zoo"
            else mutants(chosen.seed, chosen.seconds, chosen.part, chosen.slowest, chosen.known)
        ):
            out.write(words + "\n")
            out.flush()


if __name__ == "__main__":
    main()
