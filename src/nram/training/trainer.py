"""A training run: groups that take turns, checkpoints, reports and the result.

None of its decisions depends on the clock: a run that is stopped and resumed at any checkpoint ends in the same bits as
an uninterrupted one.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from math import inf
from pathlib import Path
from typing import Annotated, Any

import jax
import numpy as np

from nram.display import counted
from nram.errors import NramError, UntrustedFile
from nram.machine import Controller
from nram.records import Span, Tolerant, read_record
from nram.runtime import Device, device_name, peak_memory
from nram.training.callbacks import Interrupted, Report, TrainingCallbacks
from nram.training.checkpoint import load_arrays, save_arrays
from nram.training.config import EXAMINED, MOST_COMPLEXITY, TrainConfig
from nram.training.diagnosis import failures_text, progress_notice
from nram.training.discrete import Score
from nram.training.group import Group, GroupState, Hooks, example_steps, work_of_step
from nram.training.history import History
from nram.training.member import StepReport
from nram.training.old_settings import RENAMED_HYPER
from nram.training.population import Population, abstract_population, member_at
from nram.training.run_folder import RunFolder, described_config
from nram.training.schedule import join, next_group, share_of
from nram.training.selection import compile_validation, ranking
from nram.training.settings import config_to_dict
from nram.training.trend import standing

CHECKPOINT_SECONDS = 20
SOLVED_ERROR = 0.02  # a member with a smaller moving error at the stage's last level counts as solved, soft
BEST = 8  # members kept at the end
NOTICES = (60.0, 300.0, 900.0)  # seconds after which a run that has not solved its task says where it stands


MemberDetails = tuple[TrainConfig, Controller, dict[str, Any]]
"""The configuration of a member's group, its controller, and its description, as `RunFolder.load_member` gives them."""


@dataclass
class _State:
    """What a checkpoint holds besides the populations."""

    groups: list[GroupState] = field(default_factory=list)
    current: Annotated[int, Span(-1, 15)] = -1  # the group whose round has begun; -1: none
    seconds: Annotated[float, Span(0, 1e12)] = 0.0
    rows: Annotated[int, Span(0, 10**9)] = 0  # of metrics.jsonl
    notices: Annotated[int, Span(0, len(NOTICES))] = 0  # how many of the notices are given or passed


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
    solved: Callable[[list[MemberDetails]], None] = lambda members: None,
    until: float = inf,
) -> dict[str, Any]:
    """Train to the end, from the checkpoint if there is one. Returns the result.

    `solved` gets the members that a check finds right on the whole validation set, the best first. The run stops at the
    time `until`, as if asked to, and before a round that would end later.
    """
    trainer = _Trainer(run, config, devices, callbacks or TrainingCallbacks(), stopping, solved, until)
    trainer.run_groups()
    return trainer.finish()


