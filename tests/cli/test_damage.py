"""Run folders that are damaged, altered or of another kind: one clear message, and nothing is touched."""

import json
import shutil
import struct

import pytest

from nram.training.checkpoint import read_description


@pytest.fixture
def copy(interrupted, tmp_path):
    """A copy of the interrupted run, to damage."""
    return shutil.copytree(interrupted.path, tmp_path / "run")


@pytest.fixture
def refused(call, copy, bytes_of):
    """Ask to go on with the copy; the answer must be a refusal that leaves every byte as it was."""

    def ask(*words, verb=("train", "access", "--resume", "--out")):
        before = bytes_of(copy)
        outcome = call(*verb, copy, *words)
        assert outcome.out == ""
        assert "Traceback" not in outcome.err
        assert bytes_of(copy) == before
        return outcome

    return ask


def change_json(path, **values) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def header_end(content: bytes) -> int:
    return 8 + struct.unpack("<Q", content[:8])[0]


@pytest.mark.parametrize("share", [0, 0.001, 0.1, 0.9, 0.999])
def test_a_truncated_checkpoint_is_named_damaged(refused, copy, share):
    checkpoint = copy / "checkpoint.safetensors"
    content = checkpoint.read_bytes()
    checkpoint.write_bytes(content[: int(share * len(content))])
    outcome = refused()
    assert outcome.status == 1
    assert f"{checkpoint} is damaged" in outcome.err
    assert "restore it from a copy" in outcome.err


def test_a_flipped_bit_anywhere_in_the_arrays_is_noticed(refused, copy):
    checkpoint = copy / "checkpoint.safetensors"
    content = checkpoint.read_bytes()
    start = header_end(content)
    for place in (start, (start + len(content)) // 2, len(content) - 1):
        altered = bytearray(content)
        altered[place] ^= 1
        checkpoint.write_bytes(altered)
        outcome = refused()
        assert outcome.status == 1
        assert f"{checkpoint} was altered after it was written" in outcome.err


def test_altered_metadata_is_noticed(refused, copy):
    checkpoint = copy / "checkpoint.safetensors"
    content = checkpoint.read_bytes()
    step = read_description(checkpoint)["state"]["groups"][0]["step"]
    written, altered = (f'\\"step\\": {number}'.encode() for number in (step, step - 1))
    assert content.count(written) == 1 and len(written) == len(altered)
    checkpoint.write_bytes(content.replace(written, altered))
    outcome = refused()
    assert outcome.status == 1
    assert "was altered after it was written" in outcome.err


def test_another_configuration_is_refused_with_all_that_differs(refused, nram):
    changes = ("--set", "batch=16", "--set", "stages.1.steps=401", "--set", "learning_rate=0.5")
    outcome = refused("--config", nram.settings, "--seed", "1", *changes)
    assert outcome.status == 2
    lines = outcome.err.splitlines()
    assert "has another configuration" in lines[0] and "--out" in lines[0]
    assert lines[1:] == [
        "  - batch: 8 in the run, 16 asked for",
        "  - hyper.learning_rate: 0.005..0.03 in the run, 0.5 asked for",
        "  - stages.1.steps: 400 in the run, 401 asked for",
    ]


def test_other_groups_are_refused_by_their_names_and_not_by_each_of_their_settings(refused):
    outcome = refused("--set", "batch=16")  # of the recipe, because there is no --config
    assert outcome.status == 2
    assert outcome.err.splitlines()[1:] == [
        "  - curriculum.enabled: True in the run, False asked for",
        "  - draw_steps: False in the run, True asked for",
        "  - groups: none in the run, soft, hard, paper asked for",
        "  - seed: 1 in the run, 0 asked for",
    ]


def test_another_seed_is_another_configuration(refused, nram):
    outcome = refused("--config", nram.settings, "--seed", "2")
    assert outcome.status == 2
    assert outcome.err.splitlines()[1:] == ["  - seed: 1 in the run, 2 asked for"]


def test_a_run_of_another_task_is_refused(refused):
    outcome = refused(verb=("train", "copy", "--resume", "--out"))
    assert outcome.status == 2
    assert "is a run of the task 'access'" in outcome.err and "--out" in outcome.err


def test_another_format_is_refused_with_the_version_that_made_it(refused, copy):
    change_json(copy / "run.json", format=99, versions={"nram": "7.8.9"})
    for verb in (("train", "access", "--resume", "--out"), ("eval",)):
        outcome = refused(verb=verb)
        assert outcome.status == 2
        assert "format 99" in outcome.err and "7.8.9" in outcome.err


def test_a_configuration_changed_on_disk_is_not_mixed_with_the_checkpoint(refused, copy):
    config = json.loads((copy / "run.json").read_text())["config"]
    change_json(copy / "run.json", config={**config, "batch": 9})
    outcome = refused()
    assert outcome.status == 1
    assert "another configuration than that of run.json" in outcome.err


def test_a_configuration_that_cannot_be_read_names_file_and_setting(refused, copy):
    config = json.loads((copy / "run.json").read_text())["config"]
    change_json(copy / "run.json", config={**config, "batsh": 9})
    outcome = refused()
    assert outcome.status == 1
    assert f"{copy / 'run.json'}" in outcome.err
    assert "batsh is unknown: did you mean batch?" in outcome.err


def test_a_missing_run_json_is_named(refused, copy):
    (copy / "run.json").unlink()
    going_on, judging = refused(), refused(verb=("eval",))
    assert (going_on.status, judging.status) == (2, 2)
    assert f"{copy} is not empty and not a run (it has no run.json)" in going_on.err
    assert f"{copy} is not a run: it has no run.json" in judging.err


@pytest.mark.parametrize("content", [b"", b"{", b"[1, 2]", b'"run"', b"\xff\xfe", b"{}"])
def test_a_run_json_that_is_not_the_record_of_a_run_is_named(refused, copy, content):
    (copy / "run.json").write_bytes(content)
    for verb in (("train", "access", "--resume", "--out"), ("eval",)):
        outcome = refused(verb=verb)
        assert outcome.status == 1
        assert str(copy / "run.json") in outcome.err
        assert len(outcome.err.splitlines()) == 1


def test_a_damaged_member_is_named(call, trained, tmp_path):
    copy = shutil.copytree(trained.path, tmp_path / "run")
    member = copy / "best" / "3.safetensors"
    member.write_bytes(member.read_bytes()[:-1])
    outcome = call("eval", copy, "--member", "3", "--solve", "5")
    assert (outcome.status, outcome.out) == (1, "")
    assert f"{member} is damaged" in outcome.err
