"""Running a program on many inputs of one size and comparing with the task's oracle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nram.limits import wrong_instances
from nram.programs.execute import execute
from nram.programs.verify.findings import Failure, Method
from nram.programs.verify.question import Question

STEPS_AT_ONCE = {"native": 1 << 26, "python": 1 << 18}


@dataclass
class Judge:
    """Looks at batches of one complexity and remembers the smallest failures."""

    question: Question
    n: int
    method: Method
    beyond: bool = True
    """Look at the limits above T(n) as well."""

    def __post_init__(self) -> None:
        named = self.question.limit.ascending(self.n)
        self.right = named if self.beyond else {"T": named["T"]}
        """The limits under which nothing has failed so far."""
        self.instances = 0
        self.largest = 0
        """The largest M so far."""
        self.halts = True
        self.at_first: Failure | None = None
        self.later: Failure | None = None

    @property
    def most_at_once(self) -> int:
        """How many inputs to take at once, so that the time is looked at now and then even if none of them halts."""
        return max(1, STEPS_AT_ONCE[self.question.engine] // max(1, self.question.limit.longest(self.n)))

    @property
    def failures(self) -> list[Failure]:
        return [failure for failure in (self.at_first, self.later) if failure is not None]

    def take(self, memories: Sequence[Sequence[int]]) -> None:
        """Run inputs under all limits."""
        start = np.array(memories, np.int32)
        expected = np.empty_like(start)
        asked = np.zeros(start.shape, bool)
        for i, memory in enumerate(memories):
            output, cells = self.question.task.oracle(memory)
            expected[i] = output
            asked[i, cells] = True
        self.instances += len(memories)
        self.largest = max(self.largest, start.shape[1])
        self._compare(start, expected, asked)

    def _compare(self, start: np.ndarray, expected: np.ndarray, asked: np.ndarray) -> None:
        running = np.arange(len(start))
        first = self.question.limit(self.n)
        for name, limit in list(self.right.items()):
            if not len(running):
                return
            result = execute(self.question.program, start[running], limit, engine=self.question.engine)
            wrong = wrong_instances(result.memory, expected[running], asked[running])
            if wrong.any():
                memory = min(tuple(start[i].tolist()) for i in running[wrong])
                self._failed(Failure(self.n, memory, limit, limit == first, self.method))
                del self.right[name]
            running = running[~result.halted]  # the others end so under every larger limit
        if len(running):
            self.halts = False

    def _failed(self, failure: Failure) -> None:
        known = self.at_first if failure.at_first else self.later
        if known is None or failure.size < known.size:
            if failure.at_first:
                self.at_first = failure
            else:
                self.later = failure
