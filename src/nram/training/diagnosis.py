"""What became of a run, why, and what to try next: read from its folder. No JAX here."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from nram.display import counted
from nram.errors import NramError
from nram.extensions import is_file_name, known_task
from nram.files import read_json
from nram.messages import shell_command
from nram.records import Tolerant, read_record
from nram.training.config import TrainConfig
from nram.training.cures import Cure, Retry, cure_lines
from nram.training.history import History, duration, rough_duration, share_text
from nram.training.run_folder import MOST_BYTES, Converged, Failure, Metrics, Result, RunFolder
from nram.training.trend import Trend

NOTICE_WIDTH = 79  # columns
MANY_SKIPPED = 0.05  # share of updates that were not finite; a few are normal
SOME_SOFT = 0.05  # share of members solved soft that makes it remarkable that none is solved hard
SAME_CURVES = 0.05  # soft and hard exact shares that differ by less are equal
PARTS = {
    "hard": "as a discrete program (hard) at the trained size",
    "far": "as a discrete program (hard) at n = 50",
    "soft": "as the continuous machine (soft) at the trained size",
}
"""The parts of an examination."""

Status = Literal["finished", "running", "stopped", "new"]


@dataclass(frozen=True)
class StageSummary:
    """How far one stage got."""

    stage: int
    max_complexity: int
    population: int
    steps: int
    stage_steps: int
    ended: bool
    seconds: float
    highest_level: int
    best_error: float
    """The least of all reports, soft."""
    solved_soft: float
    solved_hard: float | None
    """Both are the largest share of all reports."""
    best_hard: float | None
    improving: bool
    """Whether the best member still got better when the stage ended."""
    group: int = 0
    group_name: str | None = None
    attempts: int = 1
    """How often the group was at this stage: it starts again if no member passes the examination."""
    restarts: int = 0
    """Islands of the group that restarted until the end of the stage."""


@dataclass(frozen=True)
class Diagnosis:
    """What became of a run."""

    run: str
    task: str
    seed: int
    machine: str
    status: Status
    learned: bool
    verdict: str
    stages: list[StageSummary]
    facts: list[str]
    """Soft and hard, halting, updates that were skipped, time and memory: a sentence each."""
    cause: str | None
    """The name of what probably went wrong."""
    explanation: str | None
    cures: list[Cure]
    """The most likely cure first."""
    next: str
    """The command to go on with."""


@dataclass(frozen=True)
class _Evaluation(Tolerant):
    """What is used of eval.json: the member's scores under every limit."""

    perfection: tuple[dict[str, Any], ...]

    def exact(self, mode: str) -> float | None:
        """The share of instances at the trained size that are right within T."""
        for row in self.perfection:
            if (row.get("mode"), row.get("limit")) == (mode, "T") and isinstance(row.get("exact"), float | int):
                return float(row["exact"])
        return None


def diagnose(run: RunFolder) -> Diagnosis:
    """Read a run that is finished, running or stopped."""
    return _Doctor(run).diagnosis()


# ---- parts of messages


def machine_text(config: TrainConfig) -> str:
    if config.groups:
        return f"{counted(len(config.groups), 'group')} ({', '.join(config.group_names)})"
    machine = config.machine
    states = f", {machine.states} states" if machine.controller == "automaton" else ""
    return (
        f"{machine.controller} {machine.hidden}{states}, {machine.registers} registers, "
        f"{len(machine.modules)} modules x {machine.repeats}"
    )


def failure_text(failure: Failure, examined: int) -> str:
    return f"{failure.members} of {examined} failed {PARTS[failure.part]}, first under {failure.limit}"


def failures_text(failures: list[dict[str, Any]]) -> str | None:
    """The same in a few words, for all failures; None if there are none."""
    places = {"hard": "hard", "far": "at n = 50", "soft": "soft"}
    return ", ".join(f"{one['members']} {places[one['part']]} ({one['limit']})" for one in failures) or None


def result_text(result: Result) -> str:
    """How a finished run ended, in a sentence or two."""
    if result.converged:
        return f"{_converged_text(result.converged)} {_winner_text(result)}"
    perfect, examined = result.perfect_members, result.examined_members
    if perfect:
        return (
            f"{perfect} of the {examined} members examined {'is' if perfect == 1 else 'are'} perfect: soft and hard, "
            f"under every step limit, and hard at n = 50 (after {result.seconds:.0f} s).{_halting_text(result)}"
        )
    best = result.best_validation_exact_hard
    return f"No member is perfect yet: the best solves {best:.1%} of the validation instances, hard."


