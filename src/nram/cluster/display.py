"""The progress of a study: a panel on a terminal, plain lines elsewhere. Not on standard output."""

from __future__ import annotations

import sys
import time

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from nram.cluster.callbacks import StudyCallbacks
from nram.cluster.plan import Trial
from nram.cluster.trial import Outcome, Progress
from nram.display import counted
from nram.messages import visible
from nram.training.history import duration, rough_duration

MOST_LINES = 20  # of trials that run
BAR = 30  # columns
PLAIN_SECONDS = 60.0  # between two lines of progress where there is no panel


class StudyDisplay(StudyCallbacks):
    """Shows one study."""

    def __init__(self, console: Console | None = None):
        self.console = console or Console(stderr=True)
        self.live: Live | None = None
        self.name = ""
        self.trials = self.done = self.learned = self.failures = self.new = 0
        self.side_by_side: int | None = None
        self.running: dict[str, tuple[float, Progress]] = {}
        self.began = self.said_at = time.monotonic()

    def started(self, name: str, trials: int, ended: int, learned: int, side_by_side: int | None) -> None:
        self.name, self.trials, self.done, self.learned = name, trials, ended, learned
        self.side_by_side, self.began = side_by_side, time.monotonic()
        if self.console.is_terminal:
            self.live = Live(console=self.console, get_renderable=self._panel, refresh_per_second=4)
            self.live.start()
        else:
            self._print(f"{self._head()}")

    def note(self, text: str) -> None:
        self._print(text)

    def progress(self, trial: Trial, progress: Progress) -> None:
        since = self.running.get(trial.name, (time.monotonic(), progress))[0]
        self.running[trial.name] = since, progress
        self.tick()

    def ended(self, trial: Trial, outcome: Outcome) -> None:
        self.running.pop(trial.name, None)
        self.done, self.new, self.learned = self.done + 1, self.new + 1, self.learned + outcome.learned
        what = "found" if trial.verb == "search" else "learned"
        if not outcome.learned:
            what = f"not {what}" + ("" if outcome.ended == "finished" else f" ({outcome.ended})")
        self._print(f"[{self.done}/{self.trials}] {trial.name}: {what} in {duration(outcome.seconds)}")

    def failed(self, trial: Trial, message: str) -> None:
        self.running.pop(trial.name, None)
        self.failures += 1
        self._print(f"{trial.name} FAILED: {message}")

    def paused(self, trial: Trial) -> None:
        self.running.pop(trial.name, None)

    def tick(self) -> None:
        if self.live is None and time.monotonic() - self.said_at > PLAIN_SECONDS:
            self._print(self._head())

    def closed(self) -> None:
        if self.live is not None:
            self.live.stop()
            self.live = None

    def _print(self, text: str) -> None:
        self.said_at = time.monotonic()
        if self.live is not None:
            self.live.console.print(Text(visible(text)), soft_wrap=True)
        else:
            print(visible(text), file=sys.stderr, flush=True)

    def _head(self) -> str:
        words = [f"study {self.name}: {self.done} of {counted(self.trials, 'trial')} ended, {self.learned} learned"]
        words += [f"{self.failures} failed"] if self.failures else []
        words += [f"{self.side_by_side} side by side"] if self.side_by_side else []
        spent = time.monotonic() - self.began
        words.append(f"{duration(spent)} gone")
        left = self.trials - self.done - self.failures
        if self.new and left > 0:
            words.append(f"about {rough_duration(left * spent / self.new)} left")
        return ", ".join(words)

    def _panel(self) -> Group:
        full = round(BAR * self.done / max(1, self.trials))
        lines = [Text(visible(self._head()), style="bold"), Text("█" * full + "░" * (BAR - full))]
        width = max((len(name) for name in self.running), default=0)
        for name, (since, progress) in list(self.running.items())[:MOST_LINES]:
            clock = duration(time.monotonic() - since)
            lines.append(Text(visible(f"  {name:<{width}}  {progress.words}, {clock}"), no_wrap=True))
        if len(self.running) > MOST_LINES:
            lines.append(Text(f"  and {len(self.running) - MOST_LINES} more"))
        return Group(*lines)
