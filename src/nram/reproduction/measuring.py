"""Networks and programs on the same unseen instances, under the three step limits."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from nram.limits import LIMIT_NAMES, StepLimit, wrong_instances
from nram.programs.execute import execute
from nram.programs.ir import Program
from nram.tasks.base import Task

if TYPE_CHECKING:
    from nram.machine import Controller
    from nram.training.config import TrainConfig

Outputs: TypeAlias = dict[str, np.ndarray]
"""The memories [instances, M] at the end, for each step limit."""


@dataclass(frozen=True)
class Instances:
    """Unseen instances of one task on memories of one size."""

    max_complexity: int
    input: np.ndarray
    """int32 [instances, M]"""
    output: np.ndarray
    cells: np.ndarray
    """bool [instances, M]: the output cells"""
    scored: np.ndarray
    """Those that count for the paper's error."""
    limits: dict[str, np.ndarray]
    """The step limit of each instance, by the names of LIMIT_NAMES, or for T(n) alone."""

    def __len__(self) -> int:
        return len(self.input)


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


def draw_instances(
    task: Task, limit: StepLimit, max_complexity: int, count: int, seed: int, *, uniform: bool = False
) -> Instances:
    """Test instances as `nram eval` draws them.

    Half of them have the largest complexity. For the figure (`uniform`) all complexities are uniform up to it, and T(n)
    is the only limit.
    """
    from nram.training.evaluation import Trial, draw_trial  # JAX

    traced, complexity = draw_trial(Trial(task.name, max_complexity, count, seed, "test", uniform))
    names = ("T",) if uniform else LIMIT_NAMES
    limits = {name: limit.named(complexity, name) for name in names}
    return Instances(max_complexity, *map(np.asarray, traced), limits=limits)


def draw_large(task: Task, limit: StepLimit, complexity: int, count: int, seed: int) -> Instances:
    """Instances of one complexity that is far too large for a continuous machine."""
    rng, size = Random(f"reproduce {task.name} {complexity} {seed}"), task.least_memory(complexity)
    memories = [task.sample_input(rng, complexity, size) for _ in range(count)]
    cells, scored = np.zeros((2, count, size), bool)
    outputs = np.empty((count, size), np.int32)
    for i, memory in enumerate(memories):
        instance = task.solved(memory, complexity)
        outputs[i], cells[i, instance.cells], scored[i, instance.scored] = instance.output, True, True
    limits = {name: np.full(count, limit.named(complexity, name)) for name in LIMIT_NAMES}
    return Instances(complexity, np.array(memories, np.int32), outputs, cells, scored, limits)


def network_outputs(config: TrainConfig, controller: Controller, instances: Instances) -> Outputs:
    """What the continuous machine puts out."""
    from nram.training.evaluation import soft_memories  # JAX

    start = instances.input
    return {name: soft_memories(config, controller, start, limits) for name, limits in instances.limits.items()}


def program_outputs(program: Program, instances: Instances) -> Outputs:
    """What the program puts out."""
    outputs = {name: np.empty_like(instances.input) for name in instances.limits}
    for name, limits in instances.limits.items():
        for limit in np.unique(limits):
            chosen = limits == limit
            outputs[name][chosen] = execute(program, instances.input[chosen], int(limit)).memory
    return outputs


def measure(outputs: Outputs, instances: Instances) -> Measure:
    """Compare the outputs with the answers."""
    scored = instances.scored
    error, wrong = {}, {}
    for name, memories in outputs.items():
        wrong_scored = ((memories != instances.output) & scored).sum(axis=1)
        error[name] = float(np.mean(wrong_scored / scored.sum(axis=1)))
        wrong[name] = int(wrong_instances(memories, instances.output, instances.cells).sum())
    return Measure(instances.max_complexity, len(instances), error, wrong)


def same_outputs(soft: Outputs, hard: Outputs, instances: Instances) -> int:
    """The number of instances with the same output, right or wrong, under every limit."""
    differ = [wrong_instances(soft[name], hard[name], instances.cells) for name in instances.limits]
    return int((~np.any(differ, axis=0)).sum())
