"""What `nram eval` and `nram.evaluate` find out about one trained member. No JAX here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nram.display import Displayed, heading, table, text_block, text_table
from nram.extras import require

CURVE = (10, 20, 30, 40, 50)
"""The complexities of the curve."""
HALF_LARGEST = "half of the instances have the largest n"
UNIFORM = "at T(n), every n up to the largest equally often"
"""How the instances of the two tables are drawn: the upper one is harder."""


@dataclass(frozen=True, repr=False)
class Evaluation(Displayed):
    """How good a trained member is on unseen instances."""

    report: Mapping[str, Any]
    """What `nram eval --json` prints."""
    metrics: Sequence[Mapping[str, Any]] = field(default=(), compare=False)
    """Of the run, for the plot."""

    @property
    def perfect(self) -> bool:
        """Soft and hard, under every limit, and hard at n = 50."""
        return all(self.report["perfect"].values())

    @property
    def _title(self) -> str:
        report = self.report
        return f"{report['task']}, member {report['member']} of {report['run']}"

    def _brief(self) -> str:
        errors = [row["error"] for row in self.report["perfection"]]
        return f"of {self._title}: {'perfect' if self.perfect else f'error up to {max(errors):.4f}'}"

    def _rows(self) -> list[list[str]]:
        """The figures at the trained complexity and far beyond, with a heading."""
        rows = [["", "n", "step limit", "error", "exact"]]
        for row in self.report["perfection"]:
            rows.append([row["mode"], f"<= {row['max_complexity']}", row["limit"], *_figures(row)])
        return rows

    def _curve(self) -> list[list[str]]:
        """The figures against complexity, with a heading."""
        rows = [["n up to", "soft error", "soft exact", "hard error", "hard exact"]]
        for point in self.report["curve"]:
            rows.append([str(point["max_complexity"]), *_figures(point["soft"]), *_figures(point["hard"])])
        return rows

    def _verdict(self) -> str:
        soft, hard, far = ("yes" if self.report["perfect"][part] else "no" for part in ("soft", "hard", "far"))
        return f"perfect at the trained complexity: soft {soft}, hard {hard}; hard at n = {self.report['far']}: {far}"

    def __str__(self) -> str:
        title = f"{self._title}, {self.report['instances']} unseen instances each"
        tables = [f"{HALF_LARGEST}:\n{text_table(self._rows())}", f"{UNIFORM}:\n{text_table(self._curve())}"]
        return "\n\n".join([title, tables[0], self._verdict(), tables[1]])

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        (first, *rows), (second, *points) = self._rows(), self._curve()
        upper = heading(f"{self._title}: {self._verdict()}") + text_block(HALF_LARGEST) + table(rows, first)
        return upper + text_block(UNIFORM) + table(points, second)

    def draw(self, path: str | Path) -> None:
        """Draw the error while training and against complexity. The suffix says the format: .png, .svg or .pdf."""
        require("plots", "a plot")
        from nram.pictures.curves import plot_run  # matplotlib

        plot_run(dict(self.report), [dict(row) for row in self.metrics], Path(path))


def _figures(score: Mapping[str, float]) -> list[str]:
    return [f"{score['error']:.4f}", f"{score['exact']:.2%}"]
