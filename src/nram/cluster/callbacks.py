"""What a study tells its caller while it works; silent by default."""

from __future__ import annotations

from nram.cluster.plan import Trial
from nram.cluster.trial import Outcome, Progress


class StudyCallbacks:
    """Progress callbacks. They are called by one thread at a time."""

    def started(self, name: str, trials: int, ended: int, learned: int, side_by_side: int | None) -> None:
        """The study starts or goes on, with so many trials that have ended already. `closed` follows in any case."""

    def note(self, text: str) -> None:
        """Something worth a line happened."""

    def progress(self, trial: Trial, progress: Progress) -> None:
        """A trial runs."""

    def ended(self, trial: Trial, outcome: Outcome) -> None:
        """A trial has ended."""

    def failed(self, trial: Trial, message: str) -> None:
        """A trial could not be run to its end."""

    def paused(self, trial: Trial) -> None:
        """A trial was asked to stop and has saved its work."""

    def tick(self) -> None:
        """A moment has passed."""

    def closed(self) -> None:
        """The command ends."""
