"""Live progress of a training run: a panel on a terminal, plain lines in a pipe. On standard error."""

import sys
import time

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from nram.runtime import device_name

PLAIN_SECONDS = 5  # between two lines in a pipe


def progress_display(config, out, devices, verb: str = "train"):
    console = Console(stderr=True)
    machine = config.machine
    network = f"{machine.controller} {machine.hidden}" + (
        f", {machine.states} states" if machine.controller == "automaton" else ""
    )
    title = (
        f"nram {verb} {config.task}: {network}, {machine.registers} registers, "
        f"{len(machine.modules)} modules x {machine.repeats}, seed {config.seed}, {device_name(devices)} -> {out}"
    )
    return (_LiveDisplay if console.is_terminal else _PlainDisplay)(console, config, title)


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes}:{seconds:02d}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


class _PlainDisplay:
    def __init__(self, console, config, title):
        self.last = 0.0
        self.title = title

    def __enter__(self):
        self.note(self.title)
        return self

    def __exit__(self, *exception):
        pass

    def note(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def report(self, report) -> None:
        if time.monotonic() - self.last < PLAIN_SECONDS and not report.stage_ends:
            return
        self.last = time.monotonic()
        levels = " ".join(f"{level}:{count}" for level, count in report.levels.items())
        self.note(
            f"stage {report.stage} (n<={report.max_complexity}) step {report.step}/{report.stage_steps}"
            f" | members per level {levels}"
            f" | error best {report.best_error:.3f} median {report.median_error:.3f}"
            f" | solved soft {_share(report.solved_soft)} hard {_share(report.solved_hard)}"
            f" | {report.example_steps_per_s / 1000:.0f}k example-steps/s"
            f" | {_duration(report.seconds)} gone, about {_duration(report.seconds_left)} left at most"
            + (f" | {report.skipped} updates skipped: not finite" if report.skipped else "")
        )


class _LiveDisplay:
    """A bar per stage and a table of how the population stands."""

    def __init__(self, console, config, title):
        self.bars = Progress(
            TextColumn("{task.description}"), BarColumn(40), TextColumn("{task.completed}/{task.total} steps")
        )
        self.stages = [
            self.bars.add_task(
                f"stage {index}: n <= {stage.max_complexity}, {stage.population} members", total=stage.steps
            )
            for index, stage in enumerate(config.stages)
        ]
        self.title = Text(title, style="bold")
        self.live = Live(self._view(None), console=console, refresh_per_second=8)

    def __enter__(self):
        self.live.__enter__()
        return self

    def __exit__(self, *exception):
        self.live.__exit__(*exception)

    def note(self, text: str) -> None:
        self.live.console.print(Text(text, style="dim"))

    def report(self, report) -> None:
        for index in range(report.stage):  # a stage may have ended early
            total = self.bars.tasks[index].total or 0
            self.bars.update(self.stages[index], completed=total)
        self.bars.update(self.stages[report.stage], completed=report.step)
        self.live.update(self._view(report))

    def _view(self, report) -> Group:
        if report is None:
            return Group(self.title, self.bars)
        figures = Table.grid(padding=(0, 3))
        figures.add_row("error", f"best {report.best_error:.3f}", f"median {report.median_error:.3f}")
        figures.add_row("solved", f"soft {_share(report.solved_soft)}", f"hard {_share(report.solved_hard)}")
        figures.add_row("speed", f"{report.example_steps_per_s / 1000:,.0f}k example-steps/s", "")
        figures.add_row(
            "time", f"{_duration(report.seconds)} gone", f"about {_duration(report.seconds_left)} left at most"
        )
        if report.skipped:
            figures.add_row("skipped", f"{report.skipped} updates", "not finite")
        levels = Table.grid(padding=(0, 1))
        for level, count in report.levels.items():
            bar = "█" * max(1, round(30 * count / report.population))
            levels.add_row(f"level {level}", Text(bar, style="cyan"), str(count))
        both = Table.grid(padding=(0, 6))
        both.add_row(figures, levels)
        return Group(self.title, self.bars, both)
