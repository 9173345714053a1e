"""Some kills of the command line, with processes and signals. `make kills` does many."""

from __future__ import annotations

import pytest

from kills.jobs import jobs_in
from kills.trials import Trials
from kills.trouble import TROUBLES, can_mount


def test_learning_that_is_killed_and_locked_out_ends_in_the_same_bits(tmp_path):
    trials = Trials(tmp_path, jobs=["learn"], troubles=["read-only"])
    summary = trials.run(2)
    assert summary["kills"] >= 2
    # A signal in the moment when a program is found makes the job end with it, perhaps before it is shortened.
    assert summary["same_bits"] + summary["found_early"] == summary["trials"]


@pytest.mark.slow
def test_every_job_that_is_killed_ends_in_the_same_bits_with_every_trouble(tmp_path):
    trouble = [name for name in TROUBLES if name != "full disk" or can_mount(tmp_path)]
    lines = []
    trials = Trials(tmp_path, seed=5, troubles=trouble)
    summary = trials.run(30, lines.append)
    assert summary["trials_with_problems"] == 0, [line["problems"] for line in lines]
    assert set(summary["kills_by_job"]) == set(jobs_in(tmp_path))


@pytest.mark.slow
def test_other_bits_are_noticed(tmp_path):
    """A control: the ending to compare with is another one."""
    trials = Trials(tmp_path, jobs=["learn"], troubles=["none"])
    undisturbed = trials._undisturbed

    def altered(job):
        undisturbed(job)
        trials.endings[job.name] = {**trials.endings[job.name], "learned/program.svg": []}

    trials._undisturbed = altered
    summary = trials.run(1)
    assert (summary["same_bits"], summary["trials_with_problems"]) == (0, 1)
