"""The examination of every model: what is run, in which order, and its yield.

Of a network: instances at the trained complexity and at n = AT under the three step limits, and at T(n) the points of
the figure. Of its program: the same instances, natively, and larger ones. Of programs that were not trained: the
instances at the task's trained complexity, at AT and the larger ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nram.errors import UsageError
from nram.programs.ir import Origin
from nram.reproduction.measuring import (
    Beyond,
    Instances,
    Measure,
    alike,
    compared,
    draw_instances,
    program_outputs,
    run_beyond,
    soft_outputs,
)
from nram.reproduction.models import Model
from nram.reproduction.paper import GENERALISED_TO
from nram.runtime import Device
from nram.tasks.base import Task

if TYPE_CHECKING:
    from nram.reproduction.soft import SoftRunner  # imported late, like JAX

FULL_COUNT = 10_000
LEAST_COUNT = 20
CURVE_STEP = 10  # between two points of the figure
BEYOND = ((1_000, 100), (10_000, 20))  # complexity and instances, programs only

Progress = Callable[[int, int, str], None]
"""Is told the jobs done, their number, and what is being done."""


@dataclass(frozen=True)
class Plan:
    """How much is run. The same plan gives the same figures."""

    count: int = FULL_COUNT
    """Instances at the trained complexity."""
    at: int = GENERALISED_TO
    """The complexity at which generalisation is judged, and up to which the figure goes."""
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

    def points(self, model: Model) -> list[int]:
        """The maximal complexities of the figure."""
        points = {model.trained_up_to, self.at, *range(CURVE_STEP, self.at, CURVE_STEP)}
        return sorted(point for point in points if point >= model.task.min_complexity)


@dataclass(frozen=True)
class Pair:
    """Network and program on the same instances; None for what does not exist."""

    soft: Measure | None
    hard: Measure | None
    same: int | None
    """Instances on which both put out the same under every limit."""

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
    """A model and all that was measured of it."""

    model: Model
    trained: Pair
    """At the trained complexity."""
    far: Pair
    """At the complexity of the plan."""
    beyond: tuple[Beyond, ...]
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
    devices: list[Device],
    progress: Progress = lambda done, total, what: None,
) -> list[Row]:
    """Examine every task's models, in their order."""
    work = _Work(plan, devices, progress, sum(_jobs(model, plan) for _, ones in models for model in ones))
    rows = [Row(task, tuple(work.examine(model) for model in ones)) for task, ones in models]
    progress(work.total, work.total, "done")
    return rows


def _jobs(model: Model, plan: Plan) -> int:
    return 2 + len(BEYOND) * (model.program is not None) + len(plan.points(model)) * (model.origin == "trained")


class _Work:
    def __init__(self, plan: Plan, devices: list[Device], progress: Progress, total: int):
        self.plan, self.devices, self.progress, self.total = plan, devices, progress, total
        self.done = 0

    def examine(self, model: Model) -> Examined:
        plan, task = self.plan, model.task

        def draw(complexity: int, count: int, uniform: bool = False) -> Instances:
            return draw_instances(task, model.limit, complexity, count, plan.seed, uniform=uniform)

        trained, far = model.trained_up_to, plan.at
        curve = plan.points(model) if model.origin == "trained" else []
        runner = self._runner(model)
        return Examined(
            model,
            self._pair(model, runner, f"n <= {trained}", lambda: draw(trained, plan.count)),
            self._pair(model, runner, f"n = {far}", lambda: draw(far, plan.count_at)),
            tuple(self._beyond(model, n, count) for n, count in BEYOND if model.program is not None),
            tuple(
                self._pair(model, runner, f"the figure up to n = {n}", lambda n=n: draw(n, plan.count_at, True))
                for n in curve
            ),
        )

    def _runner(self, model: Model) -> SoftRunner | None:
        if model.network is None:
            return None
        from nram.reproduction.soft import SoftRunner

        return SoftRunner(model.network.config, model.network.controller, self.devices)

    def _pair(self, model: Model, runner: SoftRunner | None, what: str, draw: Callable[[], Instances]) -> Pair:
        words = f"{model.source}, {what}"
        self.progress(self.done, self.total, words)
        instances = draw()
        soft = hard = None
        if runner is not None:

            def done(behind: int) -> None:
                share = f": {behind:,} of {len(instances):,} instances" if behind else ""
                self.progress(self.done, self.total, words + share)

            soft = soft_outputs(runner, instances, done)
        if model.program is not None:
            hard = program_outputs(model.program, instances)
        self.done += 1
        return Pair(
            soft=None if soft is None else compared(soft, instances),
            hard=None if hard is None else compared(hard, instances),
            same=None if soft is None or hard is None else alike(soft, hard, instances),
        )

    def _beyond(self, model: Model, complexity: int, count: int) -> Beyond:
        assert model.program is not None
        self.progress(self.done, self.total, f"{model.source}, n = {complexity:,}, the program alone")
        self.done += 1
        return run_beyond(model.program, model.task, complexity, count, self.plan.seed)
