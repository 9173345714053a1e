"""`nram eval`: the judgement of a trained member."""

import json
import pickle
import shutil

import pytest

from nram.api import evaluate, load_run
from nram.display import shortened

CURVE = [3, 10, 20, 30, 40, 50]


@pytest.fixture(scope="module")
def run(trained, tmp_path_factory):
    """A copy of the trained run, to write into."""
    return shutil.copytree(trained.path, tmp_path_factory.mktemp("judged") / "run")


@pytest.fixture(scope="module")
def judged(nram, run):
    """Its JSON, of few instances: it is the form that is looked at."""
    outcome = nram.run("eval", run, "--count", "8", "--json")
    assert outcome.status == 0, outcome.err
    return outcome


def test_json_says_whether_the_member_is_perfect_and_under_which_limits(judged):
    report = judged.value
    assert (report["task"], report["member"], report["instances"], report["trained_up_to"]) == ("access", 0, 8, 3)
    rows = [(row["mode"], row["max_complexity"], row["limit"]) for row in report["perfection"]]
    places = [("soft", 3), ("hard", 3), ("hard", 50)]
    assert rows == [(*place, limit) for place in places for limit in ("T", "2T", "20n+200")]
    for name, place in zip(("soft", "hard", "far"), places, strict=True):
        exact = [row["exact"] for row in report["perfection"] if (row["mode"], row["max_complexity"]) == place]
        assert report["perfect"][name] == (exact == [1.0, 1.0, 1.0])


def test_the_best_of_a_perfect_run_is_perfect_here_too(judged, trained):
    assert trained.outcome.value["perfect_members"] > 0
    assert judged.value["perfect"] == {"soft": True, "hard": True, "far": True}


def test_the_curve_reaches_50_with_error_and_exact_match_soft_and_hard(judged):
    curve = judged.value["curve"]
    assert [point["max_complexity"] for point in curve] == CURVE
    for point in curve:
        for mode in ("soft", "hard"):
            assert {"error", "exact"} <= set(point[mode])
            assert point[mode]["error"] + point[mode]["exact"] == pytest.approx(1)  # access has one output cell


def test_the_report_and_its_plot_are_left_in_the_run(judged, run):
    plot = run / "eval.png"
    assert judged.value["plot"] == str(plot)
    assert plot.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    stored = json.loads((run / "eval.json").read_text())
    assert {**stored, "plot": str(plot)} == judged.value


@pytest.fixture
def judged_before(judged, monkeypatch):
    """The judgement itself is not made again: it takes longest."""
    report = {name: value for name, value in judged.value.items() if name not in ("run", "member", "plot")}
    monkeypatch.setattr("nram.training.report.evaluation_report", lambda *arguments, **settings: report)


