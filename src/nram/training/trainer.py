"""The training loop of a run: stages of a population, checks, checkpoints and the result.

It knows nothing about the machine, and none of its decisions depends on the clock: a run that is stopped and resumed
at any checkpoint ends in the same bits as an uninterrupted one.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import jax
import numpy as np

from nram.errors import NramError, UntrustedFile
from nram.machine import Controller
from nram.records import Span, Tolerant, read_record
from nram.runtime import Device, device_name, peak_memory
from nram.training.callbacks import Interrupted, Report, TrainingCallbacks
from nram.training.checkpoint import load_arrays, save_arrays
from nram.training.config import EXAMINED, MOST_COMPLEXITY, Share, StageConfig, Steps, TrainConfig
from nram.training.culling import Fit, compile_fit, cull
from nram.training.diagnosis import PATIENCE, failures_text, has_left_first_level, stuck_notice
from nram.training.evaluation import FAR, Examination, Score, examine, goes_far
from nram.training.kernels import kernel_of
from nram.training.member import StepReport
from nram.training.pools import Pools
from nram.training.population import (
    Population,
    abstract_population,
    compile_training,
    init_population,
    member_at,
    stage_keys,
)
from nram.training.run_folder import RunFolder, described_config
from nram.training.selection import clone_best, compile_validation, ranking
from nram.training.settings import config_to_dict

CHECKPOINT_SECONDS = 20
SOLVED_ERROR = 0.02  # a member with a smaller moving error at the stage's last level counts as solved, soft
EXAMINATION = 300  # instances of each examination
BEST = 8  # members kept at the end


@dataclass
class _State:
    """What a checkpoint holds besides the population."""

    stage: Steps = 0
    step: Steps = 0
    done: bool = False  # the last stage is over
    seconds: Annotated[float, Span(0, 1e12)] = 0.0
    rows: Annotated[int, Span(0, 10**9)] = 0  # of metrics.jsonl
    solved_hard: Share | None = None  # share of members solved at the last check
    best_hard: Share | None = None
    best_halted: Share | None = None
    perfect: Steps = 0
    on_first_level: Annotated[float, Span(0, 1e12)] = 0.0  # seconds of training with every member on the first level


@dataclass(frozen=True)
class _Description(Tolerant):
    """What is used of a checkpoint's description, besides its configuration."""

    state: _State


def train(
    run: RunFolder,
    config: TrainConfig,
    devices: list[Device],
    callbacks: TrainingCallbacks | None = None,
    stopping: Callable[[], bool] = lambda: False,
) -> dict[str, Any]:
    """Train to the end, from the checkpoint if there is one. Returns the result."""
    trainer = _Trainer(run, config, devices, callbacks or TrainingCallbacks(), stopping)
    while not trainer.state.done:
        trainer.run_stage()
    return trainer.finish()


