"""Early stopping: what training reports, and which trials ASHA stops for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from nram.cluster.plan import Trial
from nram.cluster.spec import EarlyStopping
from nram.cluster.trial import Progress, _Training
from nram.training.callbacks import Report
from nram.training.settings import load_config

Point = tuple[float, int, int, float | None]
"""Seconds, group, stage, and the best share of right answers."""

SOLVED: list[Point] = [
    (24.6, 0, 0, 1.0), (35.7, 0, 1, None), (45.2, 0, 2, None), (52.0, 1, 0, 0.25), (61.0, 0, 2, 0.5)
]  # fmt: skip
STUCK: list[Point] = [(20.0, 0, 0, 0.34), (35.0, 0, 0, 0.3), (50.0, 0, 0, 0.34), (62.0, 0, 0, 0.2)]


def report_of(point: Point) -> Report:
    seconds, group, stage, share = point
    return Report(
        stage=stage, step=25, stage_steps=100, stage_ends=False, max_complexity=5, population=8, levels={1: 8},
        loss=1.0, best_error=0.5, median_error=0.5, best_exact=0.0, solved_soft=0.0, solved_hard=share,
        best_hard=share, best_halted=share, perfect=0, examined=0, failed=None, skipped=0, seconds=seconds,
        example_steps_per_s=1.0, seconds_left=1.0, peak_memory=None, notice=None, group=group,
    )  # fmt: skip


def told_by(points: list[Point], path: Path, restarts: bool = False) -> Iterator[Progress]:
    """What a trial tells of these reports. With restarts, each comes from another process."""
    told: list[Progress] = []
    path.mkdir()
    training = None
    for report in map(report_of, points):
        if training is None or restarts:
            training = _Training(told.append)
            training.started(load_config("copy"), path, "cpu")
        training.report(report)
        with open(path / "metrics.jsonl", "a") as file:
            file.write(json.dumps(asdict(report)) + "\n")
        yield told[-1]


@pytest.mark.parametrize("restarts", [False, True])
def test_what_training_reports_never_falls(tmp_path: Path, restarts: bool):
    """Neither at a new stage, nor by another group, nor when its process starts again."""
    assert [one.right for one in told_by(SOLVED, tmp_path / "run", restarts)] == [1.0, 1.0, 2.0, 2.0, 2.5]
    assert [one.right for one in told_by(STUCK, tmp_path / "stuck", restarts)] == [0.34] * 4


def test_a_trial_starts_again_with_damaged_metrics(tmp_path: Path):
    told: list[Progress] = []
    (tmp_path / "metrics.jsonl").write_text("{\n")
    training = _Training(told.append)
    training.started(load_config("copy"), tmp_path, "cpu")
    training.report(report_of((1.0, 0, 0, 0.5)))
    assert told[0].right == 0.5


@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: pip install 'nram[cluster]'")
def test_asha_stops_trials_that_are_stuck_and_not_the_one_that_is_ahead(tmp_path: Path):
    from nram.cluster.on_ray import _ByTask, _Kept

    early: set[str] = set()
    scheduler = _ByTask(EarlyStopping(grace=30, reduction=2), _Kept(early.add))
    curves = {"stuck-1": STUCK, "stuck-2": STUCK, "stuck-3": STUCK, "solved": SOLVED}
    events: list[tuple[Progress, str]] = []
    for name, points in curves.items():
        events += [(one, name) for one in told_by(points, tmp_path / name)]
    subject = json.dumps(asdict(Trial("copy-1", "train", "copy", 1)))
    trials = {name: SimpleNamespace(trial_id=name, config={"trial": subject}) for name in curves}
    for trial in trials.values():
        scheduler.on_trial_add(None, trial)
    for one, name in sorted(events, key=lambda event: event[0].seconds):
        if name not in early:
            scheduler.on_trial_result(None, trials[name], {**asdict(one), "kind": ""})
    assert "solved" not in early and "stuck-1" in early
