"""Progress callbacks of learning; silent by default."""

from __future__ import annotations

from nram.learning.judgement import Judgement
from nram.search.callbacks import SearchCallbacks
from nram.training.callbacks import TrainingCallbacks


class LearningCallbacks(SearchCallbacks):
    """Progress callbacks of the search, of learning as a whole, and, in `training`, of the trainer."""

    training: TrainingCallbacks = TrainingCallbacks()

    def refused(self, judgement: Judgement) -> None:
        """A program fits the training examples and is wrong on held-out ones."""
