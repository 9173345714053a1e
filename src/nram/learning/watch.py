"""Whoever looks on while something is learned. By default nobody does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from nram.learning.judgement import Judgement
    from nram.search.engine import Best
    from nram.search.engine import Report as SearchReport
    from nram.training.config import TrainConfig
    from nram.training.trainer import Report as TrainingReport


class Display(Protocol):
    """What shows a training run."""

    def report(self, report: TrainingReport) -> None: ...
    def note(self, text: str) -> None: ...


class _Silence:
    def report(self, report: TrainingReport) -> None:
        """Nothing is shown."""

    def note(self, text: str) -> None:
        """Nothing is said."""


@contextmanager
def _silent(config: TrainConfig, path: Path, devices: list[Any]) -> Iterator[Display]:
    yield _Silence()


@dataclass(frozen=True)
class Watch:
    note: Callable[[str], None] = lambda text: None
    search_report: Callable[[SearchReport], None] = lambda report: None
    search_best: Callable[[Best], None] = lambda best: None
    refused: Callable[[Judgement], None] = lambda judgement: None
    """A program fits the training examples and is wrong on held-out ones."""
    training: Callable[[TrainConfig, Path, list[Any]], AbstractContextManager[Display]] = _silent
    stopping: Callable[[], bool] = lambda: False
    """Whether to stop, and keep the best."""
