"""What a search tells its caller while it works. No Numba here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nram.tasks.base import Instance

if TYPE_CHECKING:
    from nram.search.structure import Structure


@dataclass(frozen=True)
class Report:
    """The state of a search."""

    round: int
    structures: tuple[Structure, ...]
    candidates: int
    chains: int
    seconds: float
    per_second: float
    """Candidates, since the search was begun or resumed."""
    pool: int
    counterexamples: int
    best_cost: float
    running_cost: float
    """The least cost of the chains at work, on the instances they have in play."""


@dataclass(frozen=True)
class Best:
    """A program better than all before it, and what it still gets wrong."""

    structure: Structure
    cost: float
    wrong: int
    """Instances of the pool that are not exact, or on which it does not halt."""
    pool: int
    seconds: float
    smallest: Instance
    """The smallest of the wrong ones."""
    obtained: list[int]
    halted: bool


class SearchCallbacks:
    """Progress callbacks; silent by default."""

    def note(self, text: str) -> None:
        """Something worth a line happened."""

    def report(self, report: Report) -> None:
        """The search goes on."""

    def best(self, best: Best) -> None:
        """There is a new best program, which does not fit yet."""


SILENT = SearchCallbacks()
