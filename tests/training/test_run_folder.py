"""Run folders and the files in them: written whole or not at all, and checked when read."""

import contextlib
import json
import os
import stat

import jax
import numpy as np
import pytest
from support.configs import plain_config

from nram.errors import NramError, UsageError
from nram.training.checkpoint import load_arrays, read_description, save_arrays
from nram.training.run_folder import RunFolder

CONFIG = plain_config("access", seed=5)
TREE = {"weights": (np.arange(6, dtype=np.float32).reshape(2, 3), np.array([1, -2], np.int32)), "step": np.int32(7)}


def names_in(path) -> set[str]:
    return {str(file.relative_to(path)) for file in path.rglob("*")}


# ---- files


def test_arrays_and_their_description_come_back_as_they_were(tmp_path):
    file = tmp_path / "a.safetensors"
    description = {"step": 3, "share": 0.1, "nothing": None, "words": 'a "quoted" ü'}
    save_arrays(file, TREE, description)
    like = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(np.shape(leaf), leaf.dtype), TREE)
    loaded, read = load_arrays(file, lambda description: like)
    assert read == {"format": 1, **description} == read_description(file)
    assert jax.tree.structure(loaded) == jax.tree.structure(TREE)
    for before, after in zip(jax.tree.leaves(TREE), jax.tree.leaves(loaded), strict=True):
        assert before.dtype == after.dtype
        np.testing.assert_array_equal(before, after)


def test_equal_contents_give_equal_files(tmp_path):
    contents = set()
    for count in range(20):
        save_arrays(tmp_path / str(count), TREE, {"b": 1, "a": 2})
        contents.add((tmp_path / str(count)).read_bytes())
    assert len(contents) == 1


def test_arrays_of_another_shape_are_refused_by_name(tmp_path):
    file = tmp_path / "a.safetensors"
    save_arrays(file, TREE, {})
    with pytest.raises(NramError, match=r"does not fit its configuration: .*step.* differ"):
        load_arrays(file, lambda description: {**TREE, "step": np.zeros(2, np.int32)})
    with pytest.raises(NramError, match=r"does not fit its configuration: .*more.* differ"):
        load_arrays(file, lambda description: {**TREE, "more": np.zeros(2, np.int32)})


def test_a_change_of_any_byte_is_noticed(tmp_path):
    file = tmp_path / "a.safetensors"
    save_arrays(file, TREE, {"step": 3})
    content = file.read_bytes()
    for place in range(len(content)):
        altered = bytearray(content)
        altered[place] ^= 1
        file.write_bytes(altered)
        with pytest.raises(NramError, match="damaged|altered"):
            read_description(file)


def test_a_loss_of_any_length_is_noticed(tmp_path):
    file = tmp_path / "a.safetensors"
    save_arrays(file, TREE, {"step": 3})
    content = file.read_bytes()
    for length in range(len(content)):
        file.write_bytes(content[:length])
        with pytest.raises(NramError, match="damaged"):
            read_description(file)


# ---- folders


def test_a_new_run_is_opened_as_it_was_created(tmp_path):
    path = tmp_path / "deep" / "down" / "run"
    RunFolder.create(path, CONFIG, ["train", "access"], "a device")
    run = RunFolder.open(path)
    assert run.exists
    assert run.config == CONFIG
    assert run.record.arguments == ("train", "access")
    assert run.record.device == "a device"
    assert run.result is None
    assert names_in(path) == {"run.json"}


def test_what_a_process_killed_at_its_start_left_behind_is_no_obstacle(tmp_path):
    (tmp_path / ".lock").touch()
    (tmp_path / ".0123abcd-4567cdef.part").write_text('{"form')
    RunFolder.create(tmp_path, CONFIG, [], "")
    assert RunFolder.open(tmp_path).config == CONFIG
    assert names_in(tmp_path) == {"run.json"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a file", "a file is a file: choose another 'out'"),
        ("a file/below", "a file is a file: choose another 'out'"),
        ("full", "full is not empty and not a run"),
        ("a run", "a run holds a run already: go on with it by resume=True"),
    ],
)
def test_a_place_where_no_run_can_begin_is_refused_and_left_alone(tmp_path, name, message):
    (tmp_path / "a file").write_text("x")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    RunFolder.create(tmp_path / "a run", CONFIG, [], "")
    before = names_in(tmp_path)
    with pytest.raises(UsageError, match=message):
        RunFolder.create(tmp_path / name, CONFIG, [], "")
    assert names_in(tmp_path) == before


@contextlib.contextmanager
def unprivileged():
    """Without the rights of the superuser, whom nothing is forbidden."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


def test_a_pipe_in_a_run_is_refused_instead_of_waited_for(tmp_path):
    RunFolder.create(tmp_path, CONFIG, [], "")
    os.mkfifo(tmp_path / "metrics.jsonl")
    with pytest.raises(UsageError, match="metrics.jsonl is not a regular file: remove it"):
        RunFolder.open(tmp_path)


def test_no_permission_to_write_is_one_clear_error(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with unprivileged(), pytest.raises(NramError, match="cannot write .*: Permission denied"):
        RunFolder.create(closed / "run", CONFIG, [], "")
    closed.chmod(stat.S_IRWXU)
    assert names_in(closed) == set()


def test_two_cannot_hold_the_lock_and_it_is_free_again_afterwards(tmp_path):
    run = RunFolder.create(tmp_path, CONFIG, [], "")
    with run.locked(), pytest.raises(UsageError, match="another process"), RunFolder.open(tmp_path).locked():
        pass
    with RunFolder.open(tmp_path).locked():
        pass


def test_two_that_begin_at_the_same_moment_do_not_both_begin(tmp_path):
    with RunFolder(tmp_path).locked(), pytest.raises(UsageError, match="another process is training in"):
        RunFolder.create(tmp_path, CONFIG, [], "")
    assert not (tmp_path / "run.json").exists()


def test_an_error_of_the_work_is_not_taken_for_one_of_the_lock(tmp_path):
    run = RunFolder.create(tmp_path, CONFIG, [], "")
    with pytest.raises(BrokenPipeError), run.locked():
        raise BrokenPipeError


def test_metrics_are_cut_to_the_rows_of_the_checkpoint(tmp_path):
    run = RunFolder.create(tmp_path, CONFIG, [], "")
    for step in range(4):
        run.append_metrics({"step": step})
    with open(run.metrics, "a") as file:
        file.write('{"ste')  # killed in the middle of a line
    run.cut_metrics(3)
    assert [json.loads(line)["step"] for line in run.metrics.read_text().splitlines()] == [0, 1, 2]
    run.append_metrics({"step": 9})
    assert [json.loads(line)["step"] for line in run.metrics.read_text().splitlines()] == [0, 1, 2, 9]


def test_the_same_configuration_is_accepted_and_every_difference_is_listed(tmp_path):
    run = RunFolder.create(tmp_path, CONFIG, [], "")
    run.require_same(plain_config("access", seed=5))
    with pytest.raises(UsageError) as refusal:
        run.require_same(plain_config("access", "stages.0.keep=3", 'modules=["READ"]', seed=6))
    lines = str(refusal.value).splitlines()[1:]
    assert "  - seed: 5 in the run, 6 asked for" in lines
    assert "  - stages.0.keep: None in the run, 3 asked for" in lines
    assert any(line.endswith("'WRITE'] in the run, ['READ'] asked for") for line in lines) and len(lines) == 3
