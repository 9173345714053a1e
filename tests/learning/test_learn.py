"""From a file to a program and an honest report."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from nram import learn
from nram.cli import main
from nram.errors import NramError
from nram.learning import job as job_module
from nram.learning.by_search import SearchEnd
from nram.learning.callbacks import LearningCallbacks
from nram.learning.job import LearningJob, Method
from nram.learning.judgement import Judgement, score_of
from nram.programs.files import program_from, read_program
from nram.tasks.base import Instance
from nram.tasks.example_files import Example, read_examples


def _last_element(folder: Path) -> Path:
    """The last element of an array goes to cell 0: none of the ten tasks."""
    rng = Random(1)
    lines = []
    for n in range(1, 9):
        for room in range(2, 8):
            values = [rng.randrange(1, n + room) for _ in range(n)]
            start = [0, *values, *[0] * (room - 1)]
            lines.append(json.dumps({"input": start, "output": [values[-1], *start[1:]]}))
    path = folder / "last.jsonl"
    path.write_text("\n".join(lines))
    return path


def _first_element(folder: Path) -> Path:
    """The number in cell 1 goes to cell 0: found at once."""
    rows = [([0, a, *rest, 0], a) for a in (1, 2) for rest in ([], [1], [2], [1, 2], [2, 1, 1])]
    path = folder / "first.jsonl"
    path.write_text("\n".join(json.dumps({"input": m, "output": [a, *m[1:]], "cells": [0]}) for m, a in rows))
    return path


def _unlearnable(folder: Path) -> Path:
    """Small examples that a trick fits, and larger ones that follow no rule."""
    small = [([0, a, 0, 0, 0, 0, 0, 0], a) for a in range(1, 6)]
    large = [([0, 1, 2, 3, 0, 0, 0, 0], 7), ([0, 1, 2, 4, 0, 0, 0, 0], 0), ([0, 1, 2, 5, 0, 0, 0, 0], 6)]
    rows = [{"input": start, "output": [value, *start[1:]], "cells": [0]} for start, value in small + large]
    path = folder / "unlearnable.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


@pytest.fixture(scope="module")
def learned(tmp_path_factory) -> tuple[Path, Path]:
    """A file of examples, and the folder of what was learned from it."""
    folder = tmp_path_factory.mktemp("last")
    path = _last_element(folder)
    assert (
        main(
            [
                "learn",
                str(path),
                "--workers",
                "1",
                "--budget",
                "120",
                "--alternatives",
                "1",
                "--out",
                str(folder / "out"),
            ]
        )
        == 0
    )
    return path, folder / "out"


def test_a_problem_that_is_no_task_becomes_a_program(learned):
    path, out = learned
    program = read_program(out / "program.json")
    assert program == read_program(out / "program.nram")
    assert (out / "program.svg").read_text().startswith("<svg")
    rng = Random(5)
    for n in (1, 5, 20):  # fresh ones, and larger than any example
        values = [rng.randrange(1, n + 3) for _ in range(n)]
        result = program.run([0, *values, 0, 0])
        assert result.halted and result.memory[0] == values[-1]
    card = dict(program.made)
    assert program.origin == "searched" and card["command"].startswith("nram learn")
    assert hashlib.sha256(path.read_bytes()).hexdigest() in card["examples"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"trained": [1]}, "trained is [1]"),
        ({"refused_by_held_out": "2"}, "refused_by_held_out is '2'"),
        ({"refused_by_held_out": 1e300}, "refused_by_held_out is 1e+300"),
        ({"examples": []}, "examples is []"),
        ({"program": [1]}, "program is [1]"),
    ],
)
def test_a_report_of_other_types_is_refused(learned, tmp_path, capsys, changed, said):
    path, out = learned
    report = json.loads((out / "report.json").read_text())
    (tmp_path / "report.json").write_text(json.dumps(report | changed))
    assert main(["learn", str(path), "--out", str(tmp_path), "--resume"]) == 1
    captured = capsys.readouterr()
    assert said in captured.err and "choose another --out" in captured.err and captured.out == ""


def test_the_report_says_what_was_shown_and_that_nothing_is_proven(learned, capsys):
    path, out = learned
    report = json.loads((out / "report.json").read_text())
    assert report["found"] and report["proven"] is False and report["halts"]
    assert report["training"]["exact"] == report["training"]["examples"] == 36
    assert report["held_out"]["exact"] == report["held_out"]["examples"] == 12
    assert report["held_out"]["sizes"] == [7, 8] and report["shown_up_to_size"] == 8
    before = (out / "program.json").read_bytes(), (out / "report.json").read_bytes()
    assert main(["learn", str(path), "--out", str(out), "--resume"]) == 0  # finished: nothing is done again
    assert before == ((out / "program.json").read_bytes(), (out / "report.json").read_bytes())
    said = capsys.readouterr().out
    assert "exact on all 36 (sizes 1 to 6)" in said and "exact on all 12 (sizes 7 to 8)" in said
    assert "Nothing beyond these examples is proven" in said and "halts by itself on every example" in said


def test_a_program_that_fits_by_a_trick_is_not_called_found(tmp_path: Path, capsys):
    path, out = _unlearnable(tmp_path), tmp_path / "out"
    words = ["learn", str(path), "--budget", "3", "--workers", "1", "--out", str(out)]
    assert main([*words, "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert not report["found"] and report["training"]["exact"] == 5
    assert report["held_out"]["exact"] < 3 and report["refused_by_held_out"] >= 1
    assert any("trick" in line for line in report["advice"])
    assert any("--resume" in line and "--budget 6" in line for line in report["advice"])
    wrong = report["held_out"]["smallest_wrong"]
    again = read_program(out / "program.json").run(wrong["input"], max_steps=200)
    assert again.memory[0] == wrong["obtained"][0] != wrong["expected"][0]
    # Nothing of what is held out may have come into the search.
    held_out = {tuple(example.instance.input) for example in read_examples(path).examples if example.size == 3}
    state = json.loads((out / "search.json").read_text())
    assert len(held_out) == 3 and not held_out & {tuple(one["input"]) for one in state["counterexamples"]}

    assert main(words) == 2
    assert "--resume" in capsys.readouterr().err
    assert main([*words, "--resume"]) == 1
    said = capsys.readouterr().out
    assert "NOT FOUND" in said and "They helped to choose" in said and "expected" in said
    assert said.startswith("NOT FOUND") and said.index("What may help:") < said.index("The best so far")
    path.write_text(path.read_text() + "\n")
    assert main([*words, "--resume"]) == 2
    assert "other examples" in capsys.readouterr().err


def test_csv_and_jsonl_are_learned_to_the_same_program(learned, tmp_path: Path):
    path, out = learned
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    columns = [",".join(" ".join(map(str, row[key])) for key in ("input", "output")) for row in rows]
    (tmp_path / "last.csv").write_text("\n".join(["input,output", *columns]))
    found = learn(tmp_path / "last.csv", tmp_path / "out", budget=120, method="search", alternatives=1)
    assert found.found and found.program is not None
    assert found.program.states == read_program(out / "program.json").states


def test_a_resumed_search_learns_what_an_undisturbed_one_learns(tmp_path: Path):
    """It is stopped in the middle of a round, which is then searched again: nothing is counted twice."""
    examples = read_examples(Path(__file__).parents[2] / "src/nram/examples" / "files" / "distance.jsonl")
    job = LearningJob(examples, tmp_path / "whole", budget=120, method="search", workers=1, alternatives=2)
    whole = job.run()
    done: list[int] = []

    class Counting(LearningCallbacks):
        def report(self, report):
            done.append(report.chains)

    job = replace(job, folder=tmp_path / "stopped", resume=True)
    stopped = job.run(Counting(), lambda: max(done, default=0) > 0)
    assert stopped.interrupted and not stopped.found and (job.folder / "search.json").exists()
    again = job.run()
    assert whole.program is not None and again.program is not None and whole.search and again.search
    assert (again.program.states, again.search.candidates) == (whole.program.states, whole.search.candidates)
    assert [one.program.states for one in again.kept] == [one.program.states for one in whole.kept]
    assert stopped.search and 0 < stopped.search.candidates < whole.search.candidates
    assert not (job.folder / "search.json").exists()


def test_programs_that_were_refused_before_a_kill_are_counted_after_it(tmp_path: Path):
    """They helped to choose, so the report must know them."""
    job = LearningJob(read_examples(_unlearnable(tmp_path)), tmp_path / "out", method="search", workers=1, resume=True)
    refusals: list[Judgement] = []

    class KilledAfterARefusal(LearningCallbacks):
        def refused(self, judgement):
            refusals.append(judgement)

        def report(self, report):
            if refusals and report.round > 0:
                raise Killed

    with pytest.raises(Killed):
        job.run(KilledAfterARefusal())
    assert not (job.folder / "report.json").exists()
    state = json.loads((job.folder / "search.json").read_text())
    assert 0 < state["refused"] <= len(refusals)
    again = replace(job, budget=0.1).run()  # ends within the first round
    assert again.refused >= state["refused"]
    third = replace(job, budget=0.1).run()  # nothing is counted twice
    assert third.search is not None and third.refused == third.search.refused


class Killed(BaseException):
    """Ends the work as a kill does: nothing catches it."""


def test_learning_that_is_killed_at_any_of_its_last_writes_ends_the_same(tmp_path: Path, monkeypatch):
    examples = read_examples(_first_element(tmp_path))
    job = LearningJob(examples, tmp_path / "whole", budget=120, method="search", alternatives=0)
    whole = job.run()
    assert whole.found
    writes = ["report.json", "program.svg", "program.nram", *(f"{i}.nram" for i in range(1, len(whole.kept) + 1))]
    out, folder = job.folder, tmp_path / "killed"
    job = replace(job, folder=folder, resume=True)
    replace_file = os.replace
    for kill_at in range(len(writes) + 1):  # the last one is program.json
        shutil.rmtree(folder, ignore_errors=True)
        targets: list[str] = []

        def replacing(source, target, kill_at=kill_at, targets=targets):
            if len(targets) == kill_at:
                raise Killed
            targets.append(Path(target).name)
            replace_file(source, target)

        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(os, "replace", replacing)
            job.run()
        assert targets == writes[:kill_at]
        again = job.run()
        assert again.found
        assert {file.name for file in folder.iterdir()} == {file.name for file in out.iterdir()}
        for name in ("program.json", "program.nram"):
            assert read_program(folder / name).states == read_program(out / name).states
        assert (folder / "program.svg").read_bytes() == (out / "program.svg").read_bytes()
        assert json.loads((folder / "report.json").read_text())["search"]["candidates"] > 0


def test_a_learned_program_that_cannot_be_saved_is_shown_and_saved_elsewhere(tmp_path: Path, monkeypatch):
    path = _first_element(tmp_path)
    folder, current = tmp_path / "full", tmp_path / "current"
    folder.mkdir()
    current.mkdir()
    monkeypatch.chdir(current)
    for name in ("report.json", "program.nram"):  # can be opened, and every write fails
        (folder / name).symlink_to("/dev/full")
    with pytest.raises(NramError, match="cannot write .*program.nram: No space left on device") as failure:
        LearningJob(read_examples(path), folder, budget=120, method="search", workers=1, alternatives=0).run()
    (elsewhere,) = current.iterdir()
    program = read_program(elsewhere)
    assert program_from(str(failure.value).partition(f"{elsewhere} instead:\n\n")[2]) == program
    assert score_of(program, read_examples(path).examples).exact


@pytest.mark.slow
def test_training_within_a_budget_ends_with_its_best_program_judged_on_the_examples_as_given(tmp_path: Path, capsys):
    path, out = _last_element(tmp_path), tmp_path / "out"
    status = main(["learn", str(path), "--method", "train", "--budget", "1", "--out", str(out), "--json"])
    report = json.loads(capsys.readouterr().out)
    assert status == (0 if report["found"] else 1) and report["trained"]["runs"] == 1
    program = read_program(out / "program.json")
    assert program.origin == "trained" and "network" in dict(program.made)
    examples = [example for example in read_examples(path).examples if example.size <= 6]
    right = 0
    for example in examples:
        ends = [program.run(example.instance.input, max_steps=steps) for steps in (example.instance.steps, 2000)]
        right += all(end.memory[0] == example.instance.output[0] for end in ends)
    assert right >= report["training"]["exact"]


@pytest.mark.parametrize(
    "method, spent, wanted",
    [
        ("both", 30.0, {"search": 30.0, "training": (60.0, 0.0)}),
        ("both", 75.0, {"search": 0.1, "training": (15.0, 15.0)}),
        ("train", 30.0, {"training": (60.0, 30.0)}),
        ("search", 30.0, {"search": 60.0}),
    ],
)
def test_what_earlier_processes_have_used_of_the_budget_is_of_the_search_first(
    method: Method, spent: float, wanted: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Two thirds of 90 seconds are for the search, where training follows."""
    from nram.learning import by_training

    asked: dict[str, object] = {}

    def search(job: LearningJob, parts: object, comparison: object, seconds: float, *others: object) -> SearchEnd:
        asked["search"] = pytest.approx(seconds, abs=5)
        return SearchEnd(None, (), (), 0, 0, 0, 0.0)

    def train(job: LearningJob, parts: object, seconds: float, *others: object) -> Iterator[object]:
        asked["training"] = pytest.approx((seconds, others[-1]), abs=5)
        yield from ()

    monkeypatch.setattr(job_module, "learn_by_search", search)
    monkeypatch.setattr(by_training, "learn_by_training", train)
    file = read_examples(_first_element(tmp_path))
    LearningJob(file, tmp_path / "out", 90.0, method=method, spent=spent).run()
    assert asked == wanted


