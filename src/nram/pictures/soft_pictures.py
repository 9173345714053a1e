"""Pictures of traces of the continuous machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nram.pictures.figures import new_figure, save_figure, themed
from nram.pictures.shapes import Theme, colour
from nram.pictures.soft_traces import SoftTrace, register_names, spread

MOST_PANELS = 18


def draw_soft_trace(trace: SoftTrace, path: Path, title: str = "", theme: Theme = "auto") -> None:
    """Draw a panel for each step, or for a selection: registers and memory cells against values, dark if probable.

    Below them, how probable it is that the machine stops at each step. Steps after the stop are marked.
    """
    with themed(theme):
        save_figure(_soft_figure(trace, title, theme), path, theme)


def _soft_figure(trace: SoftTrace, title: str, theme: Theme) -> Figure:
    count, registers, size = trace.steps, trace.registers.shape[1], trace.memory.shape[-1]
    stop = trace.stopped_after
    panels = spread(count + 1, MOST_PANELS)
    down = -(-len(panels) // 6)
    across = -(-len(panels) // down)
    tall = min(max(1.6, 0.11 * (registers + 1 + size)), 4.0)
    figure = new_figure(1.9 * across + 0.8, (tall + 0.35) * down + 2.0)
    grid = figure.add_gridspec(down + 1, across, height_ratios=[*[tall] * down, 1.4])
    image = None
    for index, t in enumerate(panels):
        axes = figure.add_subplot(grid[divmod(index, across)])
        gap = np.full((1, size), np.nan)
        rows = np.concatenate([trace.registers[t], gap, trace.memory[t]])
        image = axes.imshow(rows, cmap="Blues", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
        axes.axhspan(registers - 0.5, registers + 0.5, color=colour("line", theme), linewidth=0)
        late = stop <= t and stop < count
        words = ("end" if t == count else f"step {t + 1}") + (", stopped" if late else "")
        axes.set_title(words, fontsize=8, color=colour("pale" if late else "ink", theme))
        labels = [*range(registers), *(registers + 1 + cell for cell in _ticks(size))]
        axes.set_yticks(labels, [*register_names(trace), *map(str, _ticks(size))] if index % across == 0 else [])
        axes.set_xticks(_ticks(size))
        axes.tick_params(labelsize=6, length=2)
    below = figure.add_subplot(grid[down, :])
    steps = np.arange(1, count + 1)
    below.bar(steps, trace.finish, color=colour("kept", theme), label="probability that it stops after this step")
    willing = "probability that it would stop, if it still runs"
    below.plot(steps, trace.willing, color=colour("written", theme), marker="o", markersize=3, label=willing)
    if stop < count:
        below.axvspan(
            stop + 0.5, count + 0.6, color=colour("line", theme), alpha=0.4, linewidth=0, label="after the stop"
        )
    below.set(xlabel="step", ylim=(-0.03, 1.05), xlim=(0.4, count + 0.6))
    below.legend(fontsize=7, frameon=False)
    below.tick_params(labelsize=7)
    below.xaxis.set_major_locator(MaxNLocator(integer=True))
    assert image is not None  # the end is always among the panels
    bar = figure.colorbar(image, ax=below, fraction=0.02, pad=0.01)
    bar.set_label("probability", fontsize=7)
    bar.ax.tick_params(labelsize=6)
    left_out = f", {len(panels)} of {count + 1} states" if len(panels) <= count else ""
    words = f"{title + ': ' if title else ''}registers and memory cells (down) against values (across){left_out}"
    figure.suptitle(words, fontsize=9, parse_math=False)
    return figure


def _ticks(size: int) -> list[int]:
    step = max(1, -(-size // 12))
    return list(range(0, size, step))
