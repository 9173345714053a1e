"""The figure of a study."""

from __future__ import annotations

from pathlib import Path

import pytest

from nram.cluster.table import share
from nram.pictures.shares import plot_shares


def test_a_study_without_a_trial_that_ended_is_not_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    rows = [{"task": "copy", "label": label, "learned": share(0, 0)} for label in ("g0", "g1")]
    plot_shares(rows, "study", tmp_path / "shares.svg")
    assert not (tmp_path / "shares.svg").exists()
    assert "shares.svg is not drawn: no trial has ended" in capsys.readouterr().err
    plot_shares([rows[0], {**rows[1], "learned": share(1, 2)}], "study", tmp_path / "shares.svg")
    text = (tmp_path / "shares.svg").read_text()
    assert "copy g1 (2)" in text and "copy g0" not in text
