"""Networks and programs on the same unseen instances, under the three step limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from nram.limits import LIMIT_NAMES, StepLimit, wrong_instances
from nram.programs.execute import execute
from nram.programs.ir import Program
from nram.programs.verify.batches import BatchCheck
from nram.programs.verify.verification import verification
from nram.tasks.base import Task, TracedInstance

if TYPE_CHECKING:
    from nram.reproduction.soft import SoftRunner

CELLS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Instances:
    """Unseen instances of one task on memories of one size."""

    max_complexity: int
    complexity: np.ndarray
    traced: TracedInstance
    limits: np.ndarray
    """int32 [instances, limits]: a column for each of LIMIT_NAMES, or for T(n) alone."""

    def __len__(self) -> int:
        return len(self.complexity)


@dataclass(frozen=True)
class Measure:
    """How often an executor was wrong, under each step limit."""

    max_complexity: int
    instances: int
    error: dict[str, float]
    """Mean share of wrong cells among those that should be modified: the paper's measure."""
    wrong: dict[str, int]
    """Instances with a wrong output cell."""

    @property
    def right_at_limit(self) -> bool:
        """The paper's protocol: stopped at T(n)."""
        return self.wrong["T"] == 0

    @property
    def right_under_every_limit(self) -> bool:
        return not any(self.wrong.values())

    def exact(self, limit: str = "T") -> float:
        return 1 - self.wrong[limit] / self.instances


@dataclass(frozen=True)
class Beyond:
    """A program on a few instances of one large complexity."""

    complexity: int
    instances: int
    right: tuple[str, ...]
    """The limits under which all came out right."""

    @property
    def right_at_limit(self) -> bool:
        return "T" in self.right

    @property
    def right_under_every_limit(self) -> bool:
        return set(self.right) == set(LIMIT_NAMES)


def draw_instances(
    task: Task, limit: StepLimit, max_complexity: int, count: int, seed: int, *, uniform: bool = False
) -> Instances:
    """Test instances as `nram eval` draws them: half of them of the largest complexity, or, for the figure, all of
    complexities uniform up to it, with T(n) as their only limit."""
    from nram.training.evaluation import Trial, draw_trial

    traced, complexity = draw_trial(Trial(task.name, max_complexity, count, seed, "test", uniform))
    columns = [limit.named(complexity, name) for name in (LIMIT_NAMES[:1] if uniform else LIMIT_NAMES)]
    return Instances(max_complexity, complexity, traced, np.stack(columns, axis=1).astype(np.int32))


def soft_outputs(runner: SoftRunner, instances: Instances, done: Callable[[int], None]) -> np.ndarray:
    """The continuous machine's memories [instances, limits, M], certain in the output cells only.

    Instances of like complexity run together. `done` is told how many are behind it.
    """
    traced, order = instances.traced, np.argsort(instances.complexity, kind="stable")
    size = traced.input.shape[1]
    outputs = np.empty((len(instances), instances.limits.shape[1], size), np.int32)
    cells = np.asarray(traced.cells) | np.asarray(traced.scored)
    at_once = runner.at_once(size)
    for begin in range(0, len(instances), at_once):
        done(begin)
        places = order[begin : begin + at_once]
        outputs[places] = runner.predict(np.asarray(traced.input)[places], cells[places], instances.limits[places])
    return outputs


def program_outputs(program: Program, instances: Instances) -> np.ndarray:
    """The program's memories [instances, limits, M]."""
    start = np.asarray(instances.traced.input)
    outputs = np.empty((len(instances), instances.limits.shape[1], start.shape[1]), np.int32)
    for column in range(instances.limits.shape[1]):
        for limit in np.unique(instances.limits[:, column]):
            places = np.flatnonzero(instances.limits[:, column] == limit)
            outputs[places, column] = execute(program, start[places], int(limit)).memory
    return outputs


def compared(outputs: np.ndarray, instances: Instances) -> Measure:
    """The outputs against the answers."""
    traced = instances.traced
    cells, scored = np.asarray(traced.cells), np.asarray(traced.scored)
    error, wrong = {}, {}
    for column in range(outputs.shape[1]):
        differs = outputs[:, column] != np.asarray(traced.output)
        error[LIMIT_NAMES[column]] = float(np.mean((differs & scored).sum(axis=1) / scored.sum(axis=1)))
        wrong[LIMIT_NAMES[column]] = int(wrong_instances(outputs[:, column], traced.output, cells).sum())
    return Measure(instances.max_complexity, len(instances), error, wrong)


def alike(soft: np.ndarray, hard: np.ndarray, instances: Instances) -> int:
    """Instances on which both put out the same, right or wrong, under every limit."""
    cells = np.asarray(instances.traced.cells)[:, None, :]
    return int((~wrong_instances(soft, hard, cells).any(axis=1)).sum())


def run_beyond(program: Program, task: Task, complexity: int, count: int, seed: int) -> Beyond:
    """The program on instances far larger than a continuous machine could be run on."""
    check = BatchCheck(verification(program, task), complexity, "random")
    size = task.least_memory(complexity)
    rng = Random(f"reproduce {task.name} {complexity} {seed}")
    at_once = max(1, CELLS_AT_ONCE // size)
    for begin in range(0, count, at_once):
        check.add([task.sample_input(rng, complexity, size) for _ in range(min(at_once, count - begin))])
    right = tuple(name for name in LIMIT_NAMES if name in check.right)
    return Beyond(complexity, check.instances, right)