def _converged_text(found: Converged) -> str:
    soft = f"{found.soft:,}" if found.soft else "None"
    both = f", {found.both:,} of them also as programs" if found.soft else ""
    who = f"{soft} of {found.members:,} members converged"
    return f"{who} (error 0 at the size of training){both}, after {found.updates:,} updates each."


def _winner_text(result: Result) -> str:
    """How the winner did beyond what chose it."""
    if result.perfect_members:
        return "The winner is perfect: soft and hard, under every step limit, and hard at n = 50."
    failed = "; ".join(f"it failed {PARTS[one.part]}, first under {one.limit}" for one in result.failed_examinations)
    return f"The winner is not perfect: {failed}."


def _halting_text(result: Result) -> str:
    """Whether the perfect members halt by themselves. Older results do not say it."""
    perfect, halting = result.perfect_members, result.halting_members
    if halting is None:
        return ""
    if not halting:
        what = "It does not halt within T(n), and idles" if perfect == 1 else "They do not halt within T(n), and idle"
        return f" {what} without damage."
    who = ("It" if perfect == 1 else "All") if halting == perfect else f"{halting} of them"
    return f" {who} {'halts by itself' if halting == 1 else 'halt by themselves'} within T(n)."


# ---- the first level


def start_level(config: TrainConfig) -> int:
    return max(config.curriculum.start, known_task(config.task).min_complexity)


def has_left_first_level(config: TrainConfig, max_complexity: int, highest: int) -> bool:
    """Whether a member has left the first level, or none can: without a curriculum, or in a stage of one level."""
    first = start_level(config)
    return highest > first or not config.curriculum.enabled or max_complexity <= first


def progress_notice(run: RunFolder, history: History, seconds_left: float, budget: float | None = None) -> str:
    """What a run says after a minute, and later while its task is not solved.

    What it reached, what gets better, what comes next, and how long it may take. A run may have a budget in seconds.
    """
    config, best = history.config, history.best
    group, point, trend = history.configs[best], history.last[best], history.trends[best]
    of_group = f" of group {config.group_names[best]}" if config.groups else ""
    reach = group.validated_up_to(group.stages[point.stage])
    solves = f"solves {history.right(best)} of the validation examples as a program, up to n = {reach}"
    if point.best_hard is None:
        solves = "was not checked as a program yet"
    still = f"It got no better for {duration(trend.waiting)}."
    if trend.fell_back:
        still = f"An earlier one solved {share_text(trend.hard)}, but its island got no further and started again."
    if trend.improving:
        better = history.gains(best)
        still = "It is still getting better." if better else "Whether it gets better is not known yet."
    after = f"After {duration(history.now)} no member is perfect yet."
    if config.ranked_by == "training":
        after = f"After {duration(history.now)}, converged: {history.converged or 'no member'}."
    lines = [
        after,
        f"  Reached: the best member{of_group} {solves}; soft error {point.best_error:.3f} at "
        f"n <= {point.max_complexity}. {still}",
    ]
    trends = {config.group_names[one]: history.trend(one) for one in sorted(history.last) if config.groups}
    told = [f"{name} {words}" for name, words in trends.items() if words]
    if len(trends) > 1 and told:
        lines.append(f"  Groups: {', '.join(told)}.")
    lines += [f"  Next: {words}." for words in history.next()]
    lines.append(f"  Time: all steps take about {rough_duration(seconds_left)} more at the present rate.")
    if budget is not None and budget < seconds_left:
        whole = f"all steps would take about {rough_duration(seconds_left)}"
        lines[-1] = f"  Time: the run ends with its budget, in about {rough_duration(budget)}; {whole}."
    if group.stages[-1].stop_at:
        lines[-1] += " It ends sooner when a member is perfect."
    if config.ranked_by == "training":  # a protocol has no cures
        return "\n".join(map(_folded, lines))
    if config.groups and not any(one.improving for one in history.trends.values()):
        doctor = f" What to try: {shell_command('doctor', run.path)}" if run.record.arguments[:1] == ("train",) else ""
        lines.append(f"  No group gets better.{doctor}")
    cures: list[str] = []
    if not has_left_first_level(group, point.max_complexity, point.highest_level):
        lines.append("  No member has left the first level. Hard tasks need longer.")
        lines.append("  If nothing changes, stop the run (Ctrl-C) and try, the most likely cure first:")
        cures = cure_lines(Retry(run, config).for_first_level()[:3])
    # A command stays in one line, so that it can be copied.
    return "\n".join([*(line if "nram " in line else _folded(line) for line in lines), *cures])