class _Trainer:
    def __init__(
        self,
        run: RunFolder,
        config: TrainConfig,
        devices: list[Device],
        callbacks: TrainingCallbacks,
        stopping: Callable[[], bool],
    ):
        self.run, self.config, self.devices = run, config, devices
        self.callbacks, self.stopping = callbacks, stopping
        if run.checkpoint.is_file():
            self.state, self.population = _load_checkpoint(run, config)
        else:
            self.state = _State()
            # Arrays of NumPy are split over devices without a compiled function for each shape.
            self.population = jax.tree.map(np.asarray, init_population(config, config.stages[0].population))
        run.cut_metrics(self.state.rows)
        self._keep()
        self.validate: Callable[[Population], Score] | None = None  # of the stage that was run last
        self.examinations: dict[int, Examination] = {}  # by member index, of the population as it is now
        self.saved_at = self.ticked_at = time.monotonic()

    def run_stage(self) -> None:
        """Train the current stage to its end, and make the population of the next one."""
        config, state = self.config, self.state
        stage = config.stages[state.stage]
        last = state.stage == len(config.stages) - 1
        self._stop_if_asked()
        self.callbacks.activity(f"compiling for n <= {stage.max_complexity}")
        kernel = kernel_of(config, stage, self.devices)
        if kernel.reason:
            self._note(f"by the plain path ({kernel.reason})")
        advance = compile_training(config, stage, self.devices, kernel)
        fit = compile_fit(config, stage, self.devices, kernel) if stage.cull.share or stage.straight_through else None
        validate = self.validate = compile_validation(config, stage, self.devices)

        def score_members() -> tuple[Fit | None, Score]:
            found = fit(self.population, state.stage, state.step) if fit else None
            self._stop_if_asked()
            # A straight-through stage is scored under its own step limits; those of the task are for later stages.
            score = found.score if stage.straight_through and found else validate(self.population)
            self._stop_if_asked()
            return found, score

        keys = stage_keys(config, state.stage)
        pools = Pools(config, stage, state.stage)
        # No step: only compiles.
        jax.block_until_ready(advance(self.population, keys, state.step, 0, pools.at(state.step)))
        self._stop_if_asked()
        score = None
        while state.step < stage.steps:
            to_check = config.check_every - state.step % config.check_every
            steps = min(pools.steps_from(state.step), to_check, stage.steps - state.step)
            began = time.monotonic()
            pool = pools.at(state.step)
            self.population, report = jax.block_until_ready(advance(self.population, keys, state.step, steps, pool))
            self.examinations = {}
            state.step += steps
            took = time.monotonic() - began
            enough, found = False, None
            if steps == to_check or state.step == stage.steps:
                found, score = score_members()
                enough = self._enough_solved(stage, score, last)
            self._tick()
            self._report(report, steps, took, enough)
            if enough:
                break
            if stage.cull.share and found and score and steps == to_check and state.step < stage.steps:
                self.population = cull(config, state.stage, state.step, self.population, found, score)
                self.examinations = {}
            self._keep()
            self._stop_if_asked()
            if time.monotonic() - self.saved_at >= CHECKPOINT_SECONDS:
                self._save()
        if score is None:  # resumed at the very end of the stage
            _, score = score_members()
        if last:
            state.done = True
        else:
            self._enter_next_stage(score)
        self._keep()
        self._save()

    def _enter_next_stage(self, score: Score) -> None:
        """Make the population of the next stage from the best members."""
        state, former = self.state, self.config.stages[self.state.stage]
        state.stage, state.step = state.stage + 1, 0
        state.solved_hard = state.best_hard = state.best_halted = None
        self.population = clone_best(self.config, state.stage, self.population, score)
        kept = min(self.config.stages[state.stage].kept, former.population)
        self._note(f"the best {kept} of {former.population} members go on")

    def _enough_solved(self, stage: StageConfig, score: Score, last: bool) -> bool:
        """Whether a check found as many solved members as end the stage early. The last stage wants perfect ones."""
        order = ranking(self.population, score)
        self.state.solved_hard = float(np.mean(score.exact == 1.0))
        self.state.best_hard = float(score.exact[order[0]])
        self.state.best_halted = None if stage.straight_through else float(score.halted[order[0]])
        solved = [member for member in order if score.exact[member] == 1.0]
        if last:
            solved = self._perfect(solved)
            self.state.perfect = len(solved)
        return 0 < stage.stop_at <= len(solved)

    def finish(self) -> dict[str, Any]:
        """Examine the best members of the last stage, save them and write the result."""
        config, stage = self.config, self.config.stages[-1]
        score = (self.validate or compile_validation(config, stage, self.devices))(self.population)
        self._stop_if_asked()
        order = ranking(self.population, score)[:BEST]
        perfect = self._perfect([member for member in order if score.exact[member] == 1.0])
        order = sorted(order, key=lambda member: member not in perfect)  # stable
        for rank, member in enumerate(order):
            one = member_at(self.population, member)
            description = {
                "task": config.task_name,
                "config": config_to_dict(config),
                "hyper": {name: float(value) for name, value in one.hyper._asdict().items()},
                "place": int(member),  # its index in the population
                "steps": int(one.members.step),
                "level": int(one.members.progress.level),
                "validation_exact_hard": float(score.exact[member]),
                "validation_halted": float(score.halted[member]),
                "perfect": member in perfect,
                "device": device_name(self.devices),
            }
            self.run.save_member(rank, one.members.controller, description)
        self._tick()
        result = {
            "task": config.task_name,
            "seed": config.seed,
            "perfect_members": len(perfect),
            "examined_members": len(self.examinations),
            "failed_examinations": self._failures(),
            "kept_members": len(order),
            "best_validation_exact_hard": float(np.max(score.exact)),
            "stages": self.state.stage + 1,
            "seconds": round(self.state.seconds, 1),
            "device": device_name(self.devices),
        }
        self.run.write_result(result)
        return result

    def _perfect(self, members: list[int]) -> list[int]:
        """Of the first few members those that are perfect under every limit, at the trained size and far beyond."""
        first = members[:EXAMINED]
        fresh = [member for member in first if member not in self.examinations]
        if fresh:
            what = "member" if len(fresh) == 1 else f"{len(fresh)} members"
            beyond = f", also at n = {FAR}" if goes_far(self.config) else ""
            self.callbacks.activity(f"examining the best {what}{beyond}")
        for member in fresh:
            controller = member_at(self.population.members.controller, member)
            self.examinations[member] = examine(
                self.config, controller, self.config.seed, EXAMINATION, self._stop_if_asked
            )
        return [member for member in first if self.examinations[member].passed]

    def _failures(self) -> list[dict[str, Any]]:
        """How many of the examined members failed in which part, under which limit."""
        found = Counter((one.failed, one.limit) for one in self.examinations.values() if not one.passed)
        return [{"part": part, "limit": limit, "members": count} for (part, limit), count in found.items()]

    def _tick(self) -> None:
        """Count the time since the last tick, compiling and saving included."""
        now = time.monotonic()
        self.state.seconds += now - self.ticked_at
        self.ticked_at = now

    def _report(self, report: StepReport, steps: int, took: float, enough: bool) -> None:
        config, state = self.config, self.state
        stage = config.stages[state.stage]
        progress = jax.tree.map(np.asarray, self.population.members.progress)
        levels, counts = np.unique(progress.level, return_counts=True)
        solved = (progress.level >= stage.max_complexity) & (progress.error < SOLVED_ERROR)
        error, loss = np.asarray(report.error), np.asarray(report.loss)
        loss = loss[np.isfinite(loss)]
        rate = steps * _example_steps(config, stage) / took
        left = (stage.steps - state.step) * _example_steps(config, stage)
        left += sum(later.steps * _example_steps(config, later) for later in config.stages[state.stage + 1 :])
        line = Report(
            stage=state.stage,
            step=state.step,
            stage_steps=stage.steps,
            stage_ends=enough or state.step == stage.steps,
            max_complexity=stage.max_complexity,
            population=stage.population,
            levels={int(level): int(count) for level, count in zip(levels, counts, strict=True)},
            loss=float(np.median(loss)) if loss.size else None,
            best_error=float(error.min()),
            median_error=float(np.median(error)),
            best_exact=float(np.asarray(report.exact).max()),
            solved_soft=float(np.mean(solved)),
            solved_hard=state.solved_hard,
            best_hard=state.best_hard,
            best_halted=state.best_halted,
            perfect=state.perfect,
            examined=len(self.examinations),
            failed=failures_text(self._failures()),
            skipped=int(np.asarray(self.population.members.skipped).sum()),
            seconds=round(state.seconds, 2),
            example_steps_per_s=round(rate, 1),
            seconds_left=round(left / rate, 1),
            peak_memory=peak_memory(),
            notice=self._notice(int(levels[-1]), took),
        )
        self.run.append_metrics(asdict(line))
        state.rows += 1
        self.callbacks.report(line)
        if line.notice is not None:
            self.callbacks.note(line.notice)

    def _notice(self, highest: int, took: float) -> str | None:
        """The words of a run that does not get started: once, after a minute of training on the first level."""
        before = self.state.on_first_level
        if has_left_first_level(self.config, self.config.stages[self.state.stage].max_complexity, highest):
            return None
        self.state.on_first_level += took
        return stuck_notice(self.run, self.config) if before < PATIENCE <= self.state.on_first_level else None

    def _note(self, text: str) -> None:
        self.callbacks.note(f"stage {self.state.stage}: {text}")

    def _keep(self) -> None:
        """Remember the present state: from here the run can go on to the same bits.

        Between the steps before a check and the end of that check it cannot, because a resumed run would skip the
        check. A run that is stopped there goes back to before these steps.
        """
        self.kept = self.population, replace(self.state)

    def _stop_if_asked(self) -> None:
        if self.stopping():
            self._tick()
            state = self.kept[1]
            state.seconds = self.state.seconds
            self._save()
            onwards = self.run.resume_command(self.config)
            raise Interrupted(f"stopped at step {state.step} of stage {state.stage}; go on with: {onwards}")

    def _save(self) -> None:
        population, state = self.kept
        description = {"state": asdict(state), "config": config_to_dict(self.config)}
        save_arrays(self.run.checkpoint, jax.tree.map(np.asarray, population), description)
        self.saved_at = time.monotonic()


