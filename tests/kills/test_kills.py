"""Some kills of the command line, with processes and signals. `make kills` does many."""

from __future__ import annotations

import pytest

from kills.jobs import jobs_in
from kills.trials import Trial, Trials
from kills.trouble import TROUBLES, ReadOnly, can_mount
from nram.process import SAME_SECONDS


@pytest.mark.slow
def test_learning_that_is_killed_and_locked_out_ends_in_the_same_bits(tmp_path):
    trials = Trials(tmp_path, jobs=["learn"], troubles=["read-only"])
    summary = trials.run(2)
    assert summary["kills"] >= 2
    # A signal in the moment when a program is found makes the job end with it, perhaps before it is shortened.
    assert summary["same_bits"] + summary["found_early"] == summary["trials"]


def test_kills_are_counted_by_what_they_did(tmp_path):
    trials = Trials(tmp_path)
    assert {trials._pause() > SAME_SECONDS for _ in range(50)} == {False, True}
    twice = ("SIGINT", "SIGINT")
    kills = [(twice, 1, 0.01), (twice, 1, SAME_SECONDS + 0.1), (twice, 0, SAME_SECONDS + 0.1), (("SIGKILL",), -9, 0.0)]
    kills = [{"signals": signals, "status": status, "pause": pause} for signals, status, pause in kills]
    summary = trials._summary([Trial(0, "learn", "none", kills)], 1.0)
    assert (summary["kills"], summary["done_all_the_same"]) == (3, 1)
    assert (summary["killed_twice"], summary["killed_by_second_request"]) == (2, 1)


@pytest.mark.parametrize("harm", ["tear", "remove"])
def test_files_that_a_failure_harms_are_noticed(tmp_path, harm):
    """A control: the trouble itself tears a file, or removes it."""

    class Harm(ReadOnly):
        def begin(self):
            report = self.place / "learned" / "report.json"
            if harm == "tear":
                report.write_text("{")
            else:
                report.unlink(missing_ok=True)
            super().begin()

    trials = Trials(tmp_path, jobs=["learn"])
    (job,) = trials.jobs
    trials.durations[job.name] = 0.0  # the trouble begins at once
    with Harm(tmp_path / "place") as trouble:
        (trouble.place / "learned").mkdir()
        (trouble.place / "learned" / "report.json").write_text("{}")
        trial = Trial(0, job.name, "read-only")
        trials._fail(job, trouble, trial)
    wanted = {"tear": "report.json is damaged", "remove": "lost ['learned/report.json']"}[harm]
    assert trial.failures == 1 and [one for one in trial.problems if one.endswith(wanted)]


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
    for _ in range(4):  # on a busy machine a program may be found early, which is not compared
        summary = trials.run(1) if summary["found_early"] else summary
    assert (summary["same_bits"], summary["trials_with_problems"]) == (0, 1)
