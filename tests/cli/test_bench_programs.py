"""`nram bench programs`: native code and its rivals, in one run."""

import json
import shutil

import pytest


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("bench") / "native.jsonl"


@pytest.fixture(scope="module")
def measured(nram, out):
    return nram.run("bench", "programs", "--quick", "--tasks", "access,increment,gcd", "--json", "--out", str(out))


def test_every_program_has_times_of_its_own_and_of_all_rivals(measured):
    assert measured.status == 0, measured.err
    rows = measured.value["tasks"]
    assert [(row["subject"], row["program"], row["shape"]) for row in rows] == [
        ("access", "trained", "many"),  # a large instance takes as few steps as a small one
        ("access", "searched", "many"),
        ("increment", "trained", "one"),
        ("increment", "trained", "many"),
        ("increment", "searched", "one"),
        ("increment", "searched", "many"),
        ("gcd", "written", "many"),
    ]
    for row in rows:
        assert row["seconds"] > 0 and row["steps"] > 0 and row["interpreter_ns_per_step"] > 0
        assert ("numpy" in row) == (row["subject"] != "gcd")
        if shutil.which("gcc"):
            assert row["c_scalar"] > 0 and row["c_fastest"] > 0


def test_the_measurements_are_written_one_in_a_line(measured, out):
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert lines == measured.value["tasks"]
    assert all({"subject", "seed", "command", "versions", "device", "seconds"} <= line.keys() for line in lines)


def test_the_time_of_a_step_is_given_up_to_ten_million_cells(measured):
    sizes = [row["memory_size"] for row in measured.value["step"]]
    assert sizes[0] == 100 and sizes[-1] == 10_000_000
    assert all(row["local_ns"] > 0 and row["scattered_ns"] > 0 for row in measured.value["step"])


def test_without_a_compiler_the_rest_is_still_measured(nram):
    outcome = nram.run("bench", "programs", "--quick", "--tasks", "access,gcd", PATH="")
    assert outcome.status == 0, outcome.err
    assert "no C" in outcome.out and "access" in outcome.out and "gcd" in outcome.out


def test_an_unknown_task_is_refused(call):
    outcome = call("bench", "programs", "--tasks", "gdc")
    assert outcome.status == 2
    assert "there is no task 'gdc' to measure: use access" in outcome.err
