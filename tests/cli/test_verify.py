"""`nram verify`: from a program file to a verdict, an exit status, and a program that knows what was shown of it."""

import shlex
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent.parent / "programs"
QUICK = ("--max-n", 2, "--symbolic", 2, "--largest", 20)


def test_a_right_program_is_verified_and_written_with_the_evidence(call, tmp_path):
    out = tmp_path / "copy.nram"
    outcome = call("verify", PROGRAMS / "right/copy.nram", *QUICK, "--out", out)
    assert outcome.status == 0
    assert "RIGHT UNDER EVERY LIMIT" in outcome.out and str(out) in outcome.out
    assert "exhaustive: n = 2, M = 5: 16 inputs" in outcome.err
    header = out.read_text().partition("registers:")[0]
    assert "limits=every halts=yes" in header and "M=every" in header
    again = call("verify", out, *QUICK, "--json")
    assert (again.status, again.value["verdict"]) == (0, "right under every limit")


def test_json_is_one_value_with_everything_that_was_found(call):
    outcome = call("verify", PROGRAMS / "right/swap.nram", *QUICK, "--json")
    assert (outcome.status, outcome.out.count("\n")) == (0, 1)
    value = outcome.value
    assert (value["task"], value["right"], value["counterexample"], value["out"]) == ("swap", True, None, None)
    methods = [(finding["method"], finding["proven"]) for finding in value["findings"]]
    proven, tested = [("inductive", True), ("exhaustive", True), ("symbolic", True)], [("random", False)] * 2
    assert methods == proven + tested


def test_a_wrong_program_fails_with_a_counterexample_that_can_be_repeated(call, tmp_path):
    out = tmp_path / "never.nram"
    program = PROGRAMS / "wrong/fifth_element.nram"
    outcome = call("verify", program, "--max-n", 1, "--symbolic", 5, "--largest", 20, "--out", out)
    assert outcome.status == 1
    assert "WRONG" in outcome.out
    assert not out.exists() and "was not written" in outcome.err
    commands = [line.strip() for line in outcome.out.splitlines() if line.strip().startswith("nram ")]
    assert [shlex.split(command)[1] for command in commands] == ["run", "trace"]
    value = call("verify", program, "--max-n", 1, "--symbolic", 5, "--largest", 20, "--json").value
    example = value["counterexample"]
    repeated = call(*shlex.split(commands[0])[1:], "--json")
    assert repeated.status == 0
    assert repeated.value["memory"] == example["obtained"]
    assert any(example["obtained"][cell] != example["expected"][cell] for cell in example["cells"])
    assert call(*shlex.split(commands[1])[1:]).status == 0


def test_a_program_that_must_be_stopped_is_accepted_loudly(call, tmp_path):
    out = tmp_path / "stopped.json"
    outcome = call("verify", PROGRAMS / "stopped/access.nram", *QUICK, "--out", out)
    assert outcome.status == 0
    assert "RIGHT ONLY AT T(n)" in outcome.out and "MUST BE STOPPED" in outcome.out
    assert "right only when it is stopped at T(n)" in outcome.err
    refused = call("run", out, "--memory", "0 1 0")
    assert refused.status == 2 and "--max-steps" in refused.err


def test_another_task_can_be_named(call):
    outcome = call("verify", PROGRAMS / "right/copy.nram", "--task", "reverse", *QUICK, "--json")
    assert (outcome.status, outcome.value["task"], outcome.value["counterexample"]["complexity"]) == (1, "reverse", 2)


def test_nothing_asked_for_is_no_success(call):
    nothing = ("--max-n", 0, "--symbolic", 0, "--largest", 0, "--no-proof")
    outcome = call("verify", PROGRAMS / "right/copy.nram", *nothing)
    assert outcome.status == 1
    assert "NOTHING SHOWN" in outcome.out and "--budget" in outcome.err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("--task", "copie"), "did you mean copy"),
        (("--budget", "0"), "above 0"),
        (("--budget", "nan"), "above 0"),
        (("--budget", "soon"), "not a number"),
        (("--symbolic", "-1"), "negative"),
        (("--largest", "many"), "not a whole number"),
        (("--no-proof", "--certificate", "copy.json"), "give one of them"),
        (("--certificate", "copy.json"), "there is no certificate 'copy.json'"),
    ],
)
def test_bad_usage_is_refused_with_what_to_change(call, words, hint):
    outcome = call("verify", PROGRAMS / "right/copy.nram", *words)
    assert (outcome.status, outcome.out) == (2, "")
    assert hint in outcome.err


def test_a_program_that_is_none_is_refused(call, tmp_path):
    assert call("verify", tmp_path / "nothing.nram").status == 2
    (tmp_path / "broken.nram").write_text("nram program 1\nregisters: a\nalways:\n    b := 1\n")
    outcome = call("verify", tmp_path / "broken.nram")
    assert outcome.status == 2 and "there is no register 'b'" in outcome.err


def test_a_file_that_cannot_be_written_is_refused_before_the_work(call, tmp_path):
    outcome = call("verify", PROGRAMS / "right/copy.nram", *QUICK, "--out", tmp_path / "no folder" / "copy.nram")
    assert (outcome.status, outcome.out) == (2, "")
    assert "exhaustive:" not in outcome.err