class _Trainer:
    def __init__(
        self,
        run: RunFolder,
        config: TrainConfig,
        devices: list[Device],
        callbacks: TrainingCallbacks,
        stopping: Callable[[], bool],
        solved: Callable[[list[MemberDetails]], None],
        until: float,
    ):
        self.run, self.config, self.devices = run, config, devices
        self.callbacks, self.stopping, self.solved, self.until = callbacks, stopping, solved, until
        populations: dict[int, Population] = {}
        if run.checkpoint.is_file():
            self.state, populations = _load_checkpoint(run, config)
        else:
            self.state = _State([GroupState() for _ in config.group_configs])
        self.groups = [
            Group(one, devices, self._hooks(index), bool(config.groups), state, populations.get(index))
            for index, (one, state) in enumerate(zip(config.group_configs, self.state.groups, strict=True))
        ]
        if lost := run.cut_metrics(self.state.rows):
            self.state.rows -= lost
            callbacks.warning(f"{run.metrics} has lost {counted(lost, 'line')}: its curves have a gap; the run goes on")
        self.latest = max(0, self.state.current)  # the group of the last round
        self.history = History(config)
        self.history.read(run)
        self.measured: tuple[float, float] = (0.0, 0.0)  # seconds, and the work done in them
        self.compiled: set[int] = set()  # groups with a report since the start of this process
        self.rounds: dict[tuple[int, int], float] = {}  # seconds of the last round of each group and stage
        self.stepped = 0.0  # seconds of the training steps of this round
        self.saved_at = self.ticked_at = time.monotonic()
        self.saved: Any = None  # what the checkpoint holds of this process
        self._keep()

    def _hooks(self, index: int) -> Hooks:
        return Hooks(
            activity=lambda text: self.callbacks.activity(self._named(index, text)),
            note=lambda text: self._note(index, text),
            report=lambda report, steps, took, ends: self._report(index, report, steps, took, ends),
            keep=self._keep,
            stop_if_asked=self._stop_if_asked,
            solved=lambda members: self.solved([_details(self.config.group_configs[index], one) for one in members]),
        )

    def run_groups(self) -> None:
        """Let the groups take turns until one has solved the task or all are done."""
        state = self.state
        while True:
            if state.current < 0:
                chosen = next_group(self.config, state.groups)
                if chosen is None:
                    return
                state.current = chosen
            self.latest = state.current
            group = self.groups[state.current]
            if group.population is None:
                self._begin(state.current)
            stage, began, self.stepped = group.state.stage, time.monotonic(), 0.0
            here = self.latest, stage
            self._stop_if_asked(self.rounds.get(here, 0.0))  # a round that is stopped is lost
            group.round(share_of(self.config, state.groups, state.current))
            state.current = -1
            self._keep()
            # The first round of a stage compiles, and the next one does not: only its training steps tell how long.
            self.rounds[here] = time.monotonic() - began if here in self.rounds else self.stepped
            if group.state.stage != stage or group.state.done:
                self._save()
            self._stop_if_asked()

    def _begin(self, index: int) -> None:
        join(self.state.groups, index)
        self.groups[index].members()
        self._keep()
        if index:
            self._note(index, "joins")

    def finish(self) -> dict[str, Any]:
        """Examine the best members of the best group, save them and write the result."""
        by_training: list[tuple[int, int]] = []
        if self.config.ranked_by == "training":
            scores = {index: group.validated() for index, group in enumerate(self.groups)}
            by_training = self._by_training(scores)
            index = by_training[0][0]
        else:
            index = best_group(self.state.groups)
            scores = {index: self.groups[index].validated()}
        group, score = self.groups[index], scores[index]
        self._stop_if_asked()
        winners, examined, perfect = _winners(group, score)
        halting = [member for member in perfect if group.examinations[member].halts]
        order = (by_training or [(index, member) for member in winners])[:BEST]
        for rank, (of, member) in enumerate(order):
            config, one = self.groups[of].config, member_at(self.groups[of].members(), member)
            description = {
                "task": config.task_name,
                "config": config_to_dict(config),
                "hyper": _hyper(one),
                "group": of,
                "place": int(member),  # its index in the population
                "steps": int(one.members.step),
                "level": int(one.members.progress.level),
                "validation_exact_hard": float(scores[of].exact[member]),
                "validation_halted": float(scores[of].halted[member]),
                "perfect": of == index and member in perfect,
                "halts": of == index and member in halting,
                "device": device_name(self.devices),
            }
            self.run.save_member(rank, one.members.controller, description)
        self._tick()
        result = {
            "task": group.config.task_name,
            "seed": self.config.seed,
            "perfect_members": len(perfect),
            "halting_members": len(halting),
            "examined_members": len(examined),
            "failed_examinations": group.failures(examined),
            "kept_members": len(order),
            "best_validation_exact_hard": float(np.max(score.exact)),
            "group": self._name(index),
            "stages": group.state.stage + 1,
            "seconds": round(self.state.seconds, 1),
            "device": device_name(self.devices),
        }
        if self.config.ranked_by == "training":
            result["converged"] = self._converged(list(scores.values()))
        self.run.write_result(result)
        return result

    def _by_training(self, scores: dict[int, Score]) -> list[tuple[int, int]]:
        """The members of all groups, as (group, member), from the least soft error to the greatest."""
        errors = {index: np.asarray(group.members().members.progress.error) for index, group in enumerate(self.groups)}
        every = [(index, member) for index, score in scores.items() for member in range(len(score.soft))]
        return sorted(every, key=lambda one: (scores[one[0]].soft[one[1]], errors[one[0]][one[1]]))

    def _converged(self, scores: list[Score]) -> dict[str, int]:
        """How many members of all groups converged, as soft machines and as programs, after how many updates."""
        return {
            "members": sum(len(score.soft) for score in scores),
            "soft": sum(int(np.sum(score.soft == 0)) for score in scores),
            "hard": sum(int(np.sum(score.error == 0)) for score in scores),
            "both": sum(int(np.sum((score.soft == 0) & (score.error == 0))) for score in scores),
            "updates": max(group.state.step for group in self.groups),
        }

    def _tick(self) -> float:
        """Count the time since the last tick, compiling and saving included, and return it."""
        now = time.monotonic()
        passed = now - self.ticked_at
        self.state.seconds += passed
        self.ticked_at = now
        return passed

    def _report(self, index: int, report: StepReport, steps: int, took: float, ends: bool) -> None:
        since = self._tick()
        self.stepped += took
        group, state = self.groups[index], self.state
        config, stage, reached = group.config, group.stage, group.state
        progress = jax.tree.map(np.asarray, group.members().members.progress)
        levels, counts = np.unique(progress.level, return_counts=True)
        solved = (progress.level >= stage.max_complexity) & (progress.error < SOLVED_ERROR)
        error, loss = np.asarray(report.error), np.asarray(report.loss)
        loss = loss[np.isfinite(loss)]
        rate = steps * example_steps(config, stage) / took
        self._measure(index, steps, took, since)
        waiting = [group for group in self.groups if group.nearly_done]  # the run ends with the first
        left = sum(group.work_left for group in waiting[:1] or self.groups)
        line = Report(
            waits=reached.waits,
            group=index,
            group_name=self._name(index),
            attempt=reached.attempt,
            restarts=reached.restarts,
            checks=sum(one.rounds for one in state.groups),
            stage=reached.stage,
            step=reached.step,
            stage_steps=stage.steps,
            stage_ends=ends or reached.step == stage.steps,
            max_complexity=stage.max_complexity,
            population=stage.population,
            levels={int(level): int(count) for level, count in zip(levels, counts, strict=True)},
            loss=float(np.median(loss)) if loss.size else None,
            best_error=float(error.min()),
            median_error=float(np.median(error)),
            best_exact=float(np.asarray(report.exact).max()),
            solved_soft=float(np.mean(solved)) if reached.converged is None else reached.converged,
            solved_hard=reached.solved_hard,
            best_hard=reached.best_hard,
            best_halted=reached.best_halted,
            perfect=reached.perfect,
            examined=len(group.examinations),
            failed=failures_text(group.failures()),
            skipped=int(np.asarray(group.members().members.skipped).sum()),
            seconds=round(state.seconds, 2),
            example_steps_per_s=round(rate, 1),
            seconds_left=round(left * self.measured[0] / self.measured[1], 1),
            peak_memory=peak_memory(),
            notice=None,
            budget_left=None if self.until == inf else round(max(0.0, self.until - time.monotonic()), 1),
        )
        self.history.add(line)
        line = replace(line, notice=self._notice(line))
        self.run.append_metrics(asdict(line))
        state.rows += 1
        self.callbacks.report(line)
        if line.notice is not None:
            self.callbacks.note(line.notice)

    def _measure(self, index: int, steps: int, took: float, since: float) -> None:
        """Add to what is known of the run's speed: with its checks, without compiling and examining."""
        group, (seconds, work) = self.groups[index], self.measured
        # Compiling comes before the first report of a stage, and later stages examine members.
        whole = group.state.stage == 0 and index in self.compiled
        self.compiled.add(index)
        self.measured = seconds + (since if whole else took), work + steps * work_of_step(group.config, group.stage)

    def _notice(self, report: Report) -> str | None:
        """Where the run stands, after a minute and later. The clock decides nothing but these words."""
        due = sum(self.state.seconds >= seconds for seconds in NOTICES)
        if due <= self.state.notices or self.history.solved:
            return None
        self.state.notices = due
        return progress_notice(self.run, self.history, report.seconds_left, report.budget_left)

    def _name(self, index: int) -> str | None:
        return self.config.group_names[index] if self.config.groups else None

    def _named(self, index: int, text: str) -> str:
        return f"group {self._name(index)}: {text}" if self.config.groups else text

    def _note(self, index: int, text: str) -> None:
        self.callbacks.note(self._named(index, f"stage {self.groups[index].state.stage}: {text}"))

    def _keep(self) -> None:
        """Remember the present state: from here the run can go on to the same bits.

        Between the steps before a check and the end of that check it cannot, because a resumed run would skip the
        check. A run that is stopped there goes back to before these steps.
        """
        state = replace(self.state, groups=[replace(group.state) for group in self.groups])
        self.kept = [group.population for group in self.groups], state
        if time.monotonic() - self.saved_at >= CHECKPOINT_SECONDS:
            self._save()

    def _stop_if_asked(self, needed: float = 0.0) -> None:
        """Save and stop, if the caller wants it or fewer seconds are left than needed."""
        if self.stopping() or time.monotonic() + needed > self.until:
            self._tick()
            state = self.kept[1]
            state.seconds = self.state.seconds
            if self.saved is not self.kept:  # large populations take seconds
                self._save()
            onwards = self.run.resume_command(self.config)
            group = state.groups[self.latest]
            where = self._named(self.latest, f"step {group.step} of stage {group.stage}")
            raise Interrupted(f"stopped at {where}; go on with: {onwards}")

    def _save(self) -> None:
        populations, state = self.kept
        trees = {str(index): one for index, one in enumerate(populations) if one is not None}
        if not trees:
            return  # no group has begun: there is nothing to lose
        arrays = trees if self.config.groups else populations[0]
        description = {"state": asdict(state), "config": config_to_dict(self.config)}
        save_arrays(self.run.checkpoint, jax.tree.map(np.asarray, arrays), description)
        self.saved_at, self.saved = time.monotonic(), self.kept


