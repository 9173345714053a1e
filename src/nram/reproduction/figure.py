"""The paper's figure of generalisation: error against maximal complexity, a panel for each task."""

from __future__ import annotations

import io
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from nram.files import write_result
from nram.pictures.curves import HARD, SOFT
from nram.reproduction.examining import Examined
from nram.reproduction.report import Reproduction

COLUMNS = 5


def draw_generalisation(table: Reproduction, path: Path) -> None:
    """Write the figure as SVG, the same bytes for the same figures."""
    content = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "nram reproduce", "svg.fonttype": "none"}):
        generalisation(table).savefig(content, format="svg", metadata={"Date": None})
    write_result(path, content.getvalue())


def generalisation(table: Reproduction) -> Figure:
    columns = min(COLUMNS, len(table.rows))
    lines = -(-len(table.rows) // columns)
    figure = Figure(figsize=(max(5.2, 0.6 + 2.3 * columns), 0.9 + 1.9 * lines), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True).flat
    handles = {}
    for axes, row in zip(panels, table.rows, strict=False):
        axes.set_title(row.task.name, fontsize=10)
        trained = row.of("trained")
        if trained is None:
            words = table.why_missing("trained")
            axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", color="0.5")
        else:
            handles |= _plot(axes, trained)
    for axes in panels[len(table.rows) :]:
        axes.set_visible(False)
    largest = max([table.plan.at, *(pair.max_complexity for _, one in table.trained for pair in one.curve)])
    panels[0].set(xlim=(0, largest + 2), ylim=(-0.04, 1.04))
    figure.supxlabel("maximal complexity", fontsize=10)
    figure.supylabel("error", fontsize=10)
    if handles:
        figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    return figure


def _plot(axes: Axes, examined: Examined) -> dict:
    handles = {}
    for mode, colour, style, words in (
        ("soft", SOFT, "-", "network (continuous)"),
        ("hard", HARD, "--", "its program (discretised)"),
    ):
        measures = [(pair.max_complexity, getattr(pair, mode)) for pair in examined.curve]
        points = [(complexity, measure.error["T"]) for complexity, measure in measures if measure is not None]
        if points:
            lines = axes.plot(*zip(*points, strict=True), style, marker="o", markersize=3, color=colour)
            handles[words] = lines[0]
    handles["trained up to here"] = axes.axvline(examined.model.trained_up_to, color="0.7", linewidth=0.8)
    return handles