def test_figures_that_cannot_be_saved_are_shown_and_saved_elsewhere(
    judged, judged_before, call, run, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    copy = shutil.copytree(run, tmp_path / "run")
    (copy / "eval.json").unlink()
    (copy / "eval.json").symlink_to("/dev/full")
    outcome = call("eval", copy, "--count", "8")
    assert outcome.status == 1
    (elsewhere,) = tmp_path.glob("eval-*.json")
    figures = json.loads(elsewhere.read_text())
    assert figures["curve"] == judged.value["curve"]
    assert json.loads(outcome.err.partition(f"it was saved as {elsewhere} instead:\n\n")[2]) == figures


@pytest.mark.slow
def test_python_evaluates_as_the_command_does(judged, run):
    evaluation = evaluate(run, count=8, device="cpu")
    assert {**evaluation.report, "plot": judged.value["plot"]} == judged.value


def test_an_evaluation_in_python_shows_itself(judged, judged_before, run, tmp_path):
    evaluation = load_run(run).evaluate(count=8, device="cpu")
    assert {**evaluation.report, "plot": judged.value["plot"]} == judged.value
    assert evaluation.perfect and evaluation == evaluate(run, count=8, device="cpu")
    assert "hard at n = 50: yes" in str(evaluation) and "hard at n = 50: yes" in evaluation._repr_html_()
    for words in (str(evaluation), evaluation._repr_html_()):  # the same n, two figures
        assert (
            "half of the instances have the largest n" in words and "every n up to the largest equally often" in words
        )
    assert repr(evaluation) == shortened(f"<Evaluation of access, member 0 of {run}: perfect>", 120)
    evaluation.draw(tmp_path / "curve.svg")
    assert (tmp_path / "curve.svg").read_text().startswith("<?xml")
    assert pickle.loads(pickle.dumps(evaluation)) == evaluation


def test_progress_goes_to_standard_error_as_lines(judged):
    lines = judged.err.splitlines()
    assert lines[0].startswith("[0/21] soft, n up to 3")
    assert lines[-1] == "[21/21] done"
    assert judged.out.count("\n") == 1


def test_text_gives_the_same_figures_and_names_the_plot(judged, judged_before, call, run, tmp_path):
    plot = tmp_path / "curve.svg"
    outcome = call("eval", run, "--count", "8", "--plot", plot)
    assert outcome.status == 0, outcome.err
    assert "perfect at the trained complexity: soft yes, hard yes; hard at n = 50: yes" in outcome.out
    forms = {"error": ".4f", "exact": ".2%"}
    for point in judged.value["curve"]:
        figures = [f"{point[mode][name]:{form}}" for mode in ("soft", "hard") for name, form in forms.items()]
        assert [str(point["max_complexity"]), *figures] in [line.split() for line in outcome.out.splitlines()]
    assert outcome.out.rstrip().endswith(f"curve: {plot}")
    assert plot.read_text().startswith("<?xml")


def test_a_plot_in_no_folder_is_refused_before_anything_is_evaluated(call, run, tmp_path):
    outcome = call("eval", run, "--count", "8", "--plot", tmp_path / "no folder" / "x.png")
    assert (outcome.status, outcome.out) == (2, "")
    (line,) = outcome.err.splitlines()
    assert f"there is no folder {tmp_path / 'no folder'}; make it, or choose another --plot" in line


def test_a_plot_that_cannot_be_written_fails_with_1_and_the_figures_are_kept(judged_before, call, run, tmp_path):
    (run / "eval.json").unlink()
    outcome = call("eval", run, "--count", "8", "--plot", tmp_path / "x.nonsense")
    assert (outcome.status, outcome.out) == (1, "")
    assert f"cannot write the plot {tmp_path / 'x.nonsense'}" in outcome.err
    assert json.loads((run / "eval.json").read_text())["task"] == "access"


def test_the_figures_of_a_run_that_cannot_be_written_to_are_printed(judged, judged_before, call, run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "run")
    for name in ("eval.json", "eval.png"):
        (copy / name).unlink(missing_ok=True)
        (copy / name).symlink_to(f"/sys/{name}")  # not even root may make a file there
    outcome = call("eval", copy, "--count", "8", "--json")
    assert outcome.status == 0, outcome.err
    assert f"{copy / 'eval.json'} cannot be written; the figures are only printed" in outcome.err
    assert outcome.value == {**judged.value, "run": str(copy), "plot": None}
    outcome = call("eval", copy, "--count", "8", "--plot", tmp_path / "curve.svg")
    assert outcome.status == 0 and outcome.out.rstrip().endswith(f"curve: {tmp_path / 'curve.svg'}")


def test_solve_runs_the_discrete_program_on_one_instance(nram, call, run):
    outcome = nram.run("eval", run, "--solve", "50", "--seed", "7", "--json")
    solved = outcome.value
    (instance,) = call("sample", "access", "--complexity", 50, "--seed", 7, "--json").value
    assert (solved["input"], solved["expected"], solved["cells"]) == tuple(
        instance[name] for name in ("input", "output", "cells")
    )
    right = [solved["memory"][cell] == solved["expected"][cell] for cell in solved["cells"]]
    assert solved["right"] == all(right)
    assert outcome.status == (0 if all(right) else 1)
    assert solved["halted"] and 2 <= solved["steps"] < 20 * 50 + 200


def test_solve_in_words_marks_the_output_cells(nram, run):
    outcome = nram.run("eval", run, "--solve", "4")
    lines = outcome.out.splitlines()
    assert lines[0].startswith("access: k, A[0..n-1]")
    assert lines[2] == "input" and lines[4] == "output"
    assert lines[5].lstrip().startswith("0: [")
    assert lines[-1].startswith("right: 1 output cells, ") and lines[-1].endswith("steps, halted by itself")


def test_a_member_that_does_not_exist_is_refused_with_those_that_do(call, run, bytes_of):
    before = bytes_of(run)
    refused = call("eval", run, "--member", 99, "--json")
    assert (refused.status, refused.out) == (2, "")
    assert "no member 99: it has 0, 1, 2, 3, 4, 5, 6, 7" in refused.err
    assert bytes_of(run) == before


def test_a_run_without_members_says_how_to_finish_it(call, interrupted):
    refused = call("eval", interrupted.path)
    assert (refused.status, refused.out) == (2, "")
    assert f"nram train access --out '{interrupted.path}' --resume" in refused.err
