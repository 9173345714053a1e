"""Random testing: sampled instances at the trained size, at n = 50, and far beyond."""

from __future__ import annotations

import time
from collections.abc import Iterator
from random import Random

from nram.programs.verify.batches import BatchCheck, joint_finding
from nram.programs.verify.findings import Failure, Part, Skipped
from nram.programs.verify.verification import Verification
from nram.tasks.base import Task

CELLS_AT_ONCE = 1 << 20
FAR = 50
COUNTS = ((100, 1000), (1_000, 200), (10_000, 50))  # the largest n, and how many instances up to it
LEAST_COUNT = 20
SIZES = 10  # of memories larger than the least, for each n
MOST_TRIES, LEAST_TRIES = 64, 4  # instances of each size when looking for a smaller failure


def run_sampled(verification: Verification, *, largest: int, seed: int, seconds: float, beyond: bool) -> Part:
    """Run random instances of growing n. Half have the least memory, the others more, up to twice as much."""
    task = verification.task
    part = Part()
    deadline = time.monotonic() + seconds
    for complexities, each in _plan(task, largest):
        low, high = complexities[0], complexities[-1]
        what = f"n = {low}" if low == high else f"n = {low} to {high}"
        began = time.monotonic()
        checks = []
        complete = True
        for n in complexities:
            check = BatchCheck(verification, n, "random", beyond and not part.fails(at_first=False))
            complete = _sample(check, each, seed, deadline)
            checks.append(check)
            part.failures += check.failures
            if check.fails_at_first:
                return part
            if not complete:
                break
        seen = [check for check in checks if check.instances]
        if seen:
            extra = max(check.largest - task.least_memory(check.n) for check in seen)
            finding = joint_finding(seen, (0, extra), proven=False, began=began)
            verification.progress(f"random: {what}: {finding.instances:,} instances{'' if complete else ', not all'}")
            part.findings.append(finding)
        if not complete:
            part.skipped.append(Skipped("random", (checks[-1].n, largest), "the other instances", "out of time"))
            return part
    return part


def find_smaller(verification: Verification, failure: Failure, *, seed: int, seconds: float) -> Failure:
    """A smaller failure, if random instances of smaller sizes show one; otherwise the given one."""
    task = verification.task
    deadline = time.monotonic() + seconds
    extra = len(failure.memory) - task.least_memory(failure.complexity)
    for n in _ascending(task.min_complexity, failure.complexity):
        if time.monotonic() >= deadline:
            break
        check = BatchCheck(verification, n, "random")
        least = task.least_memory(n)
        sizes = {least, least + 1, least + 2, least + extra, len(failure.memory)}
        for size in sorted(size for size in sizes if size >= least):
            if n == failure.complexity and size >= len(failure.memory):
                break
            tries = max(LEAST_TRIES, min(MOST_TRIES, CELLS_AT_ONCE // (4 * size), check.most_at_once))
            check.add(_inputs(task, n, size, tries, f"{seed} smaller"))
            found = [one for one in check.failures if one.at_first or not failure.at_first]
            if found:
                verification.progress(f"random: a smaller failure at n = {n}, M = {size}")
                return min(found, key=lambda one: (not one.at_first, one.size))
    return failure


def _plan(task: Task, largest: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """Complexities that are reported together, and how many instances of each to run."""
    trained = min(task.trained_up_to, largest)
    smaller = tuple(range(task.min_complexity, trained + 1))
    if smaller:
        yield smaller, -(-_count(trained) // (2 * len(smaller)))
    sizes = {trained, FAR, largest}
    size = 1_000
    while size < largest:
        sizes.add(size)
        size *= 10
    for n in sorted(sizes):
        if task.min_complexity <= n <= largest:
            yield (n,), _count(n) // 2 if n == trained else _count(n)


def _count(n: int) -> int:
    return next((count for up_to, count in COUNTS if n <= up_to), LEAST_COUNT)


def _extras(task: Task, n: int, seed: int) -> list[int]:
    """How many cells memories have beyond the least: one, as many again, and numbers in between."""
    least = task.least_memory(n)
    between = Random(f"{task.name} {n} {seed}").sample(range(1, least + 1), min(least, SIZES))
    return sorted({1, least, *between})


def _sample(check: BatchCheck, instances: int, seed: int, deadline: float) -> bool:
    """Run this many instances; return False if the time ran out."""
    task, n = check.verification.task, check.n
    with_more = instances // 2
    others = _extras(task, n, seed)[-with_more:] if with_more else []
    shares = [(0, instances - with_more)]
    shares += [(more, with_more // len(others) + (i < with_more % len(others))) for i, more in enumerate(others)]
    for more, share in shares:
        size = task.least_memory(n) + more
        at_once = max(1, min(CELLS_AT_ONCE // size, check.most_at_once))
        for begin in range(0, share, at_once):
            if time.monotonic() >= deadline:
                return False
            check.add(_inputs(task, n, size, min(at_once, share - begin), f"{seed} {begin}"))
            if check.fails_at_first:
                return True
    return True


def _inputs(task: Task, n: int, size: int, count: int, stream: str) -> list[list[int]]:
    rng = Random(f"{task.name} {n} {size} {stream}")
    return [task.sample_input(rng, n, size) for _ in range(count)]


def _ascending(low: int, high: int) -> Iterator[int]:
    """low, low + 1, ..., then in steps that grow with n, up to high."""
    n = low
    while n < high:
        yield n
        n += 1 + n // 8
    yield high
