"""Curves of a run: its errors while training, and the errors of a member against complexity."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import accumulate, cycle
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nram.errors import NramError
from nram.files import write_result
from nram.pictures.figures import bytes_of, new_figure, themed
from nram.pictures.shapes import Theme, colour

COLOURS = {"soft": "read", "hard": "written"}  # names in the table of colours
GROUP_COLOURS = ("read", "written", "output", "wire", "kept")  # used again if there are more groups
MOST_NAME = 16  # characters of a group's name
MOST_BARS = 300  # of a group: beside one another they could not be told apart
SMALLEST, LARGEST = 1e-6, 1e-2  # the decade in which a logarithmic axis ends, at least and at most


def plot_run(report: dict[str, Any], metrics: list[dict[str, Any]], path: Path, theme: Theme = "auto") -> None:
    """Write the figure of a run: its training at the left, the paper's figure of generalisation at the right."""
    figure = run_figure(report, metrics, theme)
    try:
        content = bytes_of(figure, path.suffix.lower() or ".png", theme)
    except ValueError as error:  # a format that matplotlib does not know
        raise NramError(f"cannot write the plot {path}: {error}") from None
    write_result(path, content)


def run_figure(report: dict[str, Any], metrics: list[dict[str, Any]], theme: Theme = "auto") -> Figure:
    """Errors and levels (or the turns of the groups) while training, and errors against maximal complexity."""
    with themed(theme):
        figure = new_figure(11, 5)
        grid = figure.add_gridspec(2, 2, height_ratios=(3, 1))
        errors = figure.add_subplot(grid[0, 0])
        below = figure.add_subplot(grid[1, 0], sharex=errors)
        if groups := _by_group(metrics):
            _group_errors_panel(errors, groups, theme)
            _turns_panel(below, groups, metrics, theme)
        else:
            _training_panel(errors, metrics, theme)
            _level_panel(below, metrics, theme)
            for axes in (errors, below):
                _mark_stages(axes, metrics, theme, named=axes is errors)
        _generalisation_panel(figure.add_subplot(grid[:, 1]), report, theme)
        title = f"{report['task']}, seed {report['seed']}, member {report['member']}"
        figure.suptitle(title, parse_math=False)
    return figure


def error_axis(axes: Axes, values: Iterable[float], theme: Theme) -> None:
    """A logarithmic axis of errors down to the smallest of these, and below a break the place of 0, shaded."""
    positive = [value for value in values if 0 < value < math.inf]
    end = 10.0 ** math.floor(math.log10(min(positive, default=LARGEST)))
    end = min(max(end, SMALLEST), LARGEST)
    # Linear below the last decade: nothing lies there but 0.
    axes.set_yscale("symlog", linthresh=end, linscale=0.7)
    axes.set_ylim(-0.45 * end, 1.5)
    decades = [10.0**power for power in range(round(math.log10(end)), 1)]
    axes.set_yticks([0, *decades], ["0", *(f"{100 * decade:g}%" for decade in decades)])
    axes.set_yticks([], minor=True)
    axes.axhspan(-0.45 * end, 0.45 * end, color=colour("asked", theme), linewidth=0, zorder=0)
    axes.text(
        0.99,
        -0.4 * end,
        "perfect",
        fontsize=7,
        ha="right",
        color=colour("pale", theme),
        transform=axes.get_yaxis_transform(),
    )


def plot_errors(axes: Axes, mode: str, points: Sequence[tuple[float, float]], theme: Theme, label: str):
    """The error of the soft or of the hard machine. Where both are the same, both can be seen."""
    wide = mode == "soft"
    return axes.plot(
        *zip(*points, strict=True),
        "-" if wide else "--",
        marker="o",
        markersize=5 if wide else 2.5,
        linewidth=3.2 if wide else 1.3,
        color=colour(COLOURS[mode], theme),
        label=label,
        zorder=2 if wide else 3,
    )[0]


Groups = dict[str, list[dict[str, Any]]]
"""The reports of each group, by its name."""


def _by_group(metrics: list[dict[str, Any]]) -> Groups:
    """Empty for a run without groups."""
    groups: Groups = {}
    for row in metrics:
        if isinstance(name := row.get("group_name"), str):
            groups.setdefault(_label(name), []).append(row)
    return groups


def _label(name: str) -> str:
    """A group's name as a label: short, and no formula."""
    return name[:MOST_NAME].replace("$", r"\$")


def _inks(groups: Groups, theme: Theme) -> dict[str, str]:
    return {name: colour(ink, theme) for name, ink in zip(groups, cycle(GROUP_COLOURS), strict=False)}


def _group_errors_panel(axes: Axes, groups: Groups, theme: Theme) -> None:
    """Two curves for each group: what its best member makes wrong soft, and as a program."""
    values, inks = [], _inks(groups, theme)
    for name, rows in groups.items():
        soft = [(row["seconds"], row["best_error"]) for row in rows]
        hard = [(row["seconds"], 1 - row["best_hard"]) for row in rows if row.get("best_hard") is not None]
        axes.plot(*zip(*soft, strict=True), "-", linewidth=0.9, alpha=0.7, color=inks[name])
        if hard:
            axes.plot(*zip(*hard, strict=True), "--", linewidth=1.7, color=inks[name])
        axes.plot([], [], linewidth=4, color=inks[name], label=name)
        values += [error for _, error in soft + hard]
    error_axis(axes, values, theme)
    ink = colour("pale", theme)
    axes.plot([], [], "-", linewidth=0.9, color=ink, label="best member: wrong cells, soft")
    axes.plot([], [], "--", linewidth=1.7, color=ink, label="best member: examples not exact, as a program")
    axes.set(ylabel="error", title="Training")
    axes.tick_params(labelbottom=False)
    axes.legend(frameon=False, fontsize=8)


