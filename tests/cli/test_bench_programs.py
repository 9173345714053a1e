"""`nram bench programs`: native code and its rivals, in one run."""

import shutil

import pytest

TASKS = {"access", "increment", "copy", "reverse", "swap"}


@pytest.fixture(scope="module")
def measured(nram):
    return nram.run("bench", "programs", "--quick", "--json")


def test_every_task_has_times_of_all_rivals_and_their_ratios(measured):
    assert measured.status == 0, measured.err
    rows = measured.value["tasks"]
    assert {row["task"] for row in rows} == TASKS
    for row in rows:
        assert row["native"] > 0 and row["numpy"] > 0 and row["interpreter_ns_per_step"] > 0
        if shutil.which("gcc"):
            assert row["native_to_c_scalar"] == pytest.approx(row["native"] / row["c_scalar"])
            assert row["native_to_c_fastest"] == pytest.approx(row["native"] / row["c_fastest"])


def test_the_time_of_a_step_is_given_up_to_ten_million_cells(measured):
    sizes = [row["memory_size"] for row in measured.value["step"]]
    assert sizes[0] == 100 and sizes[-1] == 10_000_000
    assert all(row["local_ns"] > 0 and row["scattered_ns"] > 0 for row in measured.value["step"])


def test_without_a_compiler_the_rest_is_still_measured(nram):
    outcome = nram.run("bench", "programs", "--quick", PATH="")
    assert outcome.status == 0, outcome.err
    assert "no C" in outcome.out
    assert all(task in outcome.out for task in TASKS)
