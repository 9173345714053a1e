"""Checks of user-defined tasks. Each problem is a sentence that ends with its cure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from random import Random
from typing import Any

from nram.extensions.loading import refuse, short
from nram.limits import StepLimit
from nram.tasks._symbolic import describes
from nram.tasks.base import SymbolicCase, Task, Term

SIZES_TRIED = (0, 1, 2, 3, 5, 9, 40)  # added to the smallest complexity
DRAWN = 4  # instances of each complexity and memory size
LISTED = 5_000  # at most so many inputs of `legal_inputs` are checked
MOST_STEPS = 10**9 - 1  # each part of a step limit, as in a program's card
MOST_CELLS = 2**31 - 1  # addresses are 32-bit integers
MOST_CELLS_TRIED = 1_000_000  # at the complexities that are tried, so that the checks are quick
FAR = 1_000  # the least memory is checked for so many complexities


# ---- the fields of a task, without calling its functions


def field_problems(task: Task) -> list[str]:
    """What is wrong with the words and numbers of a task."""
    least, limit = task.min_complexity, task.step_limit
    requirements = [
        (
            isinstance(task.name, str) and re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", task.name),
            f"name is {short(task.name)}: use one word of letters, digits, - and _",
        ),
        *(
            (
                isinstance(text, str) and text.strip() and text.isprintable(),
                f"{what} is {short(text)}: say it in one line of words",
            )
            for what, text in (("summary", task.summary), ("layout", task.layout))
        ),
        (
            type(least) is int and 1 <= least <= MOST_CELLS,
            f"min_complexity is {short(least)}: complexities are whole numbers from 1 up, below 2^31",
        ),
        (
            type(task.trained_up_to) is int
            and (type(least) is not int or least <= task.trained_up_to)
            and task.trained_up_to <= MOST_CELLS,
            f"trained_up_to is {short(task.trained_up_to)}: make it a whole number, at least min_complexity",
        ),
        (isinstance(limit, StepLimit), f"step_limit is {short(limit)}: write StepLimit(2, 6) for T(n) = 2n + 6"),
        (
            not isinstance(limit, StepLimit)
            or all(type(part) is int and 0 <= part <= MOST_STEPS for part in (limit.per_item, limit.constant))
            and limit.per_item + limit.constant > 0,
            f"step_limit is {short(limit)}: whole numbers from 0 up to {MOST_STEPS:,}, and not both 0",
        ),
    ]
    for what in ("least_memory", "sample_input", "oracle", "scored_cells"):
        value = getattr(task, what)
        requirements.append((callable(value), f"{what} is {short(value)}: make it a function"))
    for what in ("sample_traced", "legal_inputs", "symbolic", "claim"):
        value = getattr(task, what)
        problem = f"{what} is {short(value)}: make it a function, or leave it out"
        requirements.append((value is None or callable(value), problem))
    return [problem for holds, problem in requirements if not holds]


# ---- checks of single results


def least_memory_problems(size: Any, n: int, most: int = MOST_CELLS) -> list[str]:
    """What is wrong with the least memory of this complexity."""
    if type(size) is not int:
        return [f"least_memory({n}) is {short(size)}: make it a whole number"]
    if size < 3:
        return [f"least_memory({n}) is {short(size)}: a memory has at least 3 cells, so write max(3, ...)"]
    if size > most:
        return [f"least_memory({n}) is {short(size)}: a memory of this complexity has at most {most:,} cells"]
    return []


def memory_problems(memory: Any, memory_size: int, what: str) -> list[str]:
    """What is wrong with a memory that should have this many cells."""
    if not isinstance(memory, list):
        return [f"{what} gives a {type(memory).__name__}: give a list of {memory_size} integers"]
    if len(memory) != memory_size:
        cure = "fill it up with zeros" if len(memory) < memory_size else "need no more than memory_size cells"
        return [f"{what} gives {len(memory)} cells instead of {memory_size}: {cure}"]
    # A quick check of all values first: memories may be large, and nearly all are right.
    if set(map(type, memory)) == {int} and min(memory) >= 0 and max(memory) < memory_size:
        return []
    cell = next(i for i, value in enumerate(memory) if type(value) is not int or not 0 <= value < memory_size)
    if type(memory[cell]) is not int:
        return [f"{what} gives {short(memory[cell])} in cell {cell}: make it a plain integer, int(...)"]
    return [
        f"{what} gives {short(memory[cell])} in cell {cell}: a memory of {memory_size} cells holds values from 0 to "
        f"{memory_size - 1}, so draw smaller values or raise least_memory"
    ]


def answer_problems(answer: Any, memory: Sequence[int], what: str) -> list[str]:
    """What is wrong with an oracle's answer to this memory."""
    if not (isinstance(answer, tuple) and len(answer) == 2):
        return [f"{what} gives {short(answer)}: give a pair, the expected memory and the list of output cells"]
    expected, cells = answer
    problems = memory_problems(expected, len(memory), what)
    addresses = _address_problems(cells, len(memory), what)
    if problems or addresses:
        return problems + addresses
    named = set(cells)
    if expected != memory:
        changed = [i for i, pair in enumerate(zip(memory, expected, strict=True)) if pair[0] != pair[1]]
        outside = [i for i in changed if i not in named]
        if outside:
            problems.append(
                f"{what} changes cell {outside[0]}, which is not among its output cells {short(cells)}: name it there, "
                "or leave the cell as it is"
            )
    return problems


