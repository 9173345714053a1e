"""What a search tells its caller while it works."""

from __future__ import annotations

from dataclasses import dataclass

from nram.programs.ir import Program
from nram.search.structure import Structure
from nram.tasks.base import Instance


@dataclass(frozen=True)
class Report:
    """The progress of a search."""

    round: int
    candidates: int
    """Of the chains that have ended, as the result counts them: one that is stopped in the middle never counts."""
    chains: int
    seconds: float
    per_second: float
    """Candidates, those of running chains included, since the search was begun or resumed."""
    counterexamples: int


@dataclass(frozen=True)
class Best:
    """A program better than all before it, and what it still gets wrong."""

    structure: Structure
    wrong: int
    """Instances of the pool that are not exact, or on which it does not halt."""
    pool: int
    seconds: float
    smallest: Instance
    """The smallest one with a wrong cell, or the smallest on which it does not halt."""
    obtained: list[int]
    program: Program
    """As it was found, not simplified."""


class SearchCallbacks:
    """Progress callbacks; silent by default."""

    def note(self, text: str) -> None:
        """Something worth a line happened."""

    def report(self, report: Report) -> None:
        """The search goes on."""

    def best(self, best: Best) -> None:
        """There is a new best program, which does not fit yet."""


SILENT = SearchCallbacks()
