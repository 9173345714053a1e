"""Live progress of a training run: a panel on a terminal, plain lines in a pipe. On standard error."""

import time
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from nram.cli.output import PLAIN_SECONDS, note
from nram.messages import visible
from nram.training.callbacks import Report, TrainingCallbacks
from nram.training.config import TrainConfig


class TrainingDisplay(TrainingCallbacks):
    """Shows the training runs of one command."""

    def __init__(self, verb: str):
        self.verb = verb
        self.panel: _Panel | None = None
        self.printed_at = 0.0

    def started(self, config: TrainConfig, path: Path, device: str) -> None:
        machine = config.machine
        states = f", {machine.states} states" if machine.controller == "automaton" else ""
        title = (
            f"nram {self.verb} {config.task}: {machine.controller} {machine.hidden}{states}, "
            f"{machine.registers} registers, {len(machine.modules)} modules x {machine.repeats}, seed {config.seed}, "
            f"{device} -> {path}"
        )
        console = Console(stderr=True)
        if console.is_terminal:
            self.panel = _Panel(console, config, title)
        else:
            self.note(title)

    def note(self, text: str) -> None:
        if self.panel is not None:
            self.panel.live.console.print(Text(visible(text), style="dim"))
        else:
            note(text)

    def warning(self, text: str) -> None:
        self.note(f"nram {self.verb}: {text}")

    def report(self, report: Report) -> None:
        if self.panel is not None:
            self.panel.show(report)
        elif time.monotonic() - self.printed_at >= PLAIN_SECONDS or report.stage_ends:
            self.printed_at = time.monotonic()
            self.note(_line(report))

    def ended(self) -> None:
        if self.panel is not None:
            self.panel.live.stop()
            self.panel = None


def _line(report: Report) -> str:
    levels = " ".join(f"{level}:{count}" for level, count in report.levels.items())
    return (
        f"stage {report.stage} (n<={report.max_complexity}) step {report.step}/{report.stage_steps}"
        f" | members per level {levels}"
        f" | error best {report.best_error:.3f} median {report.median_error:.3f}"
        f" | solved soft {_share(report.solved_soft)} hard {_share(report.solved_hard)}"
        f" | {report.example_steps_per_s / 1000:.0f}k example-steps/s"
        f" | {_duration(report.seconds)} gone, about {_duration(report.seconds_left)} left at most"
        + (f" | {report.skipped} updates skipped: not finite" if report.skipped else "")
    )


class _Panel:
    """A bar per stage and a table of the population's figures."""

    def __init__(self, console: Console, config: TrainConfig, title: str):
        self.bars = Progress(
            TextColumn("{task.description}"), BarColumn(40), TextColumn("{task.completed}/{task.total} steps")
        )
        self.stages = [
            self.bars.add_task(
                f"stage {index}: n <= {stage.max_complexity}, {stage.population} members", total=stage.steps
            )
            for index, stage in enumerate(config.stages)
        ]
        self.title = Text(visible(title), style="bold")
        self.live = Live(Group(self.title, self.bars), console=console, refresh_per_second=8)
        self.live.start()

    def show(self, report: Report) -> None:
        for index in range(report.stage):  # a stage may have ended early
            total = self.bars.tasks[index].total or 0
            self.bars.update(self.stages[index], completed=total)
        self.bars.update(self.stages[report.stage], completed=report.step)
        self.live.update(Group(self.title, self.bars, _figures(report)))


def _figures(report: Report) -> Table:
    figures = Table.grid(padding=(0, 3))
    figures.add_row("error", f"best {report.best_error:.3f}", f"median {report.median_error:.3f}")
    figures.add_row("solved", f"soft {_share(report.solved_soft)}", f"hard {_share(report.solved_hard)}")
    figures.add_row("speed", f"{report.example_steps_per_s / 1000:,.0f}k example-steps/s", "")
    figures.add_row("time", f"{_duration(report.seconds)} gone", f"about {_duration(report.seconds_left)} left at most")
    if report.skipped:
        figures.add_row("skipped", f"{report.skipped} updates", "not finite")
    levels = Table.grid(padding=(0, 1))
    for level, count in report.levels.items():
        bar = "█" * max(1, round(30 * count / report.population))
        levels.add_row(f"level {level}", Text(bar, style="cyan"), str(count))
    both = Table.grid(padding=(0, 6))
    both.add_row(figures, levels)
    return both


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes}:{seconds:02d}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"
