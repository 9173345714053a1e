"""Heat maps of runs: the memory over time, every cell coloured by its value, with reads and writes marked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from nram.pictures.figures import save_figure
from nram.pictures.trace_records import Trace

COLOURS = "viridis"
READ, WRITTEN = "#ffffff", "#ff3b4e"
LEGIBLE = 1100  # numbers; a larger table has only colours


def draw_heatmap(trace: Trace, path: Path) -> None:
    """Draw the memory and the registers of a whole run: a line for the start of every step and one for the end."""
    save_figure(heatmap(trace), path)


def heatmap(trace: Trace) -> Figure:
    trace.require_listable()
    size, count = len(trace.start), len(trace.steps)
    memory = np.array([list(cells) for cells in trace.memories()], np.int32)
    registers = np.array([step.registers for step in trace.steps] + [tuple(trace.ending.registers)], np.int32)
    names = trace.program.registers

    width = min(12.0, max(4.5, 1.6 + 0.28 * (size + len(names))))
    height = min(10.0, max(2.6, 1.3 + 0.24 * (count + 1)))
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    share = max(0.12 * (size + len(names)), len(names))
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(size, share))
    image = _paint(left, memory, size)
    _paint(right, registers, size)
    cell = min(72 * (width - 1.6) / (size + share), 72 * (height - 1.3) / (count + 1))  # points
    _mark(left, trace, cell)
    _explain(figure)
    left.set(xlabel="memory cell", ylabel="step")
    left.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=min(size, 24)))
    ticks = [*range(0, count, max(1, round(count / 30))), count]
    left.set_yticks(ticks, [*(str(tick + 1) for tick in ticks[:-1]), "end"])
    right.set_xticks(range(len(names)), [name[:12] for name in names], rotation=90 if max(map(len, names)) > 3 else 0)
    right.tick_params(left=False)
    right.set_xlabel("registers")
    figure.colorbar(image, ax=[left, right], label="value", fraction=0.03, pad=0.01)
    name = trace.program.name if len(trace.program.name) <= 60 else trace.program.name[:57] + "..."
    figure.suptitle(f"{name}: {trace.outcome()[0]}", fontsize=10, parse_math=False)
    return figure


def _paint(axes: Axes, values: np.ndarray, size: int):
    image = axes.imshow(values, cmap=COLOURS, vmin=0, vmax=size - 1, aspect="auto", interpolation="nearest")
    if values.size <= LEGIBLE:
        for (y, x), value in np.ndenumerate(values):
            dark = value < 0.6 * (size - 1)
            axes.text(x, y, str(value), ha="center", va="center", fontsize=7, color="white" if dark else "black")
    return image


def _mark(axes: Axes, trace: Trace, cell: float) -> None:
    """Mark reads with rings and writes with squares, as large as the cells allow."""
    side = min(max(0.75 * cell, 2.0), 15.0)
    # Small cells get dots instead of outlines.
    solid = side < 5
    for accesses, marker, colour in (
        ([(access.pointer, step.number - 1) for step in trace.steps for access in step.reads], "o", READ),
        ([(access.pointer, step.number - 1) for step in trace.steps for access in step.writes], "s", WRITTEN),
    ):
        if accesses:
            x, y = zip(*accesses, strict=True)
            axes.scatter(
                x,
                y,
                s=side**2,
                marker=marker,
                facecolors=colour if solid else "none",
                edgecolors=colour,
                linewidths=0 if solid else 1.2,
            )


def _explain(figure: Figure) -> None:
    """A legend below everything. Its marks do not depend on the size of the cells."""
    marks = [
        Line2D([], [], linestyle="", marker="o", markersize=9, color=READ, markerfacecolor="none", label="read"),
        Line2D([], [], linestyle="", marker="s", markersize=9, color=WRITTEN, markerfacecolor="none", label="written"),
    ]
    figure.legend(
        handles=marks, loc="outside lower right", ncols=2, fontsize=8, facecolor="#3b4a59", labelcolor="white"
    )
