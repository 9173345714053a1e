"""Heat maps of runs: the memory over time, every cell coloured by its value, with reads, writes and output cells."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.patheffects import AbstractPathEffect, withStroke
from matplotlib.ticker import MaxNLocator

from nram.pictures.figures import luminance, new_figure, save_figure, themed
from nram.pictures.shapes import Theme, colour
from nram.pictures.trace_records import Trace

COLOURS = colormaps["viridis"]
# A mark is a bright line inside a black one: on every colour of the map, one of the two can be seen.
WHITE, BLACK = "#fefefe", "#010101"  # not those of a theme, which change on a dark page
READ, WRITTEN, OUTLINE = WHITE, "#ff9aa6", BLACK
LEGIBLE = 1100  # numbers; a larger table has only colours


def draw_heatmap(trace: Trace, path: Path, theme: Theme = "auto") -> None:
    """Draw the memory and the registers of a whole run: a line for the start of every step and one for the end."""
    save_figure(heatmap(trace, theme), path, theme)


def heatmap(trace: Trace, theme: Theme = "auto") -> Figure:
    """The figure. A ring is around a value that the step reads, a square around one that the step before wrote."""
    trace.require_listable()
    size, count = len(trace.start), len(trace.steps)
    memory = np.array([list(cells) for cells in trace.memories()], np.int32)
    registers = np.array([step.registers for step in trace.steps] + [tuple(trace.ending.registers)], np.int32)
    names = trace.program.registers
    width = min(12.0, max(4.8, 1.6 + 0.3 * (size + len(names))))
    height = min(10.0, max(2.9, 1.6 + 0.26 * (count + 1)))
    with themed(theme):
        figure = new_figure(width, height)
        share = max(0.12 * (size + len(names)), len(names))
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=(size, share))
        image = _paint(left, memory, size)
        _paint(right, registers, size)
        cell = min(72 * (width - 1.6) / (size + share), 72 * (height - 1.6) / (count + 1))  # points
        _mark(left, trace, cell)
        _label_axes(left, right, trace, theme)
        _explain(figure, trace, theme)
        figure.colorbar(image, ax=[left, right], label="value", fraction=0.03, pad=0.01)
        name = trace.program.name if len(trace.program.name) <= 60 else trace.program.name[:57] + "..."
        ending, *verdict = trace.outcome()
        title = [f"{name}: {ending}", *(words if len(words) <= 80 else words[:77] + "..." for words in verdict)]
        figure.suptitle("\n".join(title), fontsize=10, parse_math=False)
    return figure


def _paint(axes: Axes, values: np.ndarray, size: int):
    image = axes.imshow(values, cmap=COLOURS, vmin=0, vmax=size - 1, aspect="auto", interpolation="nearest")
    if values.size <= LEGIBLE:
        for (y, x), value in np.ndenumerate(values):
            # Black from the luminance on at which its contrast is larger than that of white.
            ink = BLACK if luminance(COLOURS(image.norm(value))[:3]) > 0.18 else WHITE
            axes.text(x, y, str(value), ha="center", va="center", fontsize=7, color=ink)
    return image


def _mark(axes: Axes, trace: Trace, cell: float) -> None:
    """Rings around what is read and squares around what was written, as large as the cells allow."""
    reads = [(access.pointer, step.number - 1) for step in trace.steps for access in step.reads]
    writes = [(access.pointer, step.number) for step in trace.steps for access in step.writes]
    side = min(max(0.86 * cell, 2.0), 17.0)
    solid = side < 5  # small cells get dots instead of outlines
    for accesses, marker, bright, scale in ((writes, "s", WRITTEN, 1.0), (reads, "o", READ, 0.86)):
        if accesses:
            axes.scatter(
                *zip(*accesses, strict=True),
                s=(scale * side) ** 2,
                marker=marker,
                facecolors=bright if solid else "none",
                edgecolors=OUTLINE if solid else bright,
                linewidths=0.4 if solid else 1.2,
                path_effects=None if solid else [withStroke(linewidth=2.6, foreground=OUTLINE)],
            )


def _label_axes(left: Axes, right: Axes, trace: Trace, theme: Theme) -> None:
    """Addresses are pale and slanted, values upright; output cells have a bar above them."""
    size, count, names = len(trace.start), len(trace.steps), trace.program.registers
    left.set(xlabel="memory, by address", ylabel="start of step")
    left.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=min(size, 24)))
    for label in left.get_xticklabels():
        label.set(style="italic", color=colour("pale", theme))
    left.tick_params(axis="x", labelcolor=colour("pale", theme))
    ticks = [*range(0, count, max(1, round(count / 30))), count]
    left.set_yticks(ticks, [*(str(tick + 1) for tick in ticks[:-1]), "end"])
    right.set_xticks(range(len(names)), [name[:12] for name in names], rotation=90 if max(map(len, names)) > 3 else 0)
    right.tick_params(left=False)
    right.set_xlabel("registers")
    for cell in sorted(trace.output_cells):
        place = {"transform": left.get_xaxis_transform(), "clip_on": False}
        left.add_patch(Rectangle((cell - 0.46, 1.012), 0.92, 0.02, color=colour("output", theme), linewidth=0, **place))


def _explain(figure: Figure, trace: Trace, theme: Theme) -> None:
    """A legend below everything. Its marks do not depend on the size of the cells."""
    outline: list[AbstractPathEffect] = [withStroke(linewidth=2.6, foreground=OUTLINE)]
    marks: list[Line2D | Patch] = [
        Line2D([], [], linestyle="", marker=marker, markersize=8, color=bright, markerfacecolor="none", label=words)
        for marker, bright, words in (("o", READ, "read by this step"), ("s", WRITTEN, "written by the step before"))
    ]
    for mark in marks:
        mark.set_path_effects(outline)
    if trace.output_cells:
        marks.append(Patch(color=colour("output", theme), label="output cell"))
    figure.legend(handles=marks, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