def _winners(group: Group, score: Score) -> tuple[list[int], list[int], list[int]]:
    """The members from the best to the worst, those that were examined, and the perfect ones of these.

    Perfect members come first, and before them those that halt. Where members are ranked by training, the examination
    comes after the choice and changes nothing about it.
    """
    order = [int(member) for member in ranking(group.members(), score)]
    if score.soft is not None:
        return order, order[:1], group.perfect(order[:1])
    frozen, solved = group.frozen(), [member for member in order if score.exact[member] == 1.0]
    halting = [member for member in solved if score.halted[member] == 1.0][:EXAMINED]
    kept = [member for member in solved if frozen[member]] or solved
    examined = list(dict.fromkeys([*halting, *kept[:EXAMINED]]))
    perfect = [*group.perfect(halting), *group.perfect(kept)]
    halting = [member for member in perfect if group.examinations[member].halts]
    perfect = list(dict.fromkeys([*halting, *perfect]))
    return [*perfect, *(member for member in order if member not in perfect)], examined, perfect


def _hyper(member: Population) -> dict[str, float]:
    values = {name: float(value) for name, value in member.hyper._asdict().items()}
    return {**values, "learning_rate": abs(values["learning_rate"])}  # negative: frozen


def best_group(states: list[GroupState]) -> int:
    """The group that came furthest; the first of equals. Where members are ranked by training, that of the best."""

    def merit(index: int) -> tuple[float, ...]:
        state = states[index]
        if state.best_soft is not None:
            return (-state.best_soft, -index)
        return (*standing(state), state.rounds > 0, -index)

    return max(range(len(states)), key=merit)


