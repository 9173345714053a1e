"""Progress callbacks of learning; silent by default."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nram.training.callbacks import TrainingCallbacks

if TYPE_CHECKING:
    from nram.learning.judgement import Judgement
    from nram.search.engine import Best
    from nram.search.engine import Report as SearchReport


@dataclass(frozen=True)
class Watch:
    note: Callable[[str], None] = lambda text: None
    search_report: Callable[[SearchReport], None] = lambda report: None
    search_best: Callable[[Best], None] = lambda best: None
    refused: Callable[[Judgement], None] = lambda judgement: None
    """A program fits the training examples and is wrong on held-out ones."""
    training: TrainingCallbacks = TrainingCallbacks()
    stopping: Callable[[], bool] = lambda: False
    """Whether to stop, and keep the best."""
