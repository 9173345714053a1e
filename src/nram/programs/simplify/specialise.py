"""Specialising a program for the inputs of its task: rows that no such input leads to are dropped.

A trained table has rows for flags that only occur on memories that are not instances of the task. On the task's
inputs the result does the same, step by step; on other memories it may not. This is tested here, on instances that
were not used to choose the rows, but not proven: run 'nram verify' on the result.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace

from nram.errors import NramError, UsageError
from nram.extensions import get_task
from nram.programs.execute import execute
from nram.programs.interpret import Machine
from nram.programs.ir import Program
from nram.programs.simplify import simplify, size_of
from nram.programs.simplify.table import Situation
from nram.tasks.base import Instance, Task

SMALL = 8  # every complexity up to here, and a few larger ones
LARGER = (12, 20, 35, 50)
EXTRA_MEMORY = (*range(9), 30)  # what a program does may depend on a single size
INSTANCES = 8  # for each complexity and memory size
COMPARED = 30  # the same for comparisons, which machine code makes
MOST_ROUNDS = 10


def specialise(program: Program, task: Task, seed: int = 0) -> Program:
    """The program without the rows that no instance of the task leads to."""
    simple = simplify(program)
    visited: set[Situation] = set()
    for instances, limit in _instances(task, 2 * seed, INSTANCES):
        for instance in instances:
            visited |= visited_situations(simple, instance, limit)
    for round_ in range(MOST_ROUNDS):
        shorter, known = simplify(simple, visited=visited), frozenset(visited)
        for instances, limit in _instances(task, 1_000_003 + 2 * (seed + round_), COMPARED):
            # Compare with the given program, not the simplified one: this also checks the first simplification.
            for instance in _differing(program, shorter, instances, limit):
                situations = visited_situations(simple, instance, limit)
                if situations <= known:
                    raise NramError(f"simplifying {program.name} changed what it does: please report this program")
                visited |= situations
        if len(visited) == len(known):
            return shorter
    raise NramError(f"new rows for {task.name} appeared in each of {MOST_ROUNDS} rounds: simplify it for every input")


def _instances(task: Task, seed: int, count: int) -> Iterator[tuple[list[Instance], int]]:
    """Instances of many sizes, with the longest step limit under which a program must be right on them."""
    for n in (*range(task.min_complexity, SMALL + 1), *LARGER):
        for extra in EXTRA_MEMORY:
            yield task.sample(n, count, seed, task.least_memory(n) + extra), task.step_limit.longest(n)


def visited_situations(program: Program, instance: Instance, limit: int) -> set[Situation]:
    """The situations that a run goes through."""
    machine = Machine(program, instance.input)
    situations: set[Situation] = set()
    while not machine.halted and machine.steps < limit:
        situations.add((machine.state, machine.flags))
        machine.compute(machine.choose())
    return situations


def _differing(one: Program, other: Program, instances: Sequence[Instance], limit: int) -> list[Instance]:
    """The instances on which two programs differ in memory, steps or halting."""
    results = (execute(program, [instance.input for instance in instances], limit) for program in (one, other))
    first, second = (zip(result.memory, result.steps, result.halted, strict=True) for result in results)
    return [instance for instance, a, b in zip(instances, first, second, strict=True) if a != b]


def simplified(program: Program, task: Task | str | os.PathLike[str] | None, keep_registers: bool) -> Program:
    """The work of `Program.simplify`. The card says what was done."""
    if task is not None and keep_registers:
        raise UsageError("--keep-registers and --task exclude each other: leave one of them out")
    if task is None:
        after, scope = simplify(program, keep_registers=keep_registers), "with the same meaning on every memory"
    else:
        known = task if isinstance(task, Task) else get_task(task)
        after, scope = specialise(program, known), f"for the inputs of {known.name}"
    kept = tuple(pair for pair in after.made if pair[0] != "simplified")
    return replace(after, made=(*kept, ("simplified", f"from {size_of(program)}, {scope}")))
