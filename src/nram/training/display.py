"""Live progress of training: a panel on a terminal or in a notebook, plain lines elsewhere. Not on standard output.

how good the best member of each group is, whether it gets better, what comes next, and how long it may take
"""

from __future__ import annotations

import io
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from nram.display import counted
from nram.messages import visible
from nram.progress import Progress, is_shown
from nram.training.callbacks import Report, TrainingCallbacks
from nram.training.config import TrainConfig
from nram.training.diagnosis import machine_text
from nram.training.history import History, duration, rough_duration, share_text
from nram.training.run_folder import RunFolder

PLAIN_SECONDS = 5.0  # between the first two lines where there is no panel
MOST_PLAIN_SECONDS = 60.0  # later lines come less often
NOTEBOOK_SECONDS = 0.3  # between two changes of a panel in a notebook
NOTEBOOK_WIDTH = 100
LABEL = 10  # columns
WIDE = 110  # columns from which on the structure of a group is shown in full
MOST_NAME = 12  # characters of a group's name
BLOCKS = "▁▂▃▄▅▆▇█"


def training_display(progress: Progress = "auto", title: str = "training") -> TrainingCallbacks:
    """The display that Python callers want."""
    return TrainingDisplay(title) if is_shown(progress) else TrainingCallbacks()


class TrainingDisplay(TrainingCallbacks):
    """Shows the training runs of one command, one after another."""

    def __init__(self, title: str, console: Console | None = None):
        self.title = title
        self.console = console
        self.panel: Panel | None = None
        self.screen: _Terminal | _Notebook | None = None
        self.printed_at = self.busy_at = float("-inf")

    def started(self, config: TrainConfig, path: Path, device: str) -> None:
        console = self.console or Console(stderr=True)
        title = f"{self.title} {config.task_name}, seed {config.seed}, on {device}"
        self.panel = (GroupsPanel if config.groups else Panel)(config, title, str(path))
        self.panel.history.read(RunFolder(path))
        if console.is_jupyter:
            self.screen = _Notebook(self.panel)
        elif console.is_terminal:
            self.screen = _Terminal(console, self.panel)
        else:
            _print(f"{self.panel.title}: {machine_text(config)} -> {path}")

    def activity(self, text: str) -> None:
        if self.panel is not None:
            self.panel.begin(text)
        if self.screen is not None:
            self.screen.refresh()
        elif time.monotonic() - self.busy_at >= PLAIN_SECONDS:  # quick work is not worth a line
            self.busy_at = time.monotonic()
            _print(text)

    def note(self, text: str) -> None:
        if self.screen is not None:
            self.screen.note(visible(text))
        else:
            _print(text)

    def warning(self, text: str) -> None:
        self.note(f"{self.title}: {text}")

    def report(self, report: Report) -> None:
        if self.panel is None:
            return
        self.panel.add(report)
        if self.screen is not None:
            self.screen.refresh()
        pause = min(MOST_PLAIN_SECONDS, max(PLAIN_SECONDS, report.seconds / 4))
        if self.screen is None and (time.monotonic() - self.printed_at >= pause or report.stage_ends):
            self.printed_at = time.monotonic()
            _print(self.panel.text())

    def ended(self) -> None:
        if self.panel is not None:
            self.panel.ended = True
        if self.screen is not None:
            self.screen.stop()
        self.panel = self.screen = None


def _print(text: str) -> None:
    print(visible(text), file=sys.stderr, flush=True)


# ---- where a panel is shown


class _Terminal:
    def __init__(self, console: Console, panel: Panel):
        self.live = Live(console=console, get_renderable=lambda: panel.render(console.width), refresh_per_second=4)
        self.live.start()

    def refresh(self) -> None:
        """The panel is drawn again a few times a second."""

    def note(self, text: str) -> None:
        self.live.console.print(Text(text, style="dim"), soft_wrap=True)  # a command can be copied as one line

    def stop(self) -> None:
        self.live.stop()


