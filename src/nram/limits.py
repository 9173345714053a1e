"""Step limits, and what "right" means: one definition for networks, programs, search and learning.

A result is *right at T* if its output cells are right when it is stopped after T(n) steps, as in the paper. It is
*right under every limit* if they are right under every limit from T(n) up, because the machine halts by itself or idles
without harm. That is tested at the three limits of `LIMIT_NAMES`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nram.tasks.base import Instance

LIMIT_NAMES = ("T", "2T", "20n+200")
"""The step limits under which everything is tested. The third is never below the first: max(20n+200, T(n))."""


@dataclass(frozen=True)
class StepLimit:
    """T(n) = per_item * n + constant. It depends on n alone, so that it cannot give the answer away."""

    per_item: int
    constant: int

    def __call__(self, n: Any) -> Any:
        """The limit at complexity n, an integer or an array of them."""
        return self.per_item * n + self.constant

    def __str__(self) -> str:
        """T(n) as people write it: 6, n+4, 2n+4."""
        if self.per_item == 0:
            return str(self.constant)
        return f"{self.per_item if self.per_item > 1 else ''}n" + (f"+{self.constant}" if self.constant else "")

    @classmethod
    def from_text(cls, text: str) -> StepLimit | None:
        """The limit that a text like 2n+4 names, or None if it is not a limit."""
        found = re.fullmatch(r"(?:([0-9]{0,9})n)?(?:(?(1)\+|)([0-9]{1,9}))?", text)
        if not text or found is None:
            return None
        per_item = 0 if found[1] is None else int(found[1] or 1)
        return cls(per_item, int(found[2] or 0))

    def named(self, n: Any, name: str) -> Any:
        """One of the limits of `LIMIT_NAMES` at complexity n, an integer or an array of them."""
        first = self(n) + 0 * n  # an array where n is one, even if the limit does not depend on n
        if name == "T":
            return first
        other = 2 * first if name == "2T" else 20 * n + 200
        return first + (other - first) * (other > first)  # the larger of both, elementwise

    def ascending(self, n: int) -> dict[str, int]:
        """The three limits by name, the shortest first, T(n) before its equals."""
        named = {name: self.named(n, name) for name in LIMIT_NAMES}
        return dict(sorted(named.items(), key=lambda item: item[1]))

    def longest(self, n: int) -> int:
        return max(self.ascending(n).values())


def example_limits(steps: int, cells: int) -> tuple[int, int, int]:
    """The three limits of an example from a file, where n is not known.

    `steps` is the example's own limit, `cells` its memory size M: steps, 2 steps, and steps + 20 M + 200.
    """
    return steps, 2 * steps, steps + 20 * cells + 200


def wrong_cells(memory: Sequence[int], instance: Instance) -> list[int]:
    """The addresses of the output cells that do not hold what they should; none if the result is right."""
    return [cell for cell in instance.cells if memory[cell] != instance.output[cell]]


def wrong_instances(memories: Any, outputs: Any, cells: Any) -> Any:
    """Which memories have a wrong output cell. Arrays of NumPy or JAX [..., M]; `cells` marks the output cells."""
    return ((memories != outputs) & cells).any(-1)
