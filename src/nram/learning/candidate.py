"""A program that may be the answer, with its scores on the examples."""

from __future__ import annotations

from dataclasses import dataclass

from nram.learning.judgement import Judgement
from nram.programs.ir import Program

FOR_THE_INPUTS = "for the training inputs: rows that none of them leads to are left out"


@dataclass(frozen=True)
class Candidate:
    """A program with its scores."""

    program: Program
    judgement: Judgement
    how: tuple[tuple[str, str], ...]
    """For its card: structure, candidates, network and the like."""

    @property
    def merit(self) -> tuple[bool, int, int, int]:
        """For comparison: whether it is accepted, then right and halting on training examples, then shortness.

        Held-out examples decide only whether it is accepted. So the choice does not bias the best one's score on them.
        """
        length = self.program.operations + self.program.rows
        return self.judgement.exact, self.right, self.judgement.training.halted, -length

    @property
    def right(self) -> int:
        """The training examples on which it is right."""
        return self.judgement.training.right


def better(one: Candidate | None, other: Candidate | None) -> Candidate | None:
    """The better of two; of equals the first."""
    if one is None or other is None:
        return one or other
    return other if other.merit > one.merit else one