class _Notebook:
    """A panel as HTML in the output of a cell. It needs IPython alone, no widgets."""

    def __init__(self, panel: Panel):
        self.ipython: Any = import_module("IPython.display")  # it is there: the process is a notebook's
        self.panel, self.shown_at = panel, time.monotonic()
        self.handle = self.ipython.display(self._html(), display_id=True)

    def _html(self) -> Any:
        console = Console(record=True, width=NOTEBOOK_WIDTH, file=io.StringIO(), force_jupyter=False)
        console.print(self.panel.render(NOTEBOOK_WIDTH))
        return self.ipython.HTML(console.export_html(inline_styles=True, code_format="<pre>{code}</pre>"))

    def refresh(self, always: bool = False) -> None:
        if always or time.monotonic() - self.shown_at >= NOTEBOOK_SECONDS:
            self.shown_at = time.monotonic()
            self.handle.update(self._html())

    def note(self, text: str) -> None:
        print(text)

    def stop(self) -> None:
        self.refresh(always=True)


# ---- the panel


class Panel:
    """What is known of one run, as lines that fit a width."""

    def __init__(self, config: TrainConfig, title: str, path: str):
        self.config, self.title, self.path = config, title, path
        self.reports: dict[int, Report] = {}  # the last one of every stage
        self.history = History(config)
        self.last: Report | None = None
        self.activity: str | None = None
        self.reported_at = time.monotonic()
        self.compiling = 0.0  # the most seconds from the end of a stage to the first report of the next
        self.examining = 0.0  # the most seconds of an examination; 0: there was none yet
        self.busy_since = 0.0  # the clock when the activity began
        self.ended = False

    def begin(self, activity: str) -> None:
        """The run is busy with something besides training."""
        self.activity, self.busy_since = activity, time.monotonic()

    def add(self, report: Report) -> None:
        if self._is_examining:
            self.examining = max(self.examining, time.monotonic() - self.busy_since)
        self.activity = None
        if report.stage not in self.reports:  # a stage begins with compiling
            self.compiling = max(self.compiling, time.monotonic() - self.reported_at)
        self.reported_at = time.monotonic()
        self.reports[report.stage] = self.last = report
        self.history.add(report)

    @property
    def _is_examining(self) -> bool:
        return (self.activity or "").startswith("examining")

    @property
    def shown(self) -> Report | None:
        return self.last

    def text(self) -> str:
        """The present state in one line, for a log."""
        report = self.last
        assert report is not None
        levels = " ".join(f"{level}:{count}" for level, count in report.levels.items())
        parts = [
            f"stage {report.stage} (n<={report.max_complexity}) step {report.step}/{report.stage_steps}",
            f"best member {self._best(report)}",
            *([words] if (words := self._trend_words(report)) else []),
            *([f"members per level {levels}"] if self.config.curriculum.enabled else []),
            self._all(report),
            *([f"examined {_examined(report)}"] if report.examined else []),
            *([f"{report.skipped} updates skipped: not finite"] if report.skipped else []),
            self._time_words(report),
        ]
        return " | ".join(parts)

    def render(self, width: int) -> Group:
        rows = [Text(visible(self.title), style="bold")]
        machine, path = machine_text(self.config), visible(self.path)
        room = max(20, width - len(machine) - 4)  # of a long path the end matters
        rows.append(Text(f"{machine} -> {path if len(path) <= room else '…' + path[1 - room :]}", style="dim"))
        rows += self._parts(width)
        for label, words in self._rows():
            rows.append(Text.assemble((f"{label:<{LABEL}}", "bold"), visible(words)))
        for row in rows:
            row.no_wrap, row.overflow = True, "ellipsis"
            row.truncate(width, overflow="ellipsis")
        return Group(*rows)

    def _parts(self, width: int) -> list[Text]:
        """A bar for every stage. That of a stage which ended early is full."""
        heads, tails, shares = [], [], []
        for index, stage in enumerate(self.config.stages):
            report = self.reports.get(index)
            heads.append(f"stage {index}  n <= {stage.max_complexity}  {counted(stage.population, 'member')}")
            done = report is not None and (report.stage_ends or index < max(self.reports))
            early = done and report is not None and report.step < stage.steps
            steps = report.step if report else 0
            tails.append(f"done early, step {steps}/{stage.steps}" if early else f"{steps}/{stage.steps} steps")
            shares.append(1.0 if done else steps / stage.steps)
        left, right = max(map(len, heads)), max(map(len, tails))
        columns = max(4, min(40, width - left - right - 4))
        rows = []
        for head, tail, share in zip(heads, tails, shares, strict=True):
            full = int(columns * share)
            bar = ("━" * full, "green" if share == 1.0 else "cyan"), ("━" * (columns - full), "bright_black")
            rows.append(Text.assemble(f"{head:<{left}}  ", *bar, f"  {tail}"))
        return rows

    def _rows(self) -> list[tuple[str, str]]:
        report = self.shown
        if report is None:
            return [("now", self.activity or "starting")] if not self.ended else []
        rows = [("best", self._best(report))]
        if words := self._trend_words(report):
            rows.append(("trend", f"{_spark(self.history.trends[report.group].errors)}  {words}"))
        rows += [("levels", _levels(report))] if self.config.curriculum.enabled else []
        rows.append(("all", self._all(report)))
        if report.examined:
            rows.append(("examined", _examined(report)))
        if report.skipped:
            rows.append(("skipped", f"{counted(report.skipped, 'update')}, not finite"))
        if not self.ended:
            following = [("", words) for words in self._next(report)]
            rows += [("now", self.activity)] if self.activity else [("next", following[0][1]), *following[1:]]
        rate = f", {report.example_steps_per_s / 1000:,.0f}k example-steps/s"
        return [*rows, ("time", self._time_words(report) + rate)]

    def _best(self, report: Report) -> str:
        """How good the best member is."""
        level = f"level {report.highest_level} of {report.max_complexity}, " if self.config.curriculum.enabled else ""
        if report.best_hard is None:
            return f"{level}soft error {report.best_error:.3f}, not checked as a program yet"
        config = self.config.group_configs[report.group]
        reach = config.validated_up_to(config.stages[report.stage])
        right = share_text(report.best_hard)
        return f"{right} right as a program up to n = {reach}, {level}soft error {report.best_error:.3f}"

    def _next(self, report: Report) -> list[str]:
        """What ends the stage, and what follows."""
        if report.waits and not report.stage_ends:
            return self.history.next()
        stage, index = self.config.stages[report.stage], report.stage + 1
        early = "" if not stage.stop_at else f" or once {stage.stop_at} {'is' if stage.stop_at == 1 else 'are'} right"
        if index == len(self.config.stages):
            passes = early.replace("right", "examined and perfect")
            return [f"the end, at step {stage.steps}{passes}"]
        following = self.config.stages[index]
        kept = min(following.kept, stage.population)
        return [f"stage {index}, n <= {following.max_complexity}, best {kept} members: at step {stage.steps}{early}"]

    def _trend_words(self, report: Report) -> str:
        """Whether the best member gets better, and by which figures; empty while it is too early to say."""
        if report.perfect:
            return f"{counted(report.perfect, 'perfect member')}"
        if report.best_hard == 1.0:
            return "right on the whole validation set"
        trend = self.history.trends[report.group]
        if trend.improving:  # the best member may be better by one figure and worse by another
            figures = self.history.gains(report.group)
            return f"getting better: {', '.join(figures)}" if figures else ""
        if trend.fell_back:
            return f"worse than its best, which was {share_text(trend.hard)} right; its island started again"
        return f"no better for {duration(trend.waiting)}"

    def _all(self, report: Report) -> str:
        """How good the members are as a whole.

        Soft says nothing more once a member is perfect, and nothing without a curriculum: it counts the members on the
        last level.
        """
        soft = self.config.curriculum.enabled and not report.perfect
        words = [f"{round(report.solved_soft * report.population)} soft"] if soft else []
        if report.solved_hard is not None:
            words.append(f"{round(report.solved_hard * report.population)} hard")
        solved = f", solved {', '.join(words)} of {report.population}" if words else ""
        return f"median error {report.median_error:.3f}{solved}"

    def _time_words(self, report: Report) -> str:
        later = len(self.config.stages) - 1 - report.stage
        now = time.monotonic()
        spent = now - self.reported_at
        gone = f"{duration(report.seconds + spent)} gone"
        if self.ended or (report.stage_ends and not later):
            return gone
        if self.activity is not None:  # nothing is trained meanwhile
            spent = min(now - self.busy_since, self.examining if self._is_examining else self.compiling)
        left = report.seconds_left + later * self.compiling + self.examining - spent
        return f"{gone}, about {duration(max(1.0, left))} left" + ("" if self.examining else " and examining")


