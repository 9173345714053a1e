"""Curves of a run: its error while training, and the error of a member against complexity."""

import io
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from nram.errors import NramError
from nram.files import write_result

SOFT, HARD, PALE = "#2f6fab", "#d1495b", "#b9c4cf"


def plot_run(report: dict[str, Any], metrics: list[dict[str, Any]], path: Path) -> None:
    """Two panels: error while training, and error against maximal complexity (the paper's figure)."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    _training_panel(left, metrics)
    _generalisation_panel(right, report)
    figure.suptitle(f"{report['task']}, seed {report['seed']}, member {report['member']}")
    content = io.BytesIO()
    try:
        figure.savefig(content, format=path.suffix[1:].lower() or None, dpi=130)
    except ValueError as error:
        raise NramError(f"cannot write the plot {path}: {error}") from None
    finally:
        plt.close(figure)
    write_result(path, content.getvalue())


def _training_panel(axes, metrics: list[dict[str, Any]]) -> None:
    seconds = [row["seconds"] for row in metrics]
    axes.plot(seconds, [row["median_error"] for row in metrics], color=PALE, label="median member")
    axes.plot(seconds, [row["best_error"] for row in metrics], color=SOFT, label="best member")
    for before, row in zip(metrics, metrics[1:], strict=False):
        if row["stage"] != before["stage"]:
            axes.axvline(before["seconds"], color="0.8", linewidth=0.8)
            _label(axes, before["seconds"], f"stage {row['stage']}: n ≤ {row['max_complexity']}")
    axes.set(xlabel="seconds of training", ylabel="error on training batches", ylim=(-0.02, 1), title="Training")
    axes.legend(frameon=False)


def _generalisation_panel(axes, report: dict[str, Any]) -> None:
    for mode, colour, style in (("soft", SOFT, "-"), ("hard", HARD, "--")):
        points = [(point["max_complexity"], point[mode]["error"]) for point in report["curve"]]
        axes.plot(*zip(*points, strict=True), style, marker="o", markersize=3, color=colour, label=mode)
    axes.axvline(report["trained_up_to"], color="0.8", linewidth=0.8)
    _label(axes, report["trained_up_to"], "trained up to here")
    axes.set(xlabel="maximal complexity", ylabel="error", ylim=(-0.02, 1), title="Generalisation")
    axes.legend(frameon=False)


def _label(axes, x: float, words: str) -> None:
    """Beside a vertical line, inside the axes."""
    axes.text(x, 0.6, words, fontsize=7, color="0.4", rotation=90, ha="left", va="top")
