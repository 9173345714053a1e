"""Measures every model: which instances, in which order.

Of a network: instances at the trained complexity and at n = AT under the three step limits, and at T(n) the points of
the figure. Of its program: the same instances, natively, and larger ones. Of programs that were not trained: the
instances at the task's trained complexity, at AT and the larger ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nram.errors import UsageError
from nram.programs.ir import Origin
from nram.reproduction.measuring import (
    Instances,
    Measure,
    draw_instances,
    draw_large,
    measure,
    network_outputs,
    program_outputs,
    same_outputs,
)
from nram.reproduction.models import Model
from nram.reproduction.paper import GENERALISED_TO
from nram.tasks.base import Task

FULL_COUNT = 10_000
LEAST_COUNT = 20
CURVE_STEP = 10  # between two points of the figure
BEYOND = ((1_000, 100), (10_000, 20))  # complexity and instances, programs only

Progress = Callable[[int, int, str], None]
"""Gets the number of jobs done, of all jobs, and what is being done."""


@dataclass(frozen=True)
class Plan:
    """How much is measured. The same plan gives the same figures."""

    count: int = FULL_COUNT
    """Instances at the trained complexity."""
    at: int = GENERALISED_TO
    """The complexity at which generalisation is measured, and up to which the figure goes."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.count < LEAST_COUNT:
            raise UsageError(
                f"--count {self.count} is too small, because a tenth of it is run at n = {self.at}: "
                f"give at least {LEAST_COUNT}"
            )

    @property
    def count_at(self) -> int:
        """Instances at `at`, and of each point of the figure."""
        return self.count // 10


@dataclass(frozen=True)
class Pair:
    """Network (soft) and program (hard) on the same instances; None for what does not exist."""

    soft: Measure | None
    hard: Measure | None
    same: int | None
    """Instances with the same output of both under every limit."""

    @property
    def instances(self) -> int:
        return self._either.instances

    @property
    def max_complexity(self) -> int:
        return self._either.max_complexity

    @property
    def _either(self) -> Measure:
        return next(measure for measure in (self.soft, self.hard) if measure is not None)


@dataclass(frozen=True)
class Examined:
    """A model and its figures."""

    model: Model
    trained: Pair
    """At the trained complexity."""
    far: Pair
    """At the complexity of the plan."""
    beyond: tuple[Measure, ...]
    """The program alone, at large complexities."""
    curve: tuple[Pair, ...]
    """Complexities uniform up to each point, at T(n); of trained models only."""


@dataclass(frozen=True)
class Row:
    """A task and what there is of it, in the order of the origins."""

    task: Task
    examined: tuple[Examined, ...]

    def of(self, origin: Origin) -> Examined | None:
        return next((one for one in self.examined if one.model.origin == origin), None)


def examine_all(
    models: Sequence[tuple[Task, Sequence[Model]]],
    plan: Plan,
    progress: Progress = lambda done, total, what: None,
) -> list[Row]:
    """Examine every task's models, in their order."""
    total = sum(2 + len(_curve(model, plan)) + len(_beyond(model)) for _, ones in models for model in ones)
    done = 0

    def begin(what: str) -> None:
        nonlocal done
        progress(done, total, what)
        done += 1

    rows = [Row(task, tuple(_examine(model, plan, begin) for model in ones)) for task, ones in models]
    progress(total, total, "done")
    return rows


def _curve(model: Model, plan: Plan) -> list[int]:
    """The maximal complexities of the figure, for trained models only."""
    points = {model.trained_up_to, plan.at, *range(CURVE_STEP, plan.at, CURVE_STEP)}
    return sorted(n for n in points if n >= model.task.min_complexity) if model.origin == "trained" else []


def _beyond(model: Model) -> tuple[tuple[int, int], ...]:
    return BEYOND if model.program is not None else ()


def _examine(model: Model, plan: Plan, begin: Callable[[str], None]) -> Examined:
    trained, far = model.trained_up_to, plan.at

    def pair(what: str, max_complexity: int, count: int, uniform: bool = False) -> Pair:
        begin(f"{model.source}, {what}")
        drawn = draw_instances(model.task, model.limit, max_complexity, count, plan.seed, uniform=uniform)
        return _measured(model, drawn)

    def large(complexity: int, count: int) -> Measure:
        begin(f"{model.source}, n = {complexity:,}, the program alone")
        instances = draw_large(model.task, model.limit, complexity, count, plan.seed)
        assert model.program is not None
        return measure(program_outputs(model.program, instances), instances)

    return Examined(
        model,
        pair(f"n <= {trained}", trained, plan.count),
        pair(f"n = {far}", far, plan.count_at),
        tuple(large(complexity, count) for complexity, count in _beyond(model)),
        tuple(pair(f"the figure up to n = {n}", n, plan.count_at, True) for n in _curve(model, plan)),
    )


def _measured(model: Model, instances: Instances) -> Pair:
    network, program = model.network, model.program
    soft = None if network is None else network_outputs(network.config, network.controller, instances)
    hard = None if program is None else program_outputs(program, instances)
    return Pair(
        soft=None if soft is None else measure(soft, instances),
        hard=None if hard is None else measure(hard, instances),
        same=None if soft is None or hard is None else same_outputs(soft, hard, instances),
    )
