"""`nram test` and `nram.test`: what is right, the smallest that is wrong, and steps against size."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path

import pytest
from support.program_cases import IDLING_MERGE

import nram
from nram.programs.interpret import interpret
from nram.programs.testing import run_test
from nram.programs.text import from_text
from nram.tasks.layout import Layout

FIRST = """nram program 1
name: first
layout: ->first values[] 0
registers: r1
always:
    o1 = READ(1)
    WRITE(0, o1)
    halt
"""


@pytest.fixture
def first(tmp_path: Path) -> Path:
    path = tmp_path / "first.nram"
    path.write_text(FIRST)
    return path


def test_a_right_program_on_its_task(call):
    outcome = call("test", "reverse@searched", "reverse", "--complexity", "12", "--count", "60", "--json")
    assert (outcome.status, outcome.err) == (0, "")
    value = outcome.value
    assert list(value)[:2] == ["right", "wrong"] and (value["right"], value["wrong"], value["halted"]) == (60, 0, 60)
    assert value["sizes"][1] == 12 and [12, 14] in value["steps"] and value["smallest_wrong"] is None
    assert value["growth"]["kind"] == "linear" and value["growth"]["words"] == "about n + 2 steps"
    shown = call("test", "reverse@searched", "reverse", "--complexity", "12", "--count", "60").out
    assert "RIGHT on all 60, under every step limit tested." in shown and "It takes about n + 2 steps" in shown
    assert "halts by itself within the limit on every one" in shown and max(map(len, shown.splitlines())) <= 80
    assert call("test", "reverse@searched", "reverse", "--complexity", "12", "--count", "60").out == shown


def test_a_program_that_idles_is_right_too(call):
    outcome = call("test", str(IDLING_MERGE), "merge", "--complexity", "5", "--count", "40")
    assert outcome.status == 0 and "halts by itself within the limit on none" in outcome.out


def test_a_wrong_program_shows_its_smallest_failure_and_how_to_watch_it(call):
    outcome = call("test", "copy", "reverse", "--complexity", "9", "--count", "100", "--json")
    assert outcome.status == 1 and outcome.value["right"] + outcome.value["wrong"] == 100
    wrong = outcome.value["smallest_wrong"]
    assert wrong["size"] == 2  # one number reversed is the same
    ending = interpret(nram.load_program("copy"), wrong["input"], 8)
    assert ending.memory == wrong["obtained"] and any(
        wrong["obtained"][c] != wrong["expected"][c] for c in wrong["cells"]
    )
    shown = call("test", "copy", "reverse", "--complexity", "9", "--count", "100")
    assert shown.status == 1 and f"WRONG on {outcome.value['wrong']} of 100" in shown.out
    assert f'Watch it: nram trace copy --memory "{" ".join(map(str, wrong["input"]))}" --max-steps 8' in shown.out


def test_a_user_defined_task(call):
    file = Path(nram.__file__).parent / "examples"
    outcome = call("test", file / "programs/sum.nram", file / "tasks/sum.py", "--count", "30", "--json")
    assert (outcome.status, outcome.value["right"]) == (0, 30)


def test_a_program_that_must_be_stopped_is_judged_at_its_limit():
    program = from_text(
        "nram program 1\nname: flicker\nlimit: 1, needed\nregisters: r1\n"
        "when r1 = 0:\n o1 = READ(1)\n WRITE(0, o1)\n r1 := 1\nelse:\n WRITE(0, 0)\n"
    )
    examples = [([0, 2, 0], [2, 2, 0]), ([0, 1, 0, 3], [1, 1, 0, 3])]
    assert nram.test(program, examples).right == 2
    free = nram.test(replace(program, needs_limit=False), examples)
    assert free.wrong == 2 and free.score.smallest is not None and free.score.smallest.only_at_limit


# ---- files


def test_a_file_with_named_columns_is_laid_out_as_the_program_wants_it(call, first, tmp_path):
    file = tmp_path / "more.csv"
    file.write_text("values,first\n3 1 2,3\n2,2\n5 4,9\n40,40\n3 1 2,3\n")
    outcome = call("test", first, file, "--json")
    assert outcome.status == 1 and (outcome.value["right"], outcome.value["wrong"]) == (3, 1)
    wrong = outcome.value["smallest_wrong"]
    assert (wrong["line"], wrong["inputs"], wrong["expected_results"]) == (4, {"values": [5, 4]}, {"first": 9})
    assert wrong["obtained_results"] == {"first": 5}
    shown = call("test", first, file).out
    assert "given    values = 5 4" in shown and "1 repeated example left out" in shown
    file.write_text("values,first\n3 0 2,3\n2,2\n")  # nram alone would choose a layout without a final 0
    outcome = call("test", first, file)
    assert outcome.status == 2 and "values holds a 0, which ends the list" in outcome.err


def test_a_file_of_memories_with_cells_that_count(call, first, tmp_path):
    file = tmp_path / "more.jsonl"
    lines = [{"input": [0, 2, 1], "output": [2, 2, 2]}, {"input": [0, 1, 0], "output": [1, 1, 0]}]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert call("test", first, file, "--cells", "0", "--json").value["wrong"] == 0
    outcome = call("test", first, file, "--cells", "all", "--json")
    assert outcome.status == 1 and (outcome.value["right"], outcome.value["wrong"]) == (1, 1)


def test_steps_that_will_break_the_limit_of_the_file(call, tmp_path):
    file = tmp_path / "reverse.jsonl"
    instances = [one for n in range(1, 7) for one in nram.get_task("reverse").sample(n, 3, seed=n)]
    file.write_text("".join(json.dumps({**one.as_dict(), "steps": 10}) + "\n" for one in instances))
    outcome = call("test", "reverse@searched", file, "--json")
    # Its n + 2 steps exceed 10 from an array of 9 numbers on; with the pointer that is size 10.
    assert outcome.status == 0 and outcome.value["breaks_limit_from"] == 10
    assert "From n = 10 on it may not halt within the step limit." in call("test", "reverse@searched", file).out


@pytest.mark.parametrize(("program", "count"), [("copy", 50), ("listsearch@searched", 60), ("walkbst@searched", 40)])
def test_noisy_steps_of_proven_programs_raise_no_alarm(program, count):
    """The longest runs of a few instances vary by chance. A cubic curve fits them, and says nothing about larger n."""
    task = program.split("@")[0]
    tested = nram.test(nram.load_program(program), task, count=count, complexity=8)
    assert tested.wrong == 0 and tested.breaks is None
    assert "halt within the step limit" not in str(tested) and "n^" not in str(tested)


def test_the_report_says_that_only_halted_runs_were_measured(call, tmp_path):
    program = tmp_path / "sometimes.nram"
    rows = "when r1 > 0:\n halt\notherwise:\n a = READ(1)\n WRITE(0, a)\n b = READ(2)\n r1 := b\n"
    program.write_text(f"nram program 1\nregisters: r1\n\n{rows}")
    file = tmp_path / "sometimes.jsonl"
    inputs = [[0, a, b, *[1] * n, 0] for n in range(6) for a in (1, 2) for b in (0, 1)]
    lines = [{"input": one, "output": [one[1], *one[1:]], "steps": 9} for one in inputs]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    out = call("test", program, file).out
    assert "RIGHT on all 24" in out and "It halts by itself within the limit on 12 of 24." in out
    assert "It takes 2 steps, measured up to n = 7 in the 12 runs that halted." in out


WRONG = {
    "no such thing": (["copy", "nothing.csv"], "nothing.csv"),
    "no such program": (["nothing", "copy"], "there is no program 'nothing'"),
    "cells of a task": (["copy", "copy", "--cells", "0"], "--cells is for a file of examples"),
    "too small": (["swap", "swap", "--complexity", "1"], "no instances of complexity 1"),
}


@pytest.mark.parametrize("case", WRONG)
def test_bad_usage_says_what_to_change(call, case):
    words, message = WRONG[case]
    outcome = call("test", *words, "--json")
    assert (outcome.status, outcome.out) == (2, "") and message in outcome.err


def test_a_complexity_does_not_go_with_a_file(call, first, tmp_path):
    (tmp_path / "more.csv").write_text("values,first\n3 1 2,3\n")
    outcome = call("test", first, tmp_path / "more.csv", "--complexity", "3")
    assert outcome.status == 2 and "leave it out" in outcome.err


# ---- Python


def test_from_python_by_name_file_task_or_examples(first, tmp_path):
    task = nram.get_task("copy")
    one, other = nram.test("copy", task, count=20, complexity=6), nram.test(nram.load_program("copy"), "copy", count=20)
    assert (one.right, one.wrong) == (20, 0) == (other.right, other.wrong)
    assert nram.test("copy", task.sample(4, 5, seed=0)).right == 5
    tested = nram.test(first, [{"values": [3, 1], "first": 3}, {"values": [2], "first": 1}])
    assert (tested.right, tested.wrong) == (1, 1)
    assert "the examples: 2 examples" in str(tested) and "expected first = 1" in str(tested)


def test_the_result_is_short_as_repr_and_can_be_pickled():
    tested = run_test(nram.load_program("copy"), "reverse", count=30, complexity=6)
    assert len(repr(tested)) < 120 and f"{tested.wrong} wrong" in repr(tested)
    again = pickle.loads(pickle.dumps(tested))
    assert str(again) == str(tested) and again.to_json() == tested.to_json()


def test_a_layout_of_the_user_comes_first(first, tmp_path):
    file = tmp_path / "more.csv"
    file.write_text("values,first\n3 1 2,3\n2,2\n")
    program = replace(nram.load_program(first), layout=Layout.parse("values[] 0 ->first"))
    assert nram.test(program, file).wrong == 2
    assert nram.test(program, file, layout="->first values[] 0").wrong == 0