class GroupsPanel(Panel):
    """The same of a run with groups: a line for each, and the best one below."""

    def __init__(self, config: TrainConfig, title: str, path: str):
        super().__init__(config, title, path)
        self.of_group: dict[int, Report] = {}  # the last report of each
        self.unsaid: set[int] = set()  # groups with a report since the last lines of a log
        self.said: list[str] = []  # what comes next, as a log said it last

    def add(self, report: Report) -> None:
        super().add(report)
        self.of_group[report.group] = report
        self.unsaid.add(report.group)

    @property
    def shown(self) -> Report | None:
        """The report of the best group. It may have no report yet in a run that was continued."""
        return self.of_group.get(self.history.best, self.last)

    def text(self) -> str:
        """A line for each group that trained since the last text, then what comes next, if that is new."""
        history, report = self.history, self.last
        assert report is not None
        clock = duration(report.seconds)
        lines = []
        for index in sorted(self.unsaid):
            one = self.of_group[index]
            words = [history.place(index), history.reached(index)]
            words += [f"error {one.best_error:.3f}"] if one.best_hard != 1.0 else []
            words += [trend] if (trend := history.trend(index)) and trend not in words[1] else []
            words += [counted(one.restarts, "restart")] if one.restarts else []
            lines.append(f"{clock} {self._name(index)}: {', '.join(words)}")
            lines += [f"{clock} {self._name(index)}: examined {_examined(one)}"] if one.examined else []
        self.unsaid.clear()
        following = history.next()
        kinds = [words.partition(", now")[0] for words in following]
        if kinds != self.said:  # what is still the same need not be said with every line
            self.said = kinds
            lines += [f"{clock} next: {words}" for words in following]
            lines.append(f"{clock} {self._left(report)}")
        return "\n".join(lines)

    def _name(self, index: int) -> str:
        return visible(self.config.group_names[index])[:MOST_NAME]

    def _parts(self, width: int) -> list[Text]:
        history = self.history
        rows = [["group", "structure", "is at", "right", "trend", "restarts", "time"]]
        for index, config in enumerate(history.configs):
            machine, point = config.machine, history.last.get(index)
            short = f"{machine.registers} reg {len(machine.modules)}x{machine.repeats}"
            rows.append(
                [
                    self._name(index),
                    machine_text(config) if width >= WIDE else short,
                    "did not start" if self.ended and point is None else history.place(index),
                    history.right(index),
                    history.trend(index),
                    str(point.restarts) if point else "-",
                    f"{history.share(index):.0%}" if point else "-",
                ]
            )
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(f"{cell:<{wide}}" for cell, wide in zip(row, widths, strict=True)).rstrip() for row in rows]
        now = self.last.group + 1 if self.last and not self.ended else -1
        return [
            Text(line, style="dim" if number == 0 else "bold" if number == now else "")
            for number, line in enumerate(lines)
        ]

    def _best(self, report: Report) -> str:
        return f"{self._name(report.group)}: {super()._best(report)}"

    def _next(self, report: Report) -> list[str]:
        return self.history.next()

    def _time_words(self, report: Report) -> str:
        latest = self.last or report
        gone = f"{duration(latest.seconds + time.monotonic() - self.reported_at)} gone"
        return gone if self.ended else f"{gone}, {self._left(latest)}"

    def _left(self, report: Report) -> str:
        if report.budget_left is not None and report.budget_left < report.seconds_left:
            left = report.budget_left - (time.monotonic() - self.reported_at)
            return f"about {rough_duration(left)} of the budget left"
        return f"about {rough_duration(report.seconds_left)} for all steps"


def _examined(report: Report) -> str:
    words = f"{counted(report.examined, 'member')}: {report.perfect} passed"
    return f"{words}; failed {report.failed}" if report.failed else words


def _levels(report: Report) -> str:
    """A small histogram, and the members on the lowest and on the highest level."""
    low, high, most = min(report.levels), report.highest_level, max(report.levels.values())
    words = f"{counted(report.levels[low], 'member')} on level {low}"
    words += f", {report.levels[high]} on level {high}" if high > low else ""
    if not 1 < report.max_complexity <= 24:
        return words
    counts = (report.levels.get(level, 0) for level in range(1, report.max_complexity + 1))
    bars = "".join(" " if not count else BLOCKS[round(7 * count / most)] for count in counts)
    return f"1 |{bars}| {report.max_complexity}  {words}"


def _spark(errors: list[float], columns: int = 24) -> str:
    """The error of the best member since the stage began, as small bars."""
    size = -(-len(errors) // columns)
    least = [min(errors[start : start + size]) for start in range(0, len(errors), size)]
    return "".join(BLOCKS[max(0, min(7, round(7 * error)))] for error in least)
