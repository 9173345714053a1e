"""The shares of a study with their intervals, drawn with matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nram.pictures.figures import new_figure, save_figure, themed
from nram.pictures.shapes import Theme, colour
from nram.progress import note

MOST_ROWS = 200


def plot_shares(rows: list[dict[str, Any]], title: str, path: Path, theme: Theme = "auto") -> None:
    """Write a figure with a line for each row of a study's table that has trials: the share, and its 95% interval.

    Without any such row nothing is written.
    """
    known = [row for row in rows if row["learned"]["of"]][:MOST_ROWS]
    if not known:
        note(f"{path} is not drawn: no trial has ended")
        return
    with themed(theme):
        figure = new_figure(8, 1.4 + 0.3 * len(known))
        axes = figure.add_subplot()
        for place, row in enumerate(known):
            learned = row["learned"]
            axes.plot([learned["from"], learned["to"]], [place, place], color=colour("read", theme), linewidth=2)
            axes.plot([learned["share"]], [place], "o", color=colour("written", theme))
        names = [" ".join(filter(None, (row["task"], row["label"]))) for row in known]
        counts = [f"{name} ({row['learned']['of']})" for name, row in zip(names, known, strict=True)]
        axes.set_yticks(range(len(known)), counts, parse_math=False)
        axes.set_ylim(len(known) - 0.5, -0.5)
        axes.set_xlim(-0.02, 1.02)
        axes.set_xlabel("share of trials that learned, with its 95% interval")
        axes.set_title(title, parse_math=False)
        save_figure(figure, path, theme)
