"""Runs that are stopped, killed or run out of disk: nothing is lost, and the end is the same to the bit."""

import random
import shutil
import signal
import time

import pytest

from nram.training.checkpoint import read_description


@pytest.fixture
def copy(interrupted, tmp_path):
    """A copy of the interrupted run, to go on with."""
    return shutil.copytree(interrupted.path, tmp_path / "run")


def test_ctrl_c_saves_says_how_to_go_on_and_exits_with_1(interrupted):
    assert (interrupted.outcome.status, interrupted.outcome.out) == (1, "")
    assert "stopped at step " in interrupted.outcome.err
    assert interrupted.onwards == ["train", "access", "--out", str(interrupted.path), "--resume"]
    assert "Traceback" not in interrupted.outcome.err


def test_an_interrupted_run_has_a_checkpoint_of_its_last_step_and_no_result(interrupted):
    state = read_description(interrupted.path / "checkpoint.safetensors")["state"]
    (group,) = state["groups"]
    assert f"stopped at step {group['step']} of stage {group['stage']};" in interrupted.outcome.err
    assert state["rows"] == (interrupted.path / "metrics.jsonl").read_bytes().count(b"\n") >= 1
    assert not (interrupted.path / "result.json").exists()
    assert not (interrupted.path / "best").exists()


def test_the_words_it_gives_go_on_to_the_end_of_a_run_left_alone(interrupted, trained, nram, copy, same_end):
    words = [word.replace(str(interrupted.path), str(copy)) for word in interrupted.onwards]
    outcome = nram.run(*words)
    assert outcome.status == 0, outcome.err
    assert "perfect" in outcome.out and "Next: nram eval" in outcome.out
    same_end(copy, trained.path)


def test_a_second_process_in_the_same_folder_is_refused(interrupted):
    assert (interrupted.rival.status, interrupted.rival.out) == (2, "")
    (message,) = interrupted.rival.err.splitlines()
    assert f"another process is training in {interrupted.path}" in message


@pytest.mark.slow
def test_a_run_killed_again_and_again_ends_like_one_left_alone(trained, nram, tmp_path, until_rows, same_end):
    path = tmp_path / "run"
    words = (*nram.train(path), "--resume")
    killed = 0
    for rows in (0, 1, 5, 9):  # before the first report, in the first stage, later in it, in the second
        process = nram.start(*words, slowed=True, PAUSE="0.2")
        until_rows(process, path, rows)
        time.sleep(random.uniform(0, 0.4))  # a moment that nothing in the program decides
        process.send_signal(signal.SIGKILL)
        killed += nram.wait(process).status == -signal.SIGKILL
    assert killed >= 3
    outcome = nram.run(*words)
    assert outcome.status == 0, outcome.err
    same_end(path, trained.path)


def test_a_full_disk_fails_with_1_and_keeps_the_checkpoint_from_before(nram, copy):
    checkpoint = copy / "checkpoint.safetensors"
    before = checkpoint.read_bytes()
    limit = str(len(before) // 2)
    outcome = nram.run("train", "access", "--out", copy, "--resume", slowed=True, LARGEST_FILE=limit)
    assert (outcome.status, outcome.out) == (1, "")
    last = outcome.err.splitlines()[-1]
    assert last == f"nram train: cannot write {checkpoint}: File too large (the old file is intact)"
    assert checkpoint.read_bytes() == before
    assert not list(copy.rglob("*.part"))
    assert read_description(checkpoint)["state"]["rows"] >= 1
