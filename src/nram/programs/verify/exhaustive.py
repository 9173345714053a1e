"""Exhaustive testing: every legal input of the small sizes, as far as the time allows."""

from __future__ import annotations

import time
from itertools import count, islice

from nram.programs.verify.batches import BatchCheck, joint_finding
from nram.programs.verify.findings import Part, Skipped
from nram.programs.verify.verification import Verification

BATCH = 4096


def run_all(verification: Verification, *, largest: int | None, extra: int, seconds: float) -> Part:
    """Run every input of n = smallest, ... up to `largest`, each on M = least, ..., least + extra.

    The sizes come in ascending order, so the first failure has the smallest size. A size counts as proven only if
    all of its inputs were run.
    """
    task = verification.task
    part = Part()
    if task.legal_inputs is None:
        part.skipped.append(
            Skipped("exhaustive", (task.min_complexity, None), "", f"the task {task.name} does not list its inputs")
        )
        return part
    deadline = time.monotonic() + seconds
    for n in count(task.min_complexity) if largest is None else range(task.min_complexity, largest + 1):
        for more in range(extra + 1):
            size = task.least_memory(n) + more
            began = time.monotonic()
            check = BatchCheck(verification, n, "exhaustive", beyond=not part.fails(at_first=False))
            inputs = task.legal_inputs(n, size)
            complete = False
            while not complete and not check.fails_at_first and time.monotonic() < deadline:
                batch = list(islice(inputs, min(BATCH, check.most_at_once)))
                if batch:
                    check.add(batch)
                complete = not batch
            part.failures += check.failures
            if check.fails_at_first:
                return part
            if check.instances:
                verification.progress(
                    f"exhaustive: n = {n}, M = {size}: {check.instances:,} inputs{'' if complete else ', not all'}"
                )
                part.findings.append(joint_finding([check], (more, more), proven=complete, began=began))
            if not complete:
                rest = f"all other inputs, from n = {n}, M = {size} on"
                part.skipped.append(Skipped("exhaustive", (n, largest), rest, "out of time"))
                return part
    return part