def _turns_panel(axes: Axes, groups: Groups, metrics: list[dict[str, Any]], theme: Theme) -> None:
    """When each group trained: thin bars for its first stage, thick ones for later stages."""
    inks, names = _inks(groups, theme), list(groups)
    gap = max((row["seconds"] for row in metrics), default=0.0) / MOST_BARS  # turns that follow sooner are one bar
    bars: dict[tuple[str, bool], list[tuple[float, float]]] = {}
    before = 0.0
    for row in metrics:
        now, name = row["seconds"], row.get("group_name")
        if isinstance(name, str):
            of_group = bars.setdefault((_label(name), row["stage"] > 0), [])
            if of_group and before - of_group[-1][1] <= gap:
                of_group[-1] = of_group[-1][0], now
            else:
                of_group.append((before, now))
        before = now
    for (name, later), spans in bars.items():
        height = 0.8 if later else 0.3
        places = [(start, max(end - start, 0.0)) for start, end in spans]
        axes.broken_barh(places, (names.index(name) - height / 2, height), color=inks[name], linewidth=0)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_ylim(len(names) - 0.4, -0.6)  # the first group above
    axes.set_xlim(left=0)
    axes.set(xlabel="seconds of training", ylabel="turns")
    axes.set_title("thin: first stage, thick: later stages", fontsize=8, color=colour("pale", theme), loc="right")


def _training_panel(axes: Axes, metrics: list[dict[str, Any]], theme: Theme) -> None:
    curves = [
        ("median_error", "kept", "-", "median member: wrong cells, soft", False),
        ("best_error", "read", "-", "best member: wrong cells, soft", False),
        ("best_exact", "read", ":", "best member: examples not exact, soft", True),
        ("best_hard", "written", "--", "best member: examples not exact, hard", True),
    ]
    values = []
    for name, ink, line, label, right in curves:  # `right`: the metric is a share that is right
        known = [row for row in metrics if row.get(name) is not None]
        shares = [1 - row[name] if right else row[name] for row in known]
        values += shares
        if known:
            axes.plot([row["seconds"] for row in known], shares, line, color=colour(ink, theme), label=label)
    error_axis(axes, values, theme)
    axes.set(ylabel="error", title="Training")
    axes.tick_params(labelbottom=False)
    if metrics:
        axes.legend(frameon=False, fontsize=8)


def _level_panel(axes: Axes, metrics: list[dict[str, Any]], theme: Theme) -> None:
    """The curriculum levels of the population: from the lowest to the highest, and the median."""
    known = [(row["seconds"], found) for row in metrics if (found := _levels(row.get("levels") or {}))]
    if known:
        seconds, levels = zip(*known, strict=True)
        low, middle, high = zip(*levels, strict=True)
        axes.fill_between(seconds, low, high, step="post", color=colour("tag", theme), linewidth=0)
        axes.step(seconds, high, where="post", color=colour("read", theme), label="highest")
        axes.step(seconds, middle, where="post", color=colour("kept", theme), label="median")
        # Above the panel: inside it would lie on the curves.
        axes.legend(frameon=False, fontsize=8, ncols=2, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0)
        axes.set_ylim(min(low) - 0.5, max(high) + 0.5)
    axes.set_xlim(left=0)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=4, min_n_ticks=1))
    axes.set(xlabel="seconds of training", ylabel="level")


def _levels(counts: dict[str, int]) -> tuple[int, int, int] | None:
    """The lowest level that a member has, the median and the highest. A file may hold anything as a level."""
    known = sorted((int(level), count) for level, count in counts.items() if level.isdecimal() and len(level) < 10)
    upto = list(accumulate(max(count, 0) for _, count in known))
    if not known or upto[-1] == 0:
        return None
    middle = next(level for (level, _), members in zip(known, upto, strict=True) if 2 * members > upto[-1])
    return known[0][0], middle, known[-1][0]


def _mark_stages(axes: Axes, metrics: list[dict[str, Any]], theme: Theme, named: bool) -> None:
    for before, row in zip(metrics, metrics[1:], strict=False):
        if row["stage"] != before["stage"]:
            words = f"stage {row['stage']}: n ≤ {row['max_complexity']}" if named else ""
            _mark(axes, before["seconds"], words, theme)


def _generalisation_panel(axes: Axes, report: dict[str, Any], theme: Theme) -> None:
    values = []
    for mode in COLOURS:
        points = [(point["max_complexity"], point[mode]["error"]) for point in report["curve"]]
        plot_errors(axes, mode, points, theme, f"{mode}: wrong cells")
        inexact = [(point["max_complexity"], 1 - point[mode]["exact"]) for point in report["curve"]]
        axes.plot(
            *zip(*inexact, strict=True),
            ":",
            marker="s" if mode == "soft" else "D",
            markersize=9 if mode == "soft" else 6,
            markerfacecolor="none",
            color=colour(COLOURS[mode], theme),
            label=f"{mode}: instances not exact",
        )
        values += [error for _, error in points + inexact]
    error_axis(axes, values, theme)
    _mark(axes, report["trained_up_to"], "trained up to here", theme)
    axes.set(xlabel="maximal complexity", ylabel="error", title="Generalisation")
    axes.legend(frameon=False, fontsize=8, loc="center right" if max(values, default=0) == 0 else "best")


def _mark(axes: Axes, x: float, words: str, theme: Theme) -> None:
    """A vertical line with words beside it, inside the axes."""
    axes.axvline(x, color=colour("kept", theme), linewidth=0.8)
    axes.text(
        x,
        0.24,  # above the place of 0
        f" {words}",
        fontsize=7,
        color=colour("pale", theme),
        rotation=90,
        ha="left",
        va="bottom",
        transform=axes.get_xaxis_transform(),
    )
