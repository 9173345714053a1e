"""The paper's figure of generalisation: error against maximal complexity, a panel for each task."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nram.pictures.curves import error_axis, plot_errors
from nram.pictures.figures import new_figure, save_figure, themed
from nram.pictures.shapes import colour
from nram.reproduction.examining import Examined
from nram.reproduction.report import Reproduction

COLUMNS = 5
LINES = {"soft": "network (continuous)", "hard": "its program (discretised)"}


def draw_generalisation(table: Reproduction, path: Path) -> None:
    """Write the figure as SVG, the same bytes for the same figures."""
    with themed("auto"):
        save_figure(generalisation(table), path)


def generalisation(table: Reproduction) -> Figure:
    columns = min(COLUMNS, len(table.rows))
    lines = -(-len(table.rows) // columns)
    figure = new_figure(max(5.2, 0.6 + 2.3 * columns), 0.9 + 1.9 * lines)
    panels = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True).flat
    handles = {}
    for axes, row in zip(panels, table.rows, strict=False):
        axes.set_title(row.task.name, fontsize=10)
        trained = row.of("trained")
        if trained is None:
            words = table.why_missing("trained")
            axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", color=colour("pale", "auto"))
        else:
            handles |= _plot(axes, trained)
    for axes in panels[len(table.rows) :]:
        axes.set_visible(False)
    largest = max([table.plan.at, *(pair.max_complexity for _, one in table.trained for pair in one.curve)])
    panels[0].set(xlim=(0, largest + 2))
    errors = [error for _, one in table.trained for mode in LINES for _, error in _points(one, mode)]
    for axes in panels[: len(table.rows)]:
        error_axis(axes, errors, "auto")
    figure.supxlabel("maximal complexity", fontsize=10)
    figure.supylabel("error", fontsize=10)
    if handles:
        figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    return figure


def _plot(axes: Axes, examined: Examined) -> dict:
    handles = {}
    for mode, words in LINES.items():
        if points := _points(examined, mode):
            handles[words] = plot_errors(axes, mode, points, "auto", words)
    trained = axes.axvline(examined.model.trained_up_to, color=colour("kept", "auto"), linewidth=0.8)
    return {**handles, "trained up to here": trained}


def _points(examined: Examined, mode: str) -> list[tuple[int, float]]:
    """Maximal complexity and error, where it was measured."""
    measures = [(pair.max_complexity, getattr(pair, mode)) for pair in examined.curve]
    return [(complexity, measure.error["T"]) for complexity, measure in measures if measure is not None]
