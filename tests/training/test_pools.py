"""Training on a task whose sampler is plain Python: pools of examples, drawn ahead."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from support.training_runs import ending, shared_compilation

from nram.errors import UsageError
from nram.extensions import get_task
from nram.tasks import TASKS
from nram.training.callbacks import Interrupted, Report, TrainingCallbacks
from nram.training.config import CullConfig, MachineConfig, StageConfig, TrainConfig
from nram.training.pools import CHUNK, SLICES, Pools
from nram.training.run_folder import RunFolder
from nram.training.trainer import train

EXAMPLE = Path(__file__).parents[2] / "src/nram/examples" / "tasks" / "maximum.py"
CONFIG = TrainConfig(str(EXAMPLE), batch=12, seed=3)
STAGE = StageConfig(4, 200, 2, extra_memory=1)
SIZE = 7


@pytest.fixture(scope="module", autouse=True)
def task():
    return get_task(EXAMPLE)


def same(a, b) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


def rows(pool) -> list[bytes]:
    return [row.tobytes() for row in pool.examples.input]


def test_a_pool_has_equally_many_instances_of_every_complexity(task):
    pool = Pools(CONFIG, STAGE, 0).at(0)
    assert pool is not None
    each = 12 * CHUNK // 4 * SLICES
    assert pool.complexities.tolist() == [1, 2, 3, 4] and pool.counts.tolist() == [each] * 4
    assert [array.dtype.name for array in pool.examples] == ["int32", "int32", "bool", "bool"]
    for i, (start, output, cells, scored) in enumerate(zip(*pool.examples, strict=True)):
        assert np.count_nonzero(start) == 1 + i // each and len(start) == SIZE
        assert output.tolist() == [max(start), *start[1:]]
        assert np.flatnonzero(cells).tolist() == np.flatnonzero(scored).tolist() == [0]


def test_compiled_code_draws_as_the_sampler_does(task):
    """All 36 inputs of complexity 2 are equally likely."""
    pools, count = Pools(CONFIG, STAGE, 0), 36 * 100
    pool = pools.at(0)
    assert pool is not None
    draw = jax.jit(jax.vmap(lambda key, pool: pool.draw(key, 2), (0, None)))
    numbers = []
    for chunk in range(0, 5 * SLICES, SLICES):  # pools with nothing in common
        drawn = draw(jax.random.split(jax.random.key(chunk), count // 5), pools.at(chunk * CHUNK))
        numbers += (6 * (drawn.input[:, 1] - 1) + drawn.input[:, 2] - 1).tolist()
        assert np.count_nonzero(drawn.input, axis=1).tolist() == [2] * (count // 5)
    found = np.bincount(numbers, minlength=36)
    # The counts of a pool vary, too: about as many examples are in the five pools as are drawn.
    assert len(found) == 36 and np.all(np.abs(found - 100) < 5 * np.sqrt(2 * 100))


def test_a_pool_depends_on_the_step_alone():
    one_by_one = Pools(CONFIG, STAGE, 0)
    pools = [one_by_one.at(step) for step in range(0, 12 * CHUNK, 5)]
    for step in (0, CHUNK, 5 * CHUNK - 5, 11 * CHUNK):  # as a resumed run begins
        assert same(Pools(CONFIG, STAGE, 0).at(step), pools[step // 5])
    assert pools[4] is pools[0] and not same(pools[5], pools[0])
    assert sorted(rows(pools[4])) != sorted(rows(pools[5]))


def test_pools_of_other_seeds_and_stages_differ():
    first = rows(Pools(CONFIG, STAGE, 0).at(0))
    assert rows(Pools(replace(CONFIG, seed=4), STAGE, 0).at(0)) != first
    assert rows(Pools(CONFIG, STAGE, 1).at(0)) != first


@pytest.mark.parametrize("step", [0, 10, CHUNK, CHUNK + 1, 2 * CHUNK])
def test_members_are_judged_on_examples_that_they_train_on_only_later(step):
    pools = Pools(CONFIG, STAGE, 0)
    unseen = pools.unseen(step)
    assert unseen is not None and same(unseen, Pools(CONFIG, STAGE, 0).unseen(step))
    each = 12 * CHUNK // 4
    assert unseen.counts.tolist() == [each] * 4

    def slices(first: int) -> Any:
        pool = pools.at(first)
        assert pool is not None
        return pool.examples.input.reshape(4, SLICES, each, SIZE)

    new = unseen.examples.input.reshape(4, each, SIZE)
    trained = [slices(first)[:, i] for first in range(0, step, CHUNK) for i in range(SLICES)]
    assert not any(np.array_equal(new, old) for old in trained)
    assert np.array_equal(new, slices(-(-step // CHUNK) * CHUNK)[:, -1])


def test_a_slice_stays_for_some_chunks_and_the_next_pool_has_a_new_one():
    pools = Pools(CONFIG, STAGE, 0)
    each = 12 * CHUNK // 4
    for chunk in range(3):
        before, after = (pools.at(step * CHUNK) for step in (chunk, chunk + 1))
        assert before is not None and after is not None
        shape = (4, SLICES, each, SIZE)
        old, new = (one.examples.input.reshape(shape) for one in (before, after))
        assert np.array_equal(old[:, 1:], new[:, :-1]) and not np.array_equal(old[:, -1], new[:, -1])


def test_a_task_that_draws_inside_compiled_code_needs_no_pool():
    config = TrainConfig("copy")
    pools = Pools(config, STAGE, 0)
    assert pools.at(30) is None and pools.unseen(30) is None
    assert pools.steps_from(30) == CHUNK and Pools(CONFIG, STAGE, 0).steps_from(30) == 2 * CHUNK - 30


def test_an_error_of_the_sampler_arrives_where_the_pool_is_needed(tmp_path):
    text = EXAMPLE.read_text().replace("    values =", "    assert memory_size != 63\n    values =")
    path = tmp_path / "mine.py"
    path.write_text(text)
    get_task(path)
    pools = Pools(TrainConfig(str(path)), replace(STAGE, extra_memory=57), 0)
    line = text.splitlines().index("    assert memory_size != 63") + 1
    with pytest.raises(UsageError, match=rf"mine.py, line {line}: sample_input\(rng, 1, 63\) fails: AssertionError"):
        pools.at(0)


def test_an_error_in_the_thread_that_draws_ahead_arrives_with_the_pool(task, monkeypatch):
    def sample_input(rng, n, memory_size):
        if threading.current_thread() is not threading.main_thread():
            raise UsageError("not here")
        return task.sample_input(rng, n, memory_size)

    monkeypatch.setitem(TASKS, "fails-ahead", replace(task, name="fails-ahead", sample_input=sample_input))
    pools = Pools(TrainConfig("fails-ahead"), STAGE, 0)
    pools.at(0)
    with pytest.raises(UsageError, match="not here"):
        pools.at(CHUNK)


class Reports(TrainingCallbacks):
    def __init__(self):
        self.seen: list[Report] = []

    def report(self, report: Report) -> None:
        self.seen.append(report)


def test_a_run_that_was_stopped_ends_in_the_same_bits(tmp_path):
    """A check every 10 steps cuts the chunks of 25: at 10, 20, 25, 30, 40."""
    machine = MachineConfig(registers=2, modules=("READ", "MAX", "WRITE"), hidden=4)
    stage = StageConfig(3, 40, 2, cull=CullConfig(share=0.5))
    config = TrainConfig(str(EXAMPLE), batch=4, validation=8, check_every=10, machine=machine, stages=(stage,))

    def go_on(path: Path, stop_at: int | None = None) -> None:
        run = RunFolder.open(path, True) if (path / "run.json").is_file() else RunFolder.create(path, config, [], "")
        reports = Reports()
        train(run, config, jax.devices(), reports, lambda: len(reports.seen) == stop_at)

    with shared_compilation():
        go_on(tmp_path / "whole")
        assert [row["step"] for row in ending(tmp_path / "whole")[2]] == [10, 20, 25, 30, 40]
        for stop_at in (2, 3):
            with pytest.raises(Interrupted):
                go_on(tmp_path / str(stop_at), stop_at)
            random.seed(stop_at)  # the draws have their own generator
            go_on(tmp_path / str(stop_at))
            assert ending(tmp_path / str(stop_at)) == ending(tmp_path / "whole")


HANGING = """\
import sys, threading, time
from dataclasses import replace
import nram
from nram.process import interruptible, prepare
from nram.training.config import CullConfig, MachineConfig, StageConfig, TrainConfig
from nram.training.pools import CHUNK, Pools

def sample_input(rng, n, size):
    if threading.current_thread() is not threading.main_thread():
        time.sleep(600)
    return TASK.sample_input(rng, n, size)

TASK = nram.get_task(sys.argv[1])
nram.register_task(replace(TASK, name="hanging", sample_input=sample_input))
prepare()
with interruptible():
    pools = Pools(TrainConfig("hanging"), StageConfig(4, 200, 2), 0)
    pools.at(0)
    print("ready", flush=True)
    if sys.argv[2] == "wait":
        pools.at(CHUNK)
"""


@pytest.mark.parametrize("then", ["end", "wait"])
def test_a_sampler_that_hangs_does_not_hold_up_a_process_that_ends_or_is_killed(then):
    command = [sys.executable, "-c", HANGING, str(EXAMPLE), then]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        if then == "wait":
            process.send_signal(signal.SIGINT)
            time.sleep(0.6)  # a signal any sooner would be the same request
            process.send_signal(signal.SIGINT)
        _, messages = process.communicate(timeout=30)
        assert process.returncode == (1 if then == "wait" else 0)
        assert ("interrupted" in messages) == (then == "wait")
    finally:
        process.kill()
        process.communicate()
