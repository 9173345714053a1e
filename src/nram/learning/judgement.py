"""The scores of a program on the two parts of a file of examples."""

from __future__ import annotations

from dataclasses import dataclass

from nram.learning.parts import Parts
from nram.programs.ir import Program
from nram.programs.scores import Score, Wrong, score_of


@dataclass(frozen=True)
class Judgement:
    """The scores of a program on the training and on the held-out examples."""

    training: Score
    held_out: Score

    @property
    def exact(self) -> bool:
        return self.training.exact and self.held_out.exact

    @property
    def halts(self) -> bool:
        """On every example, by itself."""
        return all(score.halted == score.examples for score in (self.training, self.held_out))

    @property
    def shown_up_to(self) -> int | None:
        """The largest size up to which every example is right; None if it does not exist."""
        sizes = (*self.training.sizes, *self.held_out.sizes)
        wrong = (one.example.size for score in (self.training, self.held_out) for one in score.wrong)
        first = min(wrong, default=max(sizes) + 1)
        return max((size for size in sizes if size < first), default=None)

    @property
    def smallest(self) -> Wrong | None:
        """Of the wrong ones, one of the training part if there is any."""
        return self.training.smallest or self.held_out.smallest


def judgement_of(program: Program, parts: Parts) -> Judgement:
    return Judgement(score_of(program, parts.learned_from), score_of(program, parts.held_out))