def _example_steps(config: TrainConfig, stage: StageConfig) -> int:
    """Example-steps of one training step of a stage."""
    return stage.population * config.batch * config.loop_steps(stage)


def _load_checkpoint(run: RunFolder, config: TrainConfig) -> tuple[_State, Population]:
    """The state and the population of a run's checkpoint."""
    path = run.checkpoint
    state = _State()

    def like(description: dict[str, Any]) -> Population:
        nonlocal state
        try:
            # What could not be set when it was written has its default.
            same = described_config(path, description) == config
        except UntrustedFile:  # it names a Python file, and the run does not
            same = False
        if not same:
            raise NramError(
                f"{path} was written under another configuration than that of run.json: "
                "restore run.json from a copy, or start a new run"
            )
        state = _described_state(path, description)
        if state.stage >= len(config.stages) or state.step > config.stages[state.stage].steps:
            raise NramError(f"{path} cannot be used: it is at step {state.step} of stage {state.stage}, beyond the end")
        return abstract_population(config, config.stages[state.stage].population)

    population, _ = load_arrays(path, like)
    members = population.members
    counts = (members.step, members.skipped, members.progress.raised, members.island.stalled)
    # A hostile level would become the complexity of examples that do not fit their memory.
    least, most = np.min(members.progress.level), np.max(members.progress.level)
    if min(map(np.min, counts)) < 0 or least < 1 or most > MOST_COMPLEXITY:
        raise NramError(f"{path} cannot be used: it holds a negative count, or a level outside 1..{MOST_COMPLEXITY}")
    return state, population


def _described_state(path: Path, description: dict[str, Any]) -> _State:
    state = description.get("state")
    if isinstance(state, dict) and "hard" in state:  # until version 0.1 `solved_hard` was called `hard`
        state = {"solved_hard": state["hard"], **{name: value for name, value in state.items() if name != "hard"}}
    return read_record(_Description, {"state": state}, str(path)).state


def best_members(run: RunFolder, config: TrainConfig, devices: list[Device], count: int) -> Iterator[Controller]:
    """The best members of a run: those that it kept, or, if it was stopped, those of its checkpoint."""
    if run.result is not None:
        yield from (run.load_member(rank)[0] for rank in run.members()[:count])
    elif run.checkpoint.is_file():
        state, population = _load_checkpoint(run, config)
        score = compile_validation(config, config.stages[state.stage], devices)(population)
        for member in ranking(population, score)[:count]:
            yield member_at(population.members.controller, int(member))
