"""`nram train`: what it says while it works, and what it leaves behind."""

import itertools
import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

from nram.training.checkpoint import read_description
from nram.training.settings import config_from_dict, load_config

FIGURES = re.compile(
    r"stage (?P<stage>\d) \(n<=3\) step (?P<step>\d+)/\d+"
    r" \| best member ([\d.]+% right as a program up to n = 6, )?level \d of 3, soft error (?P<best>\d\.\d+)"
    r"(, not checked as a program yet)?"
    r"( \| (getting better: [a-z, ]+|no better for \d+:\d\d|right on the whole validation set|\d perfect members?))?"
    r" \| members per level (?P<levels>\d+:\d+( \d+:\d+)*)"
    r" \| median error (?P<median>\d\.\d+), solved (\d soft)?(, )?(\d hard)? of 8"
    r"( \| examined \d members?: \d passed(; failed [^|]+)?)?"
    r" \| \d+:\d\d gone(, about \d+:\d\d left( and examining)?)?"
)


def metrics_of(path: Path) -> list[dict]:
    def refuse(word: str):
        raise ValueError(f"{word} is not JSON")

    lines = (path / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line, parse_constant=refuse) for line in lines]


def test_json_is_one_value_on_standard_output_that_equals_the_result_on_disk(trained):
    assert trained.outcome.out.count("\n") == 1
    result = json.loads((trained.path / "result.json").read_text())
    advice = {"cause": None, "explanation": None, "cures": []}
    assert trained.outcome.value == {**result, "run": str(trained.path), "learned": True, **advice}


def test_a_default_population_learns_access_to_perfection(trained):
    result = trained.outcome.value
    assert (result["task"], result["seed"], result["stages"], result["kept_members"]) == ("access", 1, 2, 8)
    assert result["perfect_members"] >= 2
    assert result["best_validation_exact_hard"] == 1.0


def test_in_a_pipe_progress_is_plain_lines_with_all_figures(trained):
    lines = [line for line in trained.outcome.err.splitlines() if "members per level" in line]
    assert lines
    for line in lines:
        found = FIGURES.fullmatch(line)
        assert found is not None, line
        assert sum(int(pair.split(":")[1]) for pair in found["levels"].split()) == 8
        assert float(found["best"]) <= float(found["median"])
    assert re.search(r"^stage 0 .* step 150/150 ", trained.outcome.err, re.MULTILINE)
    assert "\x1b" not in trained.outcome.err
    assert "stage 1: the best 2 of 8 members go on" in trained.outcome.err
    assert re.search(r"^stage 1 .* \| examined \d members?: \d passed", trained.outcome.err, re.MULTILINE)
    assert len(trained.outcome.err.splitlines()) < 12  # of a run that takes seconds


def test_run_json_holds_configuration_arguments_versions_and_device(trained, nram):
    record = json.loads((trained.path / "run.json").read_text())
    assert config_from_dict(record["config"]) == load_config("access", file=nram.settings, seed=1)
    assert record["arguments"] == [*map(str, nram.train(trained.path)), "--json"]
    assert {"python", "nram", "jax", "numpy"} <= record["versions"].keys()
    assert record["device"] == trained.outcome.value["device"]
    assert record["format"] == 2


def test_metrics_are_json_lines_that_count_the_steps_of_every_stage(trained):
    rows = metrics_of(trained.path)
    steps = [(row["stage"], row["step"]) for row in rows]
    assert steps == sorted(set(steps))
    assert (0, 150) in steps and (1, 40) in steps
    for row in rows:
        assert row["best_error"] <= row["median_error"]
        assert sum(row["levels"].values()) == row["population"] == 8
        assert row["example_steps_per_s"] > 0
    assert rows[-1]["perfect"] >= 2  # which is why the last stage ended before its 400 steps
    assert rows[-1]["step"] < 400


def test_the_best_members_are_kept_with_their_description(trained):
    files = sorted((trained.path / "best").iterdir())
    assert [file.name for file in files] == [f"{rank}.safetensors" for rank in range(8)]
    descriptions = [read_description(file) for file in files]
    perfect = [description["perfect"] for description in descriptions]
    assert perfect == sorted(perfect, reverse=True)
    assert sum(perfect) == trained.outcome.value["perfect_members"]
    for description in descriptions:
        assert description["task"] == "access"
        assert description["config"] == json.loads((trained.path / "run.json").read_text())["config"]
        assert "learning_rate" in description["hyper"]


def test_nothing_half_written_is_left_over(trained):
    names = {str(file.relative_to(trained.path)) for file in trained.path.rglob("*") if file.is_file()}
    members = {f"best/{rank}.safetensors" for rank in range(8)}
    assert names == {"run.json", "metrics.jsonl", "checkpoint.safetensors", "result.json"} | members


