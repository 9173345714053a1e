"""Running a program on many inputs of one complexity and comparing the results with the task's oracle."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nram.limits import wrong_instances
from nram.programs.execute import execute
from nram.programs.ir import Method
from nram.programs.verify.findings import Failure, Finding
from nram.programs.verify.verification import Verification

STEPS_AT_ONCE = {"native": 1 << 26, "python": 1 << 18}


@dataclass
class BatchCheck:
    """Checks batches of one complexity, and keeps the smallest failures."""

    verification: Verification
    n: int
    method: Method
    beyond: bool = True
    """Also check the limits above T(n)."""

    def __post_init__(self) -> None:
        named = self.verification.limit.ascending(self.n)
        self.right = named if self.beyond else {"T": named["T"]}
        """The limits under which nothing has failed so far."""
        self.instances = 0
        self.largest = 0
        """The largest M so far."""
        self.halts = True
        self.smallest: dict[bool, Failure] = {}
        """The smallest failures, by whether they are at T(n)."""

    @property
    def most_at_once(self) -> int:
        """How many inputs to run at once, so that the clock is read now and then even if no run halts."""
        return max(1, STEPS_AT_ONCE[self.verification.engine] // max(1, self.verification.limit.longest(self.n)))

    @property
    def failures(self) -> list[Failure]:
        return list(self.smallest.values())

    @property
    def fails_at_first(self) -> bool:
        """Some input was wrong at T(n)."""
        return True in self.smallest

    def add(self, memories: Sequence[Sequence[int]]) -> None:
        """Run inputs under all limits."""
        start = np.array(memories, np.int32)
        expected = np.empty_like(start)
        output_cells = np.zeros(start.shape, bool)
        for i, memory in enumerate(memories):
            expected[i], cells = self.verification.task.oracle(memory)
            output_cells[i, cells] = True
        self.instances += len(memories)
        self.largest = max(self.largest, start.shape[1])
        self._compare(start, expected, output_cells)

    def _compare(self, start: np.ndarray, expected: np.ndarray, output_cells: np.ndarray) -> None:
        running = np.arange(len(start))
        first = self.verification.limit(self.n)
        for name, limit in list(self.right.items()):
            if not len(running):
                return
            result = execute(self.verification.program, start[running], limit, engine=self.verification.engine)
            wrong = wrong_instances(result.memory, expected[running], output_cells[running])
            if wrong.any():
                memory = min(tuple(start[i].tolist()) for i in running[wrong])
                failure = Failure(self.n, memory, limit, limit == first, self.method)
                known = self.smallest.get(failure.at_first)
                if known is None or failure.size < known.size:
                    self.smallest[failure.at_first] = failure
                del self.right[name]
            running = running[~result.halted]  # runs that halted end in the same way under every larger limit
        if len(running):
            self.halts = False


def joint_finding(
    checks: Sequence[BatchCheck], extra_memory: tuple[int, int], *, proven: bool, began: float
) -> Finding:
    """What several checks, of ascending complexities, found together."""
    first, last = checks[0], checks[-1]
    return Finding(
        method=first.method,
        complexity=(first.n, last.n),
        extra_memory=extra_memory,
        instances=sum(check.instances for check in checks),
        proven=proven,
        limits=tuple(name for name in first.right if all(name in check.right for check in checks)),
        halts=all(check.halts for check in checks),
        seconds=time.monotonic() - began,
    )
