"""The table of a study."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from nram.cluster.display import StudyDisplay
from nram.cluster.plan import Trial
from nram.cluster.table import legend, share, table_rows, table_text
from nram.cluster.trial import Outcome


def test_wilsons_interval():
    assert share(0, 0) == {"of": 0}
    assert share(10, 10) == {"of": 10, "are": 10, "share": 1.0, "from": 0.7225, "to": 1.0}
    assert share(0, 10)["to"] == 0.2775
    assert (share(5, 10)["from"], share(5, 10)["to"]) == (0.2366, 0.7634)


def outcome(trial: Trial, learned: bool, seconds: float) -> Outcome:
    ended = "finished" if learned else "budget"
    return Outcome(
        trial.name, "train", trial.subject, trial.seed, trial.label, trial.settings, "", learned, ended, seconds,
        None, "cpu", {}, "",
    )  # fmt: skip


def test_only_trials_that_have_ended_are_counted():
    trials = [
        Trial(f"copy-{label}-{seed}", "train", "copy", seed, label, {"noise": noise, "batch": 8})
        for label, noise in (("g0", 0), ("g1", 1))
        for seed in range(3)
    ]
    outcomes = {trial.name: outcome(trial, trial.seed == 0, 10.0) for trial in trials[:2]}
    rows = table_rows(trials, outcomes)
    assert [(row["label"], row["trials"], row["learned"]["of"]) for row in rows] == [("g0", 3, 2), ("g1", 3, 0)]
    assert (rows[0]["learned"]["are"], rows[0]["out_of_budget"], rows[0]["median_seconds"]) == (1, 1, 10.0)
    assert legend(rows) == ["g0: noise=0", "g1: noise=1"]
    named = [dict(row, settings={"cull.lexicase": row["label"] == "g0", "modules": "READ"}) for row in rows]
    assert legend(named) == ["g0: cull.lexicase=true", "g1: cull.lexicase=false"]
    text = table_text(rows)
    assert "variant" in text and "9% to 91%" in text


def test_what_is_said_when_a_trial_ends(capsys: pytest.CaptureFixture[str]):
    display = StudyDisplay(Console(file=StringIO()))
    search = Trial("copy-0", "search", "copy", 0)
    ended = replace(outcome(search, False, 2.0), ended="finished")
    display.ended(search, ended)
    display.ended(search, replace(ended, ended="budget"))
    display.ended(replace(search, verb="train"), ended)
    display.ended(search, replace(ended, learned=True))
    said = [line.split(": ")[1].split(" in ")[0] for line in capsys.readouterr().err.splitlines()]
    assert said == ["not found", "not found (budget)", "not learned", "found"]