def test_a_second_run_into_the_same_folder_is_refused_and_changes_nothing(trained, nram, call, bytes_of):
    before = bytes_of(trained.path)
    refused = call(*nram.train(trained.path))
    assert (refused.status, refused.out) == (2, "")
    assert f"{trained.path} holds a run already" in refused.err
    assert "--resume" in refused.err and "--out" in refused.err
    assert bytes_of(trained.path) == before


def test_resuming_a_finished_run_returns_its_result_and_changes_nothing(trained, call, bytes_of):
    before = bytes_of(trained.path)
    words = ("train", "access", "--out", trained.path, "--resume")
    in_json, in_text = call(*words, "--json"), call(*words)
    assert (in_json.status, in_json.value) == (0, trained.outcome.value)
    assert in_text.status == 0
    assert "finished already" in in_text.err
    assert f"Next: nram eval {trained.path}" in in_text.out
    assert bytes_of(trained.path) == before


def test_a_folder_with_other_things_in_it_is_refused_and_left_alone(tmp_path, call, bytes_of):
    (tmp_path / "thesis.txt").write_text("years of work")
    for resume in ([], ["--resume"]):
        refused = call("train", "access", "--out", tmp_path, *resume)
        assert refused.status == 2
        assert f"{tmp_path} is not empty" in refused.err
    assert bytes_of(tmp_path) == {"thesis.txt": b"years of work"}


def test_a_population_that_does_not_fit_is_refused_before_anything_is_written(tmp_path, call):
    out = tmp_path / "run"
    words = ("train", "access", "--out", out, "--set")
    refused = call(*words, "population=65536", "--set", "hidden=1024")
    assert (refused.status, refused.out) == (2, "")
    assert not out.exists()
    for group, stage in itertools.product((0, 1, 2), (0, 1)):
        setting = rf"groups\.{group}\.stages\.{stage}\.population"
        found = re.search(rf"stage {stage} .* GiB are free: use --set {setting}=(\d+)", refused.err)
        assert found is not None
        assert 1 <= int(found[1]) < 65536


def test_a_run_without_a_perfect_member_says_what_those_examined_failed(tmp_path, trained, call):
    path = tmp_path / "run"
    shutil.copytree(trained.path, path)
    failed = [{"part": "far", "limit": "2T", "members": 3}, {"part": "soft", "limit": "20n+200", "members": 1}]
    result = {**json.loads((path / "result.json").read_text()), "perfect_members": 0, "examined_members": 4}
    (path / "result.json").write_text(json.dumps({**result, "failed_examinations": failed}))
    words = ("train", "access", "--out", path, "--resume")
    status, said, _ = call(*words)
    assert status == 1  # as when it ended
    in_json = call(*words, "--json")
    assert (in_json.status, in_json.value["learned"], in_json.value["cause"]) == (1, False, "does not halt")
    first, *_ = in_json.value["cures"]
    assert f"  1. {first['text']}\n     {first['command']}\n" in said and f"More: nram doctor {path}\n" in said
    said = " ".join(said.split())
    assert "3 of 4 failed as a discrete program (hard) at n = 50, first under 2T" in said
    assert "1 of 4 failed as the continuous machine (soft) at the trained size, first under 20n+200" in said


def test_members_that_diverge_are_counted_and_the_metrics_stay_json(tmp_path, nram):
    path = tmp_path / "run"
    diverging = ("--set", "learning_rate=1e38", "--set", "steps=40")
    outcome = nram.run(*nram.train(path), *diverging)
    assert outcome.status == 1, outcome.err
    assert "No member is perfect yet" in outcome.out
    assert "Training diverged" in outcome.out and "A lower learning rate" in outcome.out
    assert ".md" not in outcome.out  # pip installs no docs
    assert metrics_of(path)[-1]["skipped"] > 0
    assert "updates skipped: not finite" in outcome.err


def test_a_terminal_shows_a_live_panel_of_stages_and_levels(interrupted, nram, tmp_path, trained, same_end):
    path = tmp_path / "run"
    shutil.copytree(interrupted.path, path)
    status, shown = in_terminal("train", "access", "--out", str(path), "--resume")
    assert status == 0
    assert "nram train access" in shown
    for words in (
        r"stage 0  n <= 3  8 members",
        r"150/150 steps",
        r"done early, step \d+/400",
        r"best.*\d% right as a program up to n = 6",
        r"levels .*on level \d",
        r"examined.*\d members?: \d passed",
        "example-steps/s",
    ):
        assert re.search(words, shown), words
    assert "Next: nram eval" in shown
    assert shown.rfind("\x1b[?25h") > shown.rfind("\x1b[?25l")  # the cursor is there again
    same_end(path, trained.path)


def in_terminal(*words: str) -> tuple[int, str]:
    """Run the command with a pseudo-terminal as its standard output and error."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "110", "LINES": "40"}
    command = [sys.executable, "-m", "nram", *words]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # Linux: the other side is closed
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    return process.wait(), shown.decode()