def scored_problems(scored: Any, cells: list[int], what: str) -> list[str]:
    whole = isinstance(scored, list) and all(type(cell) is int for cell in scored)
    if whole and scored and len(set(scored)) == len(scored) and set(scored) <= set(cells):
        return []
    return [f"{what} gives {short(scored)}: give a list of some of the output cells, each once"]


def _address_problems(cells: Any, memory_size: int, what: str) -> list[str]:
    if not isinstance(cells, list):
        return [f"{what} names its output cells by {short(cells)}: give a list of addresses"]
    if not cells:
        return [f"{what} names no output cell: name at least one"]
    wrong = [cell for cell in cells if type(cell) is not int or not 0 <= cell < memory_size]
    if wrong:
        return [f"{what} has the output cell {short(wrong[0])}: addresses go from 0 to {memory_size - 1}"]
    if len(set(cells)) < len(cells):
        return [f"{what} names an output cell twice in {short(cells)}: name each once"]
    return []


# ---- checks over several calls


def check_behaviour(task: Task, shown: str) -> None:
    """UsageError with the first problem of the functions of a task, on small sizes.

    The functions already check their single results (`extensions.tasks.check_calls`).
    """
    refuse([*islice(_behaviour_problems(task), 1)], shown)


def _behaviour_problems(task: Task) -> Iterator[str]:
    yield from _least_memory_problems(task)
    for n in (task.min_complexity + more for more in SIZES_TRIED):
        for extra in (0, 1, n + 2):
            for seed in range(DRAWN):
                yield from _instance_problems(task, n, task.least_memory(n) + extra, seed)
    if task.legal_inputs is not None:
        yield from _listing_problems(task, task.legal_inputs)


def _least_memory_problems(task: Task) -> Iterator[str]:
    before = first = task.least_memory(task.min_complexity)
    largest = task.min_complexity + SIZES_TRIED[-1]
    yield from least_memory_problems(task.least_memory(largest), largest, MOST_CELLS_TRIED)
    for n in range(task.min_complexity, task.min_complexity + FAR):
        size = task.least_memory(n)
        if size < before:
            yield f"least_memory({n}) is {size}, and {before} for n = {n - 1}: it must not fall as n grows"
        before = size
    if before == first:
        yield f"least_memory(n) is {first} for every n: it must grow with n"


def _instance_problems(task: Task, n: int, memory_size: int, seed: int) -> Iterator[str]:
    memory = task.sample_input(Random(seed), n, memory_size)
    if task.sample_input(Random(seed), n, memory_size) != memory:
        yield (
            f"sample_input(rng, {n}, {memory_size}) gives two memories from the same seed: draw only from the rng "
            "that it is given"
        )
    yield from _oracle_problems(task, memory)


def _oracle_problems(task: Task, memory: list[int]) -> Iterator[str]:
    before = list(memory)
    answer = _copied(task.oracle(memory))
    if memory != before:
        yield f"oracle({short(before)}) changes the memory it is given: begin with memory = list(memory)"
    if _copied(task.oracle(list(before))) != answer:
        yield f"oracle({short(before)}) gives two answers to the same memory: let it depend only on the memory"
    task.scored_cells(before, answer[1])


def _copied(answer: tuple[list[int], list[int]]) -> tuple[list[int], list[int]]:
    return list(answer[0]), list(answer[1])


def _listing_problems(task: Task, listing: Callable[[int, int], Iterator[list[int]]]) -> Iterator[str]:
    for n in (task.min_complexity, task.min_complexity + 1):
        size = task.least_memory(n)
        what = f"legal_inputs({n}, {size})"
        listed = [tuple(memory) for memory in islice(listing(n, size), LISTED)]
        known = set(listed)
        if not listed:
            yield f"{what} lists nothing: list every memory that sample_input can draw"
        if len(known) < len(listed):
            yield f"{what} lists a memory twice: list each once"
        for memory in listed[:: max(1, len(listed) // 100)]:
            yield from _oracle_problems(task, list(memory))
        if len(listed) == LISTED:
            return  # too many to tell what is missing
        for seed in range(10 * DRAWN):
            memory = task.sample_input(Random(seed), n, size)
            if tuple(memory) not in known:
                yield f"{what} does not list {short(memory)}, which sample_input draws: they must agree"


def symbolic_problems(task: Task, describe: Callable[[int, Term], Iterator[SymbolicCase]]) -> Iterator[str]:
    """What is wrong with the cases for a solver: they must include drawn inputs with their answers. Imports z3."""
    for n in (task.min_complexity, task.min_complexity + 1):
        size = task.least_memory(n) + 1
        cases = list(describe(n, size))
        for seed in range(DRAWN):
            memory = task.sample_input(Random(seed), n, size)
            output, cells = task.oracle(memory)
            if not any(describes(case, memory, output, cells) for case in cases):
                yield (
                    f"symbolic({n}, {size}) has no case with {short(memory)}, which sample_input draws, and "
                    f"{short([(cell, output[cell]) for cell in cells])} expected of it: they must agree"
                )
