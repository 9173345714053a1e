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
    def merit(self) -> tuple[int, int, int, int]:
        """For comparison: right examples, of these right training examples, halting, then shortness."""
        training, held_out = self.judgement.training, self.judgement.held_out
        length = self.program.operations + self.program.rows
        return self.right, training.right, training.halted + held_out.halted, -length

    @property
    def right(self) -> int:
        """The examples on which it is right, held-out ones included."""
        return self.judgement.training.right + self.judgement.held_out.right


def better(one: Candidate | None, other: Candidate | None) -> Candidate | None:
    """The better of two; of equals the first."""
    if one is None or other is None:
        return one or other
    return other if other.merit > one.merit else one
