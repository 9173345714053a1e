"""A program for the inputs of its task alone: rows that no such input leads to are dropped.

Trained tables have rows for flags that only a memory which is no instance of the task could cause. On the task's
inputs the result does the same, step by step; on other memories it may not. That is tested here, on instances that
were not used to choose the rows, and not proven: 'nram verify' shows what holds of the result.
"""

from __future__ import annotations

from collections.abc import Iterator

from nram.errors import NramError
from nram.programs.interpret import Machine, interpret
from nram.programs.ir import Program
from nram.programs.simplify import simplify
from nram.programs.simplify.table import Place
from nram.tasks.base import Instance, Task

SMALL = 8  # every complexity up to here, and a few larger ones
LARGER = (12, 20, 35, 50)
EXTRA_MEMORY = (0, 1, 7, 30)
INSTANCES = 12  # for each complexity and memory size
MOST_ROUNDS = 10


def specialise(program: Program, task: Task, seed: int = 0) -> Program:
    """The program without the rows that the task's instances never lead to."""
    simple = simplify(program)
    visited: set[Place] = set()
    for instance, limit in _instances(task, 2 * seed):
        visited |= visited_places(simple, instance, limit)
    for round_ in range(MOST_ROUNDS):
        shorter = simplify(simple, visited=visited)
        before = len(visited)
        for instance, limit in _instances(task, 1_000_003 + 2 * (seed + round_)):
            # Held to the program as it was given, so that this also checks what was simplified before.
            if not _same(program, shorter, instance, limit):
                places = visited_places(simple, instance, limit)
                if places <= visited:
                    raise NramError(f"simplifying {program.name} changed what it does: please report this program")
                visited |= places
        if len(visited) == before:
            return shorter
    raise NramError(f"rows for {task.name} kept appearing after {MOST_ROUNDS} rounds: simplify it for every input")


def _instances(task: Task, seed: int) -> Iterator[tuple[Instance, int]]:
    """Instances of many sizes, each with the longest step limit under which a program must be right."""
    for n in (*range(task.min_complexity, SMALL + 1), *LARGER):
        for extra in EXTRA_MEMORY:
            for instance in task.sample(n, INSTANCES, seed, task.least_memory(n) + extra):
                yield instance, task.step_limit.longest(n)


def visited_places(program: Program, instance: Instance, limit: int) -> set[Place]:
    """The states and flags that a run goes through."""
    machine = Machine(program, instance.input)
    places: set[Place] = set()
    for _ in range(limit):
        places.add((machine.state, tuple(value == 0 for value in machine.registers)))
        row = machine.choose()
        machine.compute(row)
        if row.halt:
            break
    return places


def _same(one: Program, other: Program, instance: Instance, limit: int) -> bool:
    first, second = (interpret(program, instance.input, limit) for program in (one, other))
    return (first.memory, first.steps, first.halted) == (second.memory, second.steps, second.halted)
