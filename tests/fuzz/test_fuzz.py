"""The fuzzing itself: planted bugs are found, crashes are counted, and an input can be made again by its number."""

import json
from pathlib import Path

import pytest

from fuzz import __main__ as command
from fuzz.kinds import KINDS
from fuzz.planted import MISSING, PLANTED, WORDS
from fuzz.runner import Fuzzing, attempt, to_table


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """The summary of a run over inputs with planted bugs and a few mutated ones, and the folder of the findings."""
    save = tmp_path_factory.mktemp("findings")
    inputs = {MISSING: 5, PLANTED: len(WORDS) + 5}
    fuzzing = Fuzzing(inputs, seed=3, save=save, wall_seconds=7, say=lambda text: None)
    return fuzzing.run(), save


def test_every_planted_bug_is_found(planted):
    summary, _ = planted
    found = {finding["first"]: (finding["verdict"], finding["what"]) for finding in summary["findings"]}
    assert {WORDS[index]: words for index, words in found.items()} == {
        "bug": ("tracebacks", "ValueError in planted.py, use"),
        "abort": ("crashes", "exit status -6"),
        "hang": ("over_limits", "no answer within 7 seconds"),
        "warning": ("tracebacks", "RuntimeWarning in planted.py, use"),
        "escape": ("tracebacks", "a refusal with control characters"),
        "exit": ("tracebacks", "SystemExit in planted.py, use"),
        "memory": ("over_limits", "more than 1024 MiB"),
        "refused": ("tracebacks", "a valid input is refused: planted"),
    }


def test_the_inputs_after_a_crash_are_tried_too(planted):
    counts = planted[0]["kinds"]["planted"]
    del counts["seconds"]
    assert counts == {
        "inputs": len(WORDS) + 5,
        "accepted": 2,
        "refused": 5,
        "tracebacks": 5,
        "crashes": 1,
        "over_limits": 2,
    }
    assert "| planted | 15 | 2 | 5 | 5 | 1 | 2 |" in to_table(planted[0])


def test_a_kind_that_needs_a_missing_package_is_named(planted):
    counts = planted[0]["kinds"]["missing"]
    assert (counts["inputs"], counts["missing"]) == (0, "no_such_package")


def test_inputs_of_findings_are_saved_with_what_happened(planted):
    folder = planted[1] / f"planted-3-{WORDS.index('abort')}"
    assert (folder / "word").read_text() == "abort"
    assert "Fatal Python error: Aborted" in (folder / "finding.txt").read_text()


@pytest.mark.parametrize("name", KINDS)
def test_valid_inputs_are_accepted(name):
    kind = KINDS[name]
    for index in range(len(kind.valid())):
        verdict = attempt(kind, 0, index)
        assert verdict.verdict == "accepted", verdict


@pytest.mark.parametrize("name", KINDS)
def test_an_input_depends_on_its_number_and_the_seed_alone(name):
    kind = KINDS[name]
    first, numbers = len(kind.valid()), range(40)
    inputs = [kind.input(5, first + number) for number in numbers]
    assert [kind.input(5, first + number) for number in reversed(numbers)] == inputs[::-1]
    assert len({repr(one) for one in inputs}) > 30
    assert [kind.input(6, first + number) for number in numbers] != inputs


def test_everything_that_is_read_is_accepted_or_refused(tmp_path):
    """The same inputs at every run. `make fuzz` tries many more."""
    summary = Fuzzing({kind: kind.quick for kind in KINDS.values()}, save=tmp_path, say=lambda text: None).run()
    assert summary["findings"] == []
    for name, counts in summary["kinds"].items():
        assert counts["inputs"] == KINDS[name].quick, name
        assert counts["accepted"] > 0 and counts["refused"] > 20, name


def test_the_documented_figures_are_those_of_the_summary():
    summary = json.loads(Path(__file__).with_name("summary.json").read_text())
    assert summary["findings"] == [] and set(summary["kinds"]) == set(KINDS)
    page = Path(__file__).parents[2] / "docs" / "security.md"
    assert to_table(summary) in page.read_text()


def test_a_single_input_is_shown_and_tried(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["fuzz", "--kind", "memories", "--only", "0"])
    assert command.main() == 0
    shown = capsys.readouterr().out
    assert "---- memory.txt" in shown and "---- accepted" in shown
