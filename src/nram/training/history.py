"""The groups of a run in words: what each is at, how good it is, whether it gets better, and what comes next."""

from __future__ import annotations

from collections import Counter, defaultdict
from contextlib import suppress
from typing import Protocol

from nram.display import counted
from nram.errors import NramError
from nram.training.config import StageConfig, TrainConfig
from nram.training.run_folder import RunFolder
from nram.training.trend import Point, Trend, standing


class GroupPoint(Point, Protocol):
    """What a report says about its group."""

    @property
    def group(self) -> int: ...
    @property
    def step(self) -> int: ...
    @property
    def max_complexity(self) -> int: ...
    @property
    def stage_ends(self) -> bool: ...
    @property
    def population(self) -> int: ...
    @property
    def solved_soft(self) -> float: ...
    @property
    def solved_hard(self) -> float | None: ...
    @property
    def perfect(self) -> int: ...
    @property
    def waits(self) -> bool: ...
    @property
    def restarts(self) -> int: ...
    @property
    def checks(self) -> int: ...


class History:
    """The reports of a run by group. A run without groups has one."""

    def __init__(self, config: TrainConfig):
        self.config, self.configs = config, config.group_configs
        self.last: dict[int, GroupPoint] = {}
        self.trends: dict[int, Trend] = defaultdict(Trend)
        self.spent: Counter[int] = Counter()  # milliseconds of each group
        self.now = 0.0  # seconds of the run
        self.checks = 0

    def read(self, run: RunFolder) -> None:
        """Add the reports of a run that continues. They are only for words: a damaged file stops nothing."""
        with suppress(NramError):
            for row in run.read_progress():
                if self.knows(row):
                    self.add(row)

    def knows(self, point: GroupPoint) -> bool:
        """Whether the configuration has the group and the stage of a report."""
        return 0 <= point.group < len(self.configs) and 0 <= point.stage < len(self.configs[point.group].stages)

    def add(self, point: GroupPoint) -> None:
        self.spent[point.group] += round(1000 * max(0.0, point.seconds - self.now))
        self.now, self.checks = point.seconds, max(self.checks, point.checks)
        self.last[point.group] = point
        self.trends[point.group].add(point)

    @property
    def best(self) -> int:
        """The group that came furthest; the first of equals."""

        def merit(index: int) -> tuple[float, ...]:
            point = self.last[index]
            if self.config.ranked_by == "training":
                return (point.solved_soft, -point.best_error, -index)
            return (*standing(point), -index)

        return max(self.last, key=merit, default=0)

    @property
    def solved(self) -> bool:
        return any(point.perfect for point in self.last.values())

    def stage(self, index: int) -> StageConfig:
        """The stage that a group is at."""
        return self.configs[index].stages[self.last[index].stage if index in self.last else 0]

    def is_last_stage(self, index: int) -> bool:
        return self.last[index].stage == len(self.configs[index].stages) - 1

    def share(self, index: int) -> float:
        """The share of the run's time that a group had."""
        return self.spent[index] / max(1, self.spent.total())

    def place(self, index: int) -> str:
        """What a group is at."""
        if index not in self.last:
            joins = self.config.groups[index].joins
            return f"joins at check {joins}" if joins > self.checks else "starts next"
        point, size = self.last[index], f"n <= {self.stage(index).max_complexity}"
        again = f"try {point.attempt + 1}: " if point.attempt else ""
        if not point.stage:
            return f"{again}{size}, {counted(point.step, 'step')}"
        stage = "last stage" if self.is_last_stage(index) else f"stage {point.stage}"
        if self.is_last_stage(index) and point.stage_ends:
            return f"{again}{stage} ended"
        return f"{again}{stage} {size}" if again else f"{stage} {size}, {point.step}"

    def right(self, index: int) -> str:
        """The share of the validation instances that the group's best member solves as a program."""
        return share_text(self.last[index].best_hard if index in self.last else None)

    @property
    def converged(self) -> int:
        """Of all members, those with soft error 0 at the last check, in a run that ranks them by training."""
        return sum(round(point.solved_soft * point.population) for point in self.last.values())

    def reached(self, index: int) -> str:
        """How far a group came, in a few words."""
        if self.config.ranked_by == "program":
            return f"{self.right(index)} right"
        point = self.last[index]
        level = f"level {point.highest_level}, " if self.configs[index].curriculum.enabled else ""
        return f"{level}{round(point.solved_soft * point.population)} of {point.population} converged"

    def trend(self, index: int) -> str:
        """Whether the group gets better, in a few words; empty while it is too early to say."""
        if index not in self.last:
            return ""
        point, trend = self.last[index], self.trends[index]
        if self.config.ranked_by == "training" and point.solved_soft:
            return f"{round(point.solved_soft * point.population)} converged"
        if point.perfect:
            return f"{point.perfect} perfect"
        if point.best_hard == 1.0:
            return "all right"
        if trend.improving:
            return "better" if self.gains(index) else ""
        if trend.fell_back:
            return f"was {share_text(trend.hard)}"
        return f"flat {duration(trend.waiting)}"

    def gains(self, index: int) -> list[str]:
        """The figures of the group's best member that got better last."""
        levels = self.configs[index].curriculum.enabled
        return [name for name in self.trends[index].figures if name != "level" or levels]

    def next(self) -> list[str]:
        """What the run waits for: of the best group, and the group that joins next."""
        if not self.last:
            return []
        words, best = [self._end_of_stage(self.best)], self.last[self.best]
        waiting = [index for index in range(len(self.config.groups)) if index not in self.last]
        if waiting and not self.solved:
            index = min(waiting, key=lambda one: self.config.groups[one].joins)
            joins, now = self.config.groups[index].joins, "now"
            if joins > self.checks:
                wait = rough_duration((joins - self.checks) * self.now / max(1, self.checks))
                now = f"at check {joins}, now {self.checks}: in about {wait}"
            elif best.stage or best.waits:  # which goes before the others
                now = f"after the last stage of {self.config.group_names[self.best]}"
            words.append(f"{self.config.group_names[index]} joins {now}")
        return words

    def _end_of_stage(self, index: int) -> str:
        point, stage = self.last[index], self.stage(index)
        name = f"{self.config.group_names[index]}: " if self.config.groups else ""
        if point.stage_ends and (point.perfect or not self.is_last_stage(index)):
            return f"{name}the end" if self.is_last_stage(index) else f"{name}stage {point.stage + 1} begins"
        if point.waits:
            kind = "perfect" if self.is_last_stage(index) else "solved"
            halting = f"{counted(stage.stop_at, f'{kind} member')} that also halt{'s' if stage.stop_at == 1 else ''}"
            return f"{name}waits up to {counted(stage.halt_within, 'step')} for {halting}"
        if not self.is_last_stage(index):
            if not stage.stop_at:
                return f"{name}stage {point.stage + 1} at step {stage.steps}"
            now = round((point.solved_hard or 0.0) * point.population)
            many = f"{counted(stage.stop_at, 'member')} {'solves' if stage.stop_at == 1 else 'solve'}"
            all_ = f"all {self.configs[index].validation} validation examples"
            return f"{name}stage {point.stage + 1} when {many} {all_}, now {now}"
        if not stage.stop_at:
            return f"{name}the end at step {stage.steps}"
        passes = f"{counted(stage.stop_at, 'member')} {'passes' if stage.stop_at == 1 else 'pass'}"
        if not self.config.groups:
            return f"the end at step {stage.steps}, or when {passes} the examination"
        return f"{name}ends when {passes}, or starts again at step {stage.steps}"


def share_text(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}".replace(".0%", "%")


def duration(seconds: float) -> str:
    hours, rest = divmod(int(seconds), 3600)
    minutes, seconds = divmod(rest, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def rough_duration(seconds: float) -> str:
    """A time that is only an estimate: '40 s', '12 min', '2 h 10 min', '3 days'."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 10:
        return f"{hours} h {minutes} min"
    return f"{hours} h" if hours < 48 else f"{round(hours / 24)} days"
