"""One group of a run: a population of one structure, from its first stage to its last.

A group advances in *rounds*. A round ends with a check: every member runs as a discrete machine on the validation set,
the worst are culled, and the stage may end. The trainer decides which group has the next round.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

import jax
import numpy as np

from nram.records import Span
from nram.runtime import Device
from nram.training.config import EXAMINED, Share, StageConfig, Steps, TrainConfig
from nram.training.culling import PROGRESS, Fit, compile_fit, cull
from nram.training.evaluation import Examination, Score, examine, far_of, goes_far
from nram.training.kernels import kernel_of
from nram.training.mapping import idle_gpus
from nram.training.member import StepReport, is_frozen
from nram.training.pools import Pools
from nram.training.population import Population, compile_training, init_population, member_at, stage_keys
from nram.training.selection import clone_best, compile_validation, ranking

EXAMINATION = 300  # instances of each examination
LEAST_RATE = 1e-30  # of frozen members, whose rates are negative: a learning rate of 0 can be frozen too


@dataclass
class GroupState:
    """What a checkpoint holds of a group, besides its population."""

    begun: bool = False
    stage: Steps = 0
    step: Steps = 0  # of the stage
    done: bool = False  # it trains no more
    attempt: Steps = 0  # how often it has gone back to the first stage
    first_steps: Steps = 0  # steps of the first stage before the later stages of the last attempt
    rounds: Steps = 0
    restarts: Steps = 0  # islands that restarted, for reports
    turn: Annotated[float, Span(0, 1e18)] = 0.0  # grows with its work or its steps; the group with the least is next
    least_error: Share = 1.0  # of all checks so far
    improved_at: Steps = 0  # the round in which it last fell
    enough_at: Steps | None = None  # the step at which the stage could have ended
    solved_hard: Share | None = None  # share of members solved at the last check
    best_hard: Share | None = None
    best_halted: Share | None = None
    converged: Share | None = None  # where members are ranked by training: share with soft error 0
    best_soft: Share | None = None  # there: the least soft error
    perfect: Steps = 0

    @property
    def waits(self) -> bool:
        """Whether the stage could end, and waits for members that also halt."""
        return self.enough_at is not None


class Hooks(NamedTuple):
    """What a group calls while it trains."""

    activity: Callable[[str], None]
    note: Callable[[str], None]
    report: Callable[[StepReport, int, float, bool], None]
    """(metrics, steps, seconds, whether the stage ends)"""
    keep: Callable[[], None]
    """The present state is one from which the run can go on to the same bits."""
    stop_if_asked: Callable[[], None]
    solved: Callable[[list[Population]], None]
    """A check found these members right on the whole validation set, the best first."""


class _Compiled(NamedTuple):
    """The functions of one stage."""

    advance: Callable[..., tuple[Population, StepReport]]
    pools: Pools
    fit: Callable[..., Fit] | None
    validate: Callable[[Population], Score]


@dataclass
class Group:
    config: TrainConfig
    devices: list[Device]
    hooks: Hooks
    again: bool  # whether it goes back to the first stage when the last one fails
    state: GroupState = field(default_factory=GroupState)
    population: Population | None = None  # None: it has not started
    examinations: dict[int, Examination] = field(default_factory=dict)  # by index, of the population as it is now
    compiled: dict[int, _Compiled] = field(default_factory=dict)  # by stage

    @property
    def stage(self) -> StageConfig:
        return self.config.stages[self.state.stage]

    @property
    def is_last_stage(self) -> bool:
        return self.state.stage == len(self.config.stages) - 1

    @property
    def nearly_done(self) -> bool:
        """Whether it has the perfect members that it needs, and only waits for some that halt."""
        return self.is_last_stage and 0 < self.stage.stop_at <= self.state.perfect

    @property
    def work_left(self) -> int:
        """The work until its last step, if no stage ends early; of one that may go back, with its first stage."""
        if self.state.done:
            return 0
        if self.nearly_done:
            until = (self.state.enough_at or self.state.step) + self.stage.halt_within
            return max(0, min(until, self.stage.steps) - self.state.step) * work_of_step(self.config, self.stage)
        left = [stage.steps for stage in self.config.stages]
        reached = self.state.stage
        if reached:
            left[0] = left[0] - self.state.first_steps if self.again else 0
        left[1:reached] = [0] * (reached - 1)
        left[reached] -= self.state.step
        works = (work_of_step(self.config, stage) for stage in self.config.stages)
        return sum(steps * work for steps, work in zip(left, works, strict=True))

    def members(self) -> Population:
        """The population, drawn if there is none yet."""
        if self.population is None:
            self.state.begun = True
            self.population = self._new_members()
        return self.population

    def _new_members(self) -> Population:
        """The members of an attempt. Those of a later attempt are drawn as those of islands that restart."""
        stage, attempt = self.config.stages[0], self.state.attempt
        if not attempt:
            parts = [init_population(self.config, stage.population)]
        else:
            size = stage.population // stage.cull.islands
            parts = [init_population(self.config, size, (0, 0, attempt, i)) for i in range(stage.cull.islands)]
        # Arrays of NumPy are split over devices without a compiled function for each shape.
        return jax.tree.map(lambda *leaves: np.concatenate([np.asarray(leaf) for leaf in leaves]), *parts)

    def round(self, share: float = 1.0) -> None:
        """Train to the next check, and do what follows from it. The caller keeps the state that it ends in.

        A group with twice the share of another has twice as many turns.
        """
        config, state, stage, hooks = self.config, self.state, self.stage, self.hooks
        compiled = self._compile()
        pools = compiled.pools
        keys = stage_keys(config, state.stage, state.attempt)
        score = None
        while state.step < stage.steps:
            to_check = config.check_every - state.step % config.check_every
            steps = min(pools.steps_from(state.step), to_check, stage.steps - state.step)
            began = time.monotonic()
            pool = pools.at(state.step)
            trained = compiled.advance(self.members(), keys, state.step, steps, pool)
            self.population, report = jax.block_until_ready(trained)
            self.examinations = {}
            state.step += steps
            state.turn += steps * (1 if config.turns == "equal" else work_of_step(config, stage)) / share
            took = time.monotonic() - began
            checked = steps == to_check or state.step == stage.steps
            found, score = self._score(compiled) if checked else (None, None)
            enough = score is not None and self._enough_solved(score)
            state.rounds += checked
            hooks.report(report, steps, took, enough)
            if enough or state.step == stage.steps:
                break
            if stage.cull.share and found and score:
                self.population = cull(config, state.stage, state.step, self.members(), found, score)
                self.examinations = {}
                state.restarts += _restarted(self.population, stage.cull.islands)
            if checked:
                return
            hooks.keep()
            hooks.stop_if_asked()
        self._end_stage(score or self._score(compiled)[1])  # without a score: resumed at the very end of the stage

    def _compile(self) -> _Compiled:
        """The functions of the stage. Those of an earlier attempt are used again."""
        config, stage = self.config, self.stage
        if self.state.stage in self.compiled:
            return self.compiled[self.state.stage]
        self.hooks.stop_if_asked()
        self.hooks.activity(f"compiling for n <= {stage.max_complexity}")
        kernel = kernel_of(config, stage, self.devices)
        if kernel.reason:
            self.hooks.note(f"by the plain path ({kernel.reason})")
        if idle := idle_gpus(stage.population, self.devices):
            self.hooks.note(idle)
        advance = compile_training(config, stage, self.devices, kernel)
        culls = stage.cull.share or stage.straight_through
        fit = compile_fit(config, stage, self.devices, kernel) if culls else None
        pools, keys = Pools(config, stage, self.state.stage), stage_keys(config, self.state.stage)
        compiled = _Compiled(advance, pools, fit, compile_validation(config, stage, self.devices))
        first = self.state.step
        jax.block_until_ready(advance(self.members(), keys, first, 0, pools.at(first)))  # no step: only compiles
        self.hooks.stop_if_asked()
        self.hooks.activity(f"first steps at n <= {stage.max_complexity}")
        self.compiled[self.state.stage] = compiled
        return compiled

    def _score(self, compiled: _Compiled) -> tuple[Fit | None, Score]:
        state, population = self.state, self.members()
        found = None
        if compiled.fit:
            found = compiled.fit(population, state.stage, state.step, compiled.pools.unseen(state.step))
            if found.least_error < state.least_error - PROGRESS:  # so that small gains add up
                state.least_error, state.improved_at = found.least_error, state.rounds
        self.hooks.stop_if_asked()
        # A straight-through stage is scored under its own step limits; those of the task are for later stages.
        score = found.score if self.stage.straight_through and found else compiled.validate(population)
        if self.stage.straight_through and self.stage.halt_within:
            score = score._replace(halted=compiled.validate(population).halted)
        self.hooks.stop_if_asked()
        return found, score

    def validated(self) -> Score:
        """Every member on the validation set of the stage."""
        compiled = self.compiled.get(self.state.stage)
        validate = compiled.validate if compiled else compile_validation(self.config, self.stage, self.devices)
        return validate(self.members())

    def _enough_solved(self, score: Score) -> bool:
        """Whether a check found as many solved members as end the stage early. The last stage wants perfect ones."""
        stage, state = self.stage, self.state
        order = ranking(self.members(), score)
        if score.soft is not None:
            state.converged, state.best_soft = float(np.mean(score.soft == 0)), float(np.min(score.soft))
        right = score.exact == 1.0 if score.soft is None else score.error == 0  # a protocol counts the paper's error
        state.solved_hard = float(np.mean(right))
        state.best_hard = float(score.exact[order[0]])
        state.best_halted = None if stage.straight_through else float(score.halted[order[0]])
        if score.soft is not None:
            return False  # every member has the same number of updates
        solved = [int(member) for member in order if score.exact[member] == 1.0]
        self.hooks.solved([member_at(self.members(), member) for member in solved[:EXAMINED]])
        if self.is_last_stage:
            solved, halting = self._examined(solved, score)
        else:
            halting = [member for member in solved if score.halted[member] == 1.0]
        if not 0 < stage.stop_at <= len(solved):
            state.enough_at = None
            return False
        if state.enough_at is None:
            state.enough_at = state.step
        # A program that idles is right, but one that halts is better.
        return len(halting) >= stage.stop_at or state.step >= state.enough_at + stage.halt_within

    def _examined(self, solved: list[int], score: Score) -> tuple[list[int], list[int]]:
        """The perfect ones of these members, and those that also halt within T(n).

        A few perfect members stay as they are until the stage ends. After that, only members that halt are examined.
        """
        frozen = self.frozen()
        kept = [member for member in solved if frozen[member]]
        spare = EXAMINED - len(kept) if self.stage.halt_within else EXAMINED
        perfect = self.perfect([m for m in solved if not frozen[m] and (spare > 0 or score.halted[m] == 1.0)])
        halting = [member for member in kept if score.halted[member] == 1.0]
        halting += [member for member in perfect if self.examinations[member].halts]
        self.state.perfect = len(kept) + len(perfect)
        if self.stage.halt_within:
            self._freeze(perfect[:spare])
        return kept + perfect, halting

    def frozen(self) -> np.ndarray:
        """Which members are perfect and no longer train."""
        return is_frozen(self.members().hyper)

    def _freeze(self, members: list[int]) -> None:
        """Let these members stay as they are. Their clones train."""
        population = self.members()
        rates = np.array(population.hyper.learning_rate)  # a copy
        rates[members] = -np.maximum(np.abs(rates[members]), LEAST_RATE)
        self.population = population._replace(hyper=population.hyper._replace(learning_rate=rates))

    def _end_stage(self, score: Score) -> None:
        """Make the population of the next stage from the best members, or start again, or end."""
        state, former = self.state, self.stage
        if not self.is_last_stage:
            if state.stage == 0:
                state.first_steps = state.step
            state.stage, state.step = state.stage + 1, 0
            self.population = clone_best(self.config, state.stage, self.members(), score)
            self.hooks.note(f"the best {min(self.stage.kept, former.population)} of {former.population} members go on")
        elif self.again and state.stage and not state.perfect and state.first_steps < self.config.stages[0].steps:
            state.stage, state.step, state.attempt = 0, state.first_steps, state.attempt + 1
            state.least_error, state.improved_at = 1.0, state.rounds
            self.population = None
            self.members()
            self.hooks.note("no member passed the examination: new members start")
        else:
            state.done = True
            return
        state.solved_hard = state.best_hard = state.best_halted = state.enough_at = None
        self.examinations = {}

    def perfect(self, members: list[int]) -> list[int]:
        """Of the first few members those that are perfect under every limit, at the trained size and far beyond."""
        first = members[:EXAMINED]
        fresh = [member for member in first if member not in self.examinations]
        if fresh:
            what = "member" if len(fresh) == 1 else f"{len(fresh)} members"
            beyond = f", also at n = {far_of(self.config)}" if goes_far(self.config) else ""
            self.hooks.activity(f"examining the best {what}{beyond}")
        for member in fresh:
            controller = member_at(self.members().members.controller, member)
            self.examinations[member] = examine(
                self.config, controller, self.config.seed, EXAMINATION, self.hooks.stop_if_asked
            )
        return [member for member in first if self.examinations[member].passed]

    def failures(self, members: Iterable[int] | None = None) -> list[dict[str, Any]]:
        """How many of these members, or of all that were examined, failed in which part, under which limit."""
        chosen = self.examinations if members is None else members
        ended = [self.examinations[member] for member in chosen]
        found = Counter((one.failed, one.limit) for one in ended if not one.passed)
        return [{"part": part, "limit": limit, "members": count} for (part, limit), count in found.items()]


def _restarted(population: Population, islands: int) -> int:
    """How many islands have new members only. Clones count the steps of their parents."""
    steps = np.asarray(population.members.step).reshape(islands, -1)
    return int(np.sum(np.all(steps == 0, axis=1)))


def example_steps(config: TrainConfig, stage: StageConfig) -> int:
    """Example-steps of one training step of a stage."""
    return stage.population * config.batch * config.loop_steps(stage)


def work_of_step(config: TrainConfig, stage: StageConfig) -> int:
    """The work of one training step. It depends on the configuration alone, so that the clock decides nothing."""
    steps = config.step_limit(stage.max_complexity) + stage.step_slack
    operations = len(config.machine.modules) * config.machine.repeats
    return stage.population * config.batch * int(steps) * operations