def _load_checkpoint(run: RunFolder, config: TrainConfig) -> tuple[_State, dict[int, Population]]:
    """The state of a run's checkpoint, and the populations of the groups that have begun."""
    path = run.checkpoint
    state = _State()

    def like(description: dict[str, Any]) -> Any:
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
        _check_state(path, config, state)
        shapes = {
            str(index): abstract_population(one, one.stages[reached.stage].population)
            for index, (one, reached) in enumerate(zip(config.group_configs, state.groups, strict=True))
            if reached.begun
        }
        return shapes if config.groups else shapes["0"]

    def converted(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The columns of `Hyper` under today's names, with those that earlier versions did not have."""
        limit, new = config.first_limit, dict(arrays)
        # Up to 0.2 there were no groups, and every member had the step limits of the configuration.
        limits = {} if config.groups else {"steps_per_item": limit.per_item, "steps_constant": limit.constant}
        added = {"state_penalty": 0.0, **limits}
        for name, column in arrays.items():
            if not name.endswith("hyper.learning_rate"):
                continue
            prefix = name.removesuffix("learning_rate")
            for old, today in RENAMED_HYPER.items():
                if prefix + old in new:
                    new.setdefault(prefix + today, new.pop(prefix + old))
            for absent, value in added.items():
                new.setdefault(prefix + absent, np.full_like(column, value))
        return new

    arrays, _ = load_arrays(path, like, converted)
    populations = {int(index): one for index, one in arrays.items()} if config.groups else {0: arrays}
    for population in populations.values():
        _check_population(path, population)
    return state, populations


def _check_state(path: Path, config: TrainConfig, state: _State) -> None:
    if len(state.groups) != len(config.group_configs) or state.current >= len(state.groups):
        raise NramError(f"{path} cannot be used: its groups are not those of the configuration")
    for one, reached in zip(config.group_configs, state.groups, strict=True):
        if reached.stage >= len(one.stages) or reached.step > one.stages[reached.stage].steps:
            where = f"step {reached.step} of stage {reached.stage}"
            raise NramError(f"{path} cannot be used: it is at {where}, beyond the end")


def _check_population(path: Path, population: Population) -> None:
    members = population.members
    counts = (members.step, members.skipped, members.progress.raised, members.island.stalled)
    # A hostile level would become the complexity of examples that do not fit their memory.
    least, most = np.min(members.progress.level), np.max(members.progress.level)
    if min(map(np.min, counts)) < 0 or least < 1 or most > MOST_COMPLEXITY:
        raise NramError(f"{path} cannot be used: it holds a negative count, or a level outside 1..{MOST_COMPLEXITY}")


def _described_state(path: Path, description: dict[str, Any]) -> _State:
    state = description.get("state")
    if isinstance(state, dict) and "groups" not in state:  # until version 0.2 a run was a single group
        names = {one.name for one in fields(GroupState)}
        group = {"begun": True, "solved_hard": state.get("hard")} | {k: v for k, v in state.items() if k in names}
        rest = {name: value for name, value in state.items() if name in ("seconds", "rows")}
        state = {**rest, "groups": [group], "current": 0}
    return read_record(_Description, {"state": state}, str(path)).state


def best_members(run: RunFolder, config: TrainConfig, devices: list[Device], count: int) -> Iterator[MemberDetails]:
    """The best members of a run, as `RunFolder.load_member` gives them: those that it kept, or, if it was stopped,
    those of its checkpoint."""
    if run.result is not None:
        for rank in run.members()[:count]:
            yield run.load_member(rank)
    elif run.checkpoint.is_file():
        state, populations = _load_checkpoint(run, config)
        index = best_group(state.groups)
        one, population = config.group_configs[index], populations[index]
        score = compile_validation(one, one.stages[state.groups[index].stage], devices)(population)
        for member in ranking(population, score)[:count]:
            yield _details(one, member_at(population, int(member)))


def _details(config: TrainConfig, member: Population) -> MemberDetails:
    return config, member.members.controller, {"hyper": _hyper(member)}
