"""The progress of learning, shown to a person."""

from __future__ import annotations

from nram.learning.callbacks import LearningCallbacks
from nram.learning.judgement import Judgement
from nram.search.display import SearchProgress
from nram.training.display import TrainingDisplay


class LearningProgress(SearchProgress, LearningCallbacks):
    """The progress of the search, of the training runs, and of what the held-out examples refuse."""

    training = TrainingDisplay("nram learn")

    wrong_on_held_out = 0

    def refused(self, judgement: Judgement) -> None:
        """Say it once, then count in the progress line: a hard problem refuses many."""
        self.wrong_on_held_out += 1
        self.more = f", {self.wrong_on_held_out} wrong on held-out examples"
        held_out = judgement.held_out
        if self.wrong_on_held_out == 1:
            self.note(
                f"a program fits every training example, but only {held_out.right} of the {held_out.examples} held "
                "out: the search goes on, and counts others like it"
            )