def test_cells_that_nobody_asked_about_may_change_but_that_is_told():
    rows = "always:\n a = READ(1)\n WRITE(0, a)\n WRITE(2, 1)\n halt\n"
    program = program_from(f"nram program 1\nregisters: r1\n\n{rows}")
    examples = [
        Example(line, Instance([0, 2, 0], [2, 2, 0], cells, cells, 9), frozenset(cells), False)
        for line, cells in enumerate(([0], [0, 1], [0, 2]), 1)
    ]
    score = score_of(program, examples)
    assert (score.right, score.stray, score.halted) == (2, 2, 3)
    assert score.smallest is not None and score.smallest.example.line == 3 and score.smallest.obtained == [2, 2, 1]


def test_right_only_when_stopped_at_the_limit_is_not_right():
    program = program_from("nram program 1\nregisters: r1\n\nalways:\n a = READ(0)\n b = INC(a)\n WRITE(0, b)\n")
    example = Example(1, Instance([0, 0, 0, 0], [2, 0, 0, 0], [0], [0], 2), frozenset([0]), True)
    score = score_of(program, [example])
    assert (score.right, score.halted) == (0, 0) and score.wrong[0].only_at_limit


def _content(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


BAD_USAGE = {
    "no time": (["--budget", "0"], "--budget 0 leaves no time"),
    "no steps": (["--steps", "many"], "is not a step limit"),
    "no method": (["--method", "guess"], "invalid choice"),
}


@pytest.mark.parametrize("case", BAD_USAGE)
def test_bad_usage_is_refused_before_anything_is_written(case: str, tmp_path: Path, capsys):
    words, told = BAD_USAGE[case]
    out = tmp_path / "out"
    try:
        status = main(["learn", str(_last_element(tmp_path)), "--out", str(out), *words])
    except SystemExit as stopped:
        status = stopped.code
    assert status == 2 and told in capsys.readouterr().err and not out.exists()


def test_a_program_of_somebody_else_is_not_overwritten(tmp_path: Path, capsys):
    (tmp_path / "program.json").write_text("{}")
    assert main(["learn", str(_last_element(tmp_path)), "--out", str(tmp_path)]) == 2
    assert "not learned here" in capsys.readouterr().err and (tmp_path / "program.json").read_text() == "{}"


def test_a_learned_program_is_not_replaced_by_another_job(learned, tmp_path: Path, capsys, monkeypatch):
    """Neither if it was there before, nor if another process has just finished it."""
    path, out = learned
    folder = shutil.copytree(out, tmp_path / "copy")
    words = ["learn", str(path), "--budget", "0.3", "--seed", "2", "--method", "search", "--out"]
    assert main([*words, str(folder)]) == 2
    assert f"{folder} holds earlier work (report.json): go on with it by --resume" in capsys.readouterr().err
    lock, late = job_module.locked, tmp_path / "late"

    def locked_late(place, busy):
        shutil.copytree(out, late, dirs_exist_ok=True)
        return lock(place, busy)

    monkeypatch.setattr(job_module, "locked", locked_late)
    assert main([*words, str(late)]) == 2
    for one in (folder, late):
        assert _content(one) == _content(out)
    assert main([*words, str(folder), "--resume"]) == 0