def _folded(line: str) -> str:
    return textwrap.fill(line, NOTICE_WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


class _Doctor:
    def __init__(self, run: RunFolder):
        self.run, self.config = run, run.config
        self.rows = run.read_progress()
        self.result = run.ending
        self.history = History(self.config)
        for row in self.rows:
            if not self.history.knows(row):
                what = "groups or stages" if self.config.groups else "stages"
                raise NramError(f"{run.metrics} cannot be used: it names {what} that {run.path / 'run.json'} lacks")
            self.history.add(row)
        self.stages = _summaries(self.config, self.rows)
        self.retry = Retry(run, self.config, self.history.best)

    def diagnosis(self) -> Diagnosis:
        config, learned = self.config, self.result is not None and self.result.learned
        settled = learned or not self.rows or config.ranked_by == "training"  # a protocol has no cures
        cause, explanation, cures = (None, None, []) if settled else self._cause()
        return Diagnosis(
            run=str(self.run.path),
            task=config.task_name,
            seed=config.seed,
            machine=machine_text(config),
            status=self.status,
            learned=learned,
            verdict=self._verdict(learned),
            stages=self.stages,
            facts=[*self._facts()],
            cause=cause,
            explanation=explanation,
            cures=cures,
            next=self._next(),
        )

    @property
    def status(self) -> Status:
        if self.result is not None:
            return "finished"
        if self.run.is_running:
            return "running"
        return "stopped" if self.rows else "new"

    def _verdict(self, learned: bool) -> str:
        if self.result is not None:
            return f"{'LEARNED' if learned else 'NOT LEARNED'}. {result_text(self.result)}"
        if not self.rows:
            return "RUNNING. Nothing is measured yet." if self.status == "running" else "NOT STARTED. No step was made."
        last = self.rows[-1]
        where = f", at step {last.step} of stage {last.stage}, of {counted(len(self.config.stages), 'stage')}"
        where = f"{'' if self.config.groups else where}, after {duration(last.seconds)}."
        for index, name in enumerate(self.config.group_names):
            where += f" {name}: {self.history.place(index)}."
        if self.status == "running":
            return f"RUNNING{where}"
        return f"STOPPED before the end{where} No member was examined for the result."

    def _next(self) -> str:
        config = self.config
        files = {"task": config.task if is_file_name(config.task) else None, "module": list(config.module_files)}
        match self.status:
            case "finished" if self.result and self.result.learned:
                return shell_command("extract", self.run.path, **files)
            case "finished":
                return shell_command("eval", self.run.path, **files)
            case "running":
                return shell_command("doctor", self.run.path, **files)
            case _:
                return shell_command("train", config.task, out=self.run.path, resume=True, module=files["module"])

    # ---- facts

    def _facts(self) -> Iterator[str]:
        if not self.rows:
            return
        last, history = self.rows[-1], self.history
        learned = self.result is not None and self.result.learned
        for index, trend in {} if learned else sorted(history.trends.items()):
            whose = f" of {self.config.group_names[index]}" if self.config.groups else ""
            still = (
                "it was still getting better"
                if trend.improving and history.gains(index)
                else "it was not getting better"
            )
            yield f"Progress: the best member{whose} last got better at {duration(trend.improved)}; at the end {still}."
        soft, hard = max(row.solved_soft for row in self.rows), max(row.solved_hard or 0.0 for row in self.rows)
        # A run that learned may have stopped before training batches counted a member as solved soft.
        if learned or not self.config.curriculum.enabled:
            yield f"Solved: at best {hard:.0%} of the members at a time, hard."
        else:
            yield f"Soft and hard: at best {soft:.0%} of the members were solved soft, and {hard:.0%} hard."
        of_best = (row for row in reversed(self.rows) if row.group == history.best)
        halted = next((row.best_halted for row in of_best if row.best_halted is not None), None)
        if halted is not None:
            yield f"Halting: the best member stops by itself on {halted:.0%} of the validation set."
        if self.result is not None:
            for failure in self.result.failed_examinations:
                yield f"Examination: {failure_text(failure, self.result.examined_members)}."
        skipped = self._skipped()
        yield f"Updates: {skipped:.1%} were not finite and were skipped." if skipped else "Updates: all were finite."
        memory = max(row.peak_memory or 0 for row in self.rows)
        used = f", with {memory / 2**30:.1f} GiB of main memory at most" if memory else ""
        yield f"Time: {duration(last.seconds)} on {self.run.record.device}{used}."

    def _skipped(self) -> float:
        """The largest share of updates that were skipped. Clones inherit the count of their parents."""
        shares = [0.0]
        steps = {(one.group, one.stage): one.steps for one in self.stages}
        for row in self.rows:
            before = sum(steps.get((row.group, stage), 0) for stage in range(row.stage))
            shares.append(row.skipped / max(1, row.population * (before + row.step)))
        return max(shares)

    # ---- the cause

    def _cause(self) -> tuple[str | None, str | None, list[Cure]]:
        """The first thing that went wrong, in words, and its cures."""
        checks: tuple[Callable[[], tuple[str, str, list[Cure]] | None], ...] = (
            self._diverged,
            self._on_first_level,
            self._soft_only,
            self._failed_examination,
            self._last_stage_failed,
            self._on_a_level,
        )
        for check in checks:
            if (found := check()) is not None:
                return found
        return self._partly_right()

    def _partly_right(self) -> tuple[str | None, str | None, list[Cure]]:
        retry, trends = self.retry, self.history.trends
        improving = [index for index, trend in sorted(trends.items()) if trend.improving]
        if self.status != "finished" and (not self.config.groups or improving):
            return None, None, []  # too early to say
        text = "The best member is right on a part of the validation set only."
        if not self.config.groups:
            more = [retry.steps(self.stages[-1].stage)] if improving else []
            return "partly right", text, [*more, retry.seed(), retry.members(), *retry.culling(0)]
        cures = [retry.seed(), *retry.search(), retry.registers(), retry.members(), *retry.module()]
        if self.status == "finished":
            cures = [*(Retry(self.run, self.config, index).steps(0) for index in improving), *cures]
        else:
            longest = min(trend.waiting for trend in trends.values())
            text += f" No group got better for {duration(longest)}."
        return "partly right", text, cures

    def _last_stage_failed(self) -> tuple[str, str, list[Cure]] | None:
        """Groups that reached their last stage and start again there. Their last members say little."""
        stages = [len(one.stages) for one in self.config.group_configs]
        lasts = [one for one in self.stages if one.stage == stages[one.group] - 1 and one.ended and one.solved_hard]
        if not lasts or not self.config.groups:
            return None
        last = max(lasts, key=lambda one: one.attempts)
        failed = [row.failed for row in self.rows if row.group == last.group and row.failed]
        text = (
            f"Group {last.group_name} reached its last stage {_times(last.attempts)}, and no member passed the "
            f"examination there{f' (failed: {failed[-1]})' if failed else ''}."
        )
        retry = Retry(self.run, self.config, last.group)
        more = retry.steps(last.stage, "its members are nearly right")
        return "last stage", text, [retry.seed(), more, *retry.for_halting(), *retry.for_length()]

    def _diverged(self) -> tuple[str, str, list[Cure]] | None:
        if (share := self._skipped()) <= MANY_SKIPPED:
            return None
        text = f"Training diverged: {share:.0%} of the updates were not finite, and nothing was learned from them."
        return "diverged", text, [*self.retry.for_divergence(), self.retry.seed()]

    def _on_first_level(self) -> tuple[str, str, list[Cure]] | None:
        first = max((one for one in self.stages if one.stage == 0), key=lambda one: one.highest_level)
        if has_left_first_level(self.config, first.max_complexity, first.highest_level):
            return None
        if self.status != "finished" and len(self.stages) == 1 and first.improving:
            return None  # it has only begun
        text = (
            f"No member left the first level in stage {first.stage}: none is right on 90% of its smallest examples. "
            f"The least error was {first.best_error:.3f}."
        )
        retry = Retry(self.run, self.config, first.group)
        more = [retry.steps(first.stage)] if first.improving else []
        return "first level", text, [*more, *retry.for_first_level()]

    def _soft_only(self) -> tuple[str, str, list[Cure]] | None:
        for stage in self.stages:
            if stage.solved_soft >= SOME_SOFT and not stage.solved_hard:
                break
        else:
            return None
        text = (
            f"{stage.solved_soft:.0%} of the members solved stage {stage.stage} soft, and none hard. Either the "
            f"program is unrolled (right up to n = {stage.max_complexity}, wrong beyond), or its circuits are blurred."
        )
        retry = Retry(self.run, self.config, stage.group)
        unrolled, blurred = retry.for_unrolled(stage.stage), retry.for_blur()
        soft, hard = self._evaluated("soft"), self._evaluated("hard")
        if soft is None or hard is None:
            which = Cure(
                "Find out which: equal errors of soft and hard mean unrolled.", shell_command("eval", self.run.path)
            )
            return "soft, not hard", text, [which, *unrolled, *blurred] if self.result else [*unrolled, *blurred]
        if soft - hard < SAME_CURVES:
            return "unrolled", f"{text} Soft and hard make the same errors, so it is unrolled.", unrolled
        return "blurred", f"{text} Soft is better than hard, so they are blurred.", blurred

    def _evaluated(self, mode: str) -> float | None:
        """A share of right answers that `nram eval` measured; None if it did not."""
        try:
            path = self.run.path / "eval.json"
            return read_record(_Evaluation, read_json(path, MOST_BYTES), str(path)).exact(mode)
        except (NramError, OSError):
            return None

    def _failed_examination(self) -> tuple[str, str, list[Cure]] | None:
        if self.result is None or not self.result.failed_examinations:
            return None
        failure = max(self.result.failed_examinations, key=lambda one: one.members)
        if failure.part == "soft":
            text = "The best members are right as programs, and wrong as soft machines: their circuits are blurred."
            return "blurred", text, [*self.retry.for_blur(), *self.retry.for_halting()]
        if failure.limit != "T":
            text = "The best members are right within T, and wrong later: they do not stop."
            return "does not halt", text, [*self.retry.for_halting(), self.retry.seed()]
        text = "The best members are right on the validation set, and wrong on other or longer inputs."
        smallest = Cure(
            "Find the smallest input that fails: extract the program, then verify it.",
            shell_command("extract", self.run.path),
        )
        return "does not generalise", text, [smallest, *self.retry.for_length(), self.retry.seed()]

    def _on_a_level(self) -> tuple[str, str, list[Cure]] | None:
        for stage in self.stages:
            if stage.highest_level < stage.max_complexity and not stage.solved_hard and stage.ended:
                break
        else:
            return None
        if not self.config.curriculum.enabled:
            return None
        text = f"No member got beyond level {stage.highest_level} of {stage.max_complexity} in stage {stage.stage}."
        more = [self.retry.steps(stage.stage)] if stage.improving else []
        cures = [*more, self.retry.seed(), self.retry.registers(), self.retry.members(), *self.retry.culling(0)]
        return "low level", text, cures


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _summaries(config: TrainConfig, rows: list[Metrics]) -> list[StageSummary]:
    """The stages of a run's groups, from its reports."""
    spent: Counter[tuple[int, int]] = Counter()
    of_stage: dict[tuple[int, int], list[Metrics]] = {}
    now = 0.0
    for row in rows:
        key = row.group, row.stage
        spent[key] += round(1000 * (row.seconds - now))
        now = row.seconds
        of_stage.setdefault(key, []).append(row)
    summaries = []
    for (group, stage), found in sorted(of_stage.items()):
        trend, last = Trend(), found[-1]
        for row in found:
            trend.add(row)
        summaries.append(
            StageSummary(
                stage=stage,
                max_complexity=last.max_complexity,
                population=last.population,
                steps=last.step,
                stage_steps=config.group_configs[group].stages[stage].steps,
                ended=last.stage_ends,
                seconds=round(spent[group, stage] / 1000, 1),
                highest_level=max(row.highest_level for row in found),
                best_error=min(row.best_error for row in found),
                solved_soft=max(row.solved_soft for row in found),
                solved_hard=max((row.solved_hard for row in found if row.solved_hard is not None), default=None),
                best_hard=max((row.best_hard for row in found if row.best_hard is not None), default=None),
                improving=trend.improving,
                group=group,
                group_name=config.group_names[group] if config.groups else None,
                attempts=len({row.attempt for row in found}),
                restarts=max(row.restarts for row in found),
            )
        )
    return summaries
