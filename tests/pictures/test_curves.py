"""The figure of a run: perfect can be seen, hard and exact curves beside soft ones, levels, light and dark."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.axes import Axes

from nram.errors import NramError
from nram.pictures.curves import error_axis, plot_run, run_figure
from nram.pictures.figures import new_figure
from nram.pictures.shapes import COLOURS, colour

SIZES = (10, 20, 50)


def report(soft=(0.0, 1.0), hard=(0.0, 1.0)) -> dict:
    """What `nram eval` reports. Errors and shares of exact instances are the same for all sizes."""
    scores = {mode: {"error": error, "exact": exact} for mode, (error, exact) in (("soft", soft), ("hard", hard))}
    curve = [{"max_complexity": n, **scores} for n in SIZES]
    return {"task": "copy", "seed": 1, "member": 0, "trained_up_to": 10, "curve": curve}


def metrics() -> list[dict]:
    rows = [
        {"stage": i // 2, "max_complexity": 6, "seconds": 10.0 * i, "median_error": 0.5 / (i + 1)}
        | {
            "best_error": 0.1 if i == 0 else 0.0,
            "best_exact": 0.5 if i == 0 else 1.0,
            "levels": {"1": 3, str(i + 1): 1},
        }
        for i in range(4)
    ]
    return [*rows[:3], {**rows[3], "best_hard": 1.0}]


def curves_of(axes: Axes) -> dict[str, list[float]]:
    return {str(line.get_label()): list(map(float, np.asarray(line.get_ydata()))) for line in axes.lines}


def height(axes: Axes, value: float) -> float:
    """Where a value stands in the axes: 0 at the bottom, 1 at the top."""
    axes.figure.canvas.draw()
    return float(axes.transAxes.inverted().transform(axes.transData.transform((1, value)))[1])


@pytest.mark.parametrize("smallest", [0.3, 0.02, 0.0004, 1e-9])
def test_zero_has_a_place_of_its_own_below_the_smallest_error(smallest):
    axes = new_figure(4, 3).subplots()
    error_axis(axes, [0.0, smallest, float("nan"), float("inf")], "light")
    assert 0.02 < height(axes, 0) < height(axes, max(smallest, 1e-6)) - 0.05
    (band,) = [patch for patch in axes.patches if patch.get_facecolor()[:3] != (1, 1, 1)]
    low, high = (
        height(axes, y) for y in band.get_path().transformed(band.get_patch_transform()).get_extents().intervaly
    )
    assert low < height(axes, 0) < high < height(axes, max(smallest, 1e-6))
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels[0] == "0" and labels[-2:] == ["10%", "100%"] and "1%" in labels


def test_soft_and_hard_errors_and_exactness_are_drawn_and_told_apart():
    *_, right = run_figure(report(soft=(0.02, 0.7)), metrics()).axes
    curves = curves_of(right)
    assert curves["soft: wrong cells"] == [0.02] * 3 and curves["hard: wrong cells"] == [0.0] * 3
    assert curves["soft: instances not exact"] == pytest.approx([0.3] * 3)
    assert curves["hard: instances not exact"] == [0.0] * 3
    looks = {(line.get_linestyle(), line.get_color(), line.get_linewidth()) for line in right.lines[:4]}
    assert len(looks) == 4
    assert right.texts[-1].get_text().strip() == "trained up to here"


def test_levels_have_whole_numbers_the_time_begins_at_0_and_the_legend_lies_on_no_curve():
    rows = [{**row, "seconds": 20.0 + i, "levels": {"1": 4}} for i, row in enumerate(metrics())]
    figure = run_figure(report(), rows)
    figure.draw_without_rendering()
    _, levels, _ = figure.axes
    assert levels.get_xlim()[0] == 0
    assert [tick for tick in levels.get_yticks() if 0.5 <= tick <= 1.5] == [1]
    legend = levels.get_legend()
    assert legend is not None and legend.get_window_extent().y0 >= levels.get_window_extent().y1 - 1


def test_training_shows_best_median_exact_hard_and_levels():
    errors, levels, _ = run_figure(report(), metrics()).axes
    curves = curves_of(errors)
    assert curves["best member: wrong cells, soft"] == [0.1, 0, 0, 0]
    assert curves["best member: examples not exact, soft"] == [0.5, 0, 0, 0]
    assert curves["best member: examples not exact, hard"] == [0.0]  # where it was measured
    assert curves["median member: wrong cells, soft"] == pytest.approx([0.5, 0.25, 0.5 / 3, 0.125])
    assert curves_of(levels)["highest"] == [1, 2, 3, 4] and curves_of(levels)["median"] == [1] * 4
    assert [text.get_text().strip() for text in errors.texts[1:]] == ["stage 1: n ≤ 6"]


def group_metrics() -> list[dict]:
    """Two groups take turns; the second joins after 20 seconds, and is in its second stage at the end."""
    names = ["soft", "soft", "hard$", "soft", "hard$", "hard$"]
    return [
        {
            "group": int(name != "soft"),
            "group_name": name,
            "stage": int(i == 5),
            "max_complexity": 5,
            "median_error": 0.9,
        }
        | {
            "seconds": 10.0 * (i + 1),
            "best_error": 0.5 / (i + 1),
            "best_hard": None if i == 0 else i / 5,
            "levels": {"1": 8},
        }
        for i, name in enumerate(names)
    ]


def test_groups_have_a_colour_each_and_show_when_they_trained(tmp_path):
    figure = run_figure(report(), group_metrics(), "light")
    errors, turns, _ = figure.axes
    soft, hard = (colour(ink, "light") for ink in ("read", "written"))
    drawn = [line for line in errors.lines if len(np.asarray(line.get_xdata()))]
    assert [(line.get_color(), line.get_linestyle(), np.asarray(line.get_xdata()).tolist()) for line in drawn] == [
        (soft, "-", [10, 20, 40]), (soft, "--", [20, 40]), (hard, "-", [30, 50, 60]), (hard, "--", [30, 50, 60]),
    ]  # fmt: skip
    assert np.asarray(drawn[3].get_ydata()).tolist() == pytest.approx([0.6, 0.2, 0.0])
    assert [label.get_text() for label in turns.get_yticklabels()] == ["soft", r"hard\$"]
    bars = [path.get_extents().bounds for bars in turns.collections for path in bars.get_paths()]
    assert [(left, width) for left, _, width, _ in bars] == [(0, 20), (30, 10), (20, 10), (40, 10), (50, 10)]
    assert bars[-1][3] > 2 * bars[0][3]  # a later stage is thicker
    plot_run(report(), group_metrics(), tmp_path / "run.svg")
    page = (tmp_path / "run.svg").read_text()
    for name in ("read", "written"):
        assert f"stroke: {COLOURS[name][0]}" in page and f"stroke:{COLOURS[name][1]}!important" in page


def test_turns_that_follow_one_another_quickly_become_one_bar():
    rows = [{**group_metrics()[i % 2 + 1], "seconds": float(i), "stage": 0} for i in range(3000)]
    _, turns, _ = run_figure(report(), rows).axes
    assert [len(bars.get_paths()) for bars in turns.collections] == [1, 1]


@pytest.mark.parametrize(
    "rows", [[], [{k: v for k, v in row.items() if k not in ("levels", "best_exact")} for row in metrics()]]
)
def test_a_run_without_metrics_or_with_those_of_an_older_version_is_drawn(tmp_path, rows):
    for suffix, magic in ((".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")):
        plot_run(report(), rows, tmp_path / f"run{suffix}")
        assert (tmp_path / f"run{suffix}").read_bytes().startswith(magic)
    with pytest.raises(NramError, match="cannot write the plot"):
        plot_run(report(), rows, tmp_path / "run.nonsense")


@pytest.mark.parametrize("levels", [{"1": 10**15, "2": 1}, {"x": 1, "٣": 2}, {"1": 0}, {"9" * 30: 1, "4": -1}])
def test_levels_of_a_damaged_file_take_neither_memory_nor_time(levels):
    rows = [{**row, "levels": levels} for row in metrics()]
    assert len(run_figure(report(), rows).axes) == 3


def test_the_figure_has_a_light_and_a_dark_form(tmp_path):
    plot_run(report(), metrics(), tmp_path / "run.svg")
    page = (tmp_path / "run.svg").read_text()
    for name in ("ground", "ink", "asked"):
        assert f"fill: {COLOURS[name][0]}" in page and f"fill:{COLOURS[name][1]}!important" in page
    for name in ("read", "written", "kept"):
        assert f"stroke: {COLOURS[name][0]}" in page and f"stroke:{COLOURS[name][1]}!important" in page
    plot_run(report(), metrics(), tmp_path / "run.svg", "dark")
    assert COLOURS["ground"][0] not in (tmp_path / "run.svg").read_text()
