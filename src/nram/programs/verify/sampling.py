"""Random instances: at the trained size, at n = 50, and far beyond."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from nram.programs.verify.batches import Judge
from nram.programs.verify.findings import Failure, Finding, Part, Skipped
from nram.programs.verify.question import Question
from nram.tasks.base import Task

CELLS_AT_ONCE = 1 << 20
FAR = 50
COUNTS = ((100, 1000), (1_000, 200), (10_000, 50))  # up to this n, so many instances
LEAST_COUNT = 20
SIZES = 10  # of memories larger than the least, for each n
MOST_TRIES, LEAST_TRIES = 64, 4  # instances of each size when looking for a smaller failure


@dataclass(frozen=True)
class _Group:
    """One line of the plan: so many instances of these complexities each."""

    complexities: tuple[int, ...]
    each: int


def run_sampled(question: Question, *, largest: int, seed: int, seconds: float, beyond: bool) -> Part:
    """Run random instances of ever larger n. Half have the least memory, the others more, up to twice as much."""
    task = question.task
    part = Part()
    deadline = time.monotonic() + seconds
    for group in _plan(task, largest):
        low, high = group.complexities[0], group.complexities[-1]
        what = f"n = {low}" if low == high else f"n = {low} to {high}"
        began = time.monotonic()
        judges = []
        complete = True
        for n in group.complexities:
            judge = Judge(question, n, "random", beyond and not part.fails(at_first=False))
            complete = _sample(judge, group.each, seed, deadline)
            judges.append(judge)
            part.failures += judge.failures
            if judge.at_first is not None:
                return part
            if not complete:
                break
        seen = [judge for judge in judges if judge.instances]
        instances = sum(judge.instances for judge in seen)
        if seen:
            question.progress(f"random: {what}: {instances:,} instances{'' if complete else ', not all'}")
            part.findings.append(
                Finding(
                    method="random",
                    complexity=(seen[0].n, seen[-1].n),
                    extra_memory=(0, max(judge.largest - task.least_memory(judge.n) for judge in seen)),
                    instances=instances,
                    proven=False,
                    limits=tuple(name for name in seen[0].right if all(name in judge.right for judge in seen)),
                    halts=all(judge.halts for judge in seen),
                    seconds=time.monotonic() - began,
                )
            )
        if not complete:
            part.skipped.append(Skipped("random", (judges[-1].n, largest), "the other instances", "out of time"))
            return part
    return part


def find_smaller(question: Question, failure: Failure, *, seed: int, seconds: float) -> Failure:
    """A failure at the smallest size on which random instances show one: this one if there is none smaller."""
    task = question.task
    deadline = time.monotonic() + seconds
    extra = len(failure.memory) - task.least_memory(failure.complexity)
    for n in _ascending(task.min_complexity, failure.complexity):
        if time.monotonic() >= deadline:
            break
        judge = Judge(question, n, "random")
        for size in sorted({task.least_memory(n) + more for more in (0, 1, 2, extra)}):
            if n == failure.complexity and size >= len(failure.memory):
                break
            tries = max(LEAST_TRIES, min(MOST_TRIES, CELLS_AT_ONCE // (4 * size), judge.most_at_once))
            judge.take(_inputs(task, n, size, tries, f"{seed} smaller"))
            found = [one for one in judge.failures if one.at_first or not failure.at_first]
            if found:
                question.progress(f"random: a smaller failure at n = {n}, M = {size}")
                return min(found, key=lambda one: (not one.at_first, one.size))
    return failure


def _plan(task: Task, largest: int) -> Iterator[_Group]:
    trained = min(task.trained_up_to, largest)
    smaller = tuple(range(task.min_complexity, trained + 1))
    if smaller:
        yield _Group(smaller, -(-_count(trained) // (2 * len(smaller))))
    sizes = {trained, FAR, largest}
    size = 1_000
    while size < largest:
        sizes.add(size)
        size *= 10
    for n in sorted(sizes):
        if task.min_complexity <= n <= largest:
            yield _Group((n,), _count(n) // 2 if n == trained else _count(n))


def _count(n: int) -> int:
    return next((count for up_to, count in COUNTS if n <= up_to), LEAST_COUNT)


def _extras(task: Task, n: int, seed: int) -> list[int]:
    """How much more than the least memory there is: one more, twice as much, and something between."""
    least = task.least_memory(n)
    between = Random(f"{task.name} {n} {seed}").sample(range(1, least + 1), min(least, SIZES))
    return sorted({1, least, *between})


def _sample(judge: Judge, instances: int, seed: int, deadline: float) -> bool:
    """Run so many instances; False if the time did not suffice."""
    task, n = judge.question.task, judge.n
    with_more = instances // 2
    others = _extras(task, n, seed)[-with_more:] if with_more else []
    shares = [(0, instances - with_more)]
    shares += [(more, with_more // len(others) + (i < with_more % len(others))) for i, more in enumerate(others)]
    for more, share in shares:
        size = task.least_memory(n) + more
        at_once = max(1, min(CELLS_AT_ONCE // size, judge.most_at_once))
        for begin in range(0, share, at_once):
            if time.monotonic() >= deadline:
                return False
            judge.take(_inputs(task, n, size, min(at_once, share - begin), f"{seed} {begin}"))
            if judge.at_first is not None:
                return True
    return True


def _inputs(task: Task, n: int, size: int, count: int, stream: str) -> list[list[int]]:
    rng = Random(f"{task.name} {n} {size} {stream}")
    return [task.sample_input(rng, n, size) for _ in range(count)]


def _ascending(low: int, high: int) -> Iterator[int]:
    """low, low + 1, ..., then in steps that grow with the number, up to high."""
    n = low
    while n < high:
        yield n
        n += 1 + n // 8
    yield high
