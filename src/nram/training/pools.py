"""Examples of a task that has no traced sampler, drawn in Python ahead of the compiled code that trains on them.

A step of 512 members needs thousands of examples, and Python draws about 30,000 a second. So members share a *pool*.
Compiled code gets the pool as an argument, and each member draws its own batches from it. Every `CHUNK` steps a slice
of new examples replaces the oldest slice. A thread draws the next slice while the device trains on this pool: a main
thread that waits for the device leaves Python to it.

A slice holds as many examples as one member uses until the next slice, and it stays for `SLICES` chunks. So a member
meets an example about once, as if it had drawn all of them for itself, and other members meet it in other batches.

A slice depends only on its number, the seed and the stage. So neither timing nor where a run was stopped matters.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial

import jax
import numpy as np

from nram.extensions import known_task
from nram.tasks._plain_arrays import as_arrays
from nram.tasks._traced import Pool
from nram.tasks.base import TracedInstance
from nram.training.config import StageConfig, TrainConfig

CHUNK = 25  # training steps with one pool, and at most between two reports
SLICES = 8  # in a pool: 3,200 examples for batches of 16


def fresh_pool(config: TrainConfig, stage: StageConfig, *words: object) -> Pool | None:
    """A pool of one slice, named by these words; None if the task draws inside compiled code."""
    if known_task(config.task).sample_traced is not None:
        return None
    return _joined(config, [_slice(config, stage, *words)])


class Pools:
    """The pools of a stage, which these words name."""

    def __init__(self, config: TrainConfig, stage: StageConfig, *words: object):
        self.config = config
        self.needed = known_task(config.task).sample_traced is None
        self.draw = partial(_slice, config, stage, *words)
        self.slices: dict[int, Future[TracedInstance]] = {}
        self.chunk, self.pool = -1, None

    def steps_from(self, step: int) -> int:
        """How many steps to train from this one in one call, which has one pool."""
        return CHUNK - step % CHUNK if self.needed else CHUNK

    def at(self, step: int) -> Pool | None:
        """The pool of the chunk with this step; None if the task draws inside compiled code."""
        chunk = step // CHUNK
        if self.needed and chunk != self.chunk:
            numbers = range(chunk - SLICES + 1, chunk + 2)  # the last is for the next chunk
            self.slices = {i: self.slices.get(i) or _started(partial(self.draw, i)) for i in numbers}
            self.pool = _joined(self.config, [self.slices[i].result() for i in numbers[:-1]])
            self.chunk = chunk
        return self.pool


def _slice(config: TrainConfig, stage: StageConfig, *words: object) -> TracedInstance:
    """Examples as arrays [complexities, examples, M]: equally many of every complexity of the stage."""
    task, size = known_task(config.task), config.memory_size(stage)
    complexities = range(task.min_complexity, stage.max_complexity + 1)
    each = -(-config.batch * CHUNK // len(complexities))
    rng = random.Random(" ".join(map(str, ("examples", config.seed, *words))))
    drawn = [task.solved(task.sample_input(rng, n, size), n) for n in complexities for _ in range(each)]
    return TracedInstance(*(array.reshape(len(complexities), each, size) for array in as_arrays(drawn)))


def _joined(config: TrainConfig, slices: list[TracedInstance]) -> Pool:
    examples = jax.tree.map(lambda *parts: np.concatenate(parts, axis=1), *slices)
    levels, each, size = examples.input.shape
    return Pool(
        jax.tree.map(lambda array: array.reshape(-1, size), examples),
        known_task(config.task).min_complexity + np.arange(levels, dtype=np.int32),
        each * np.arange(levels, dtype=np.int32),
        np.full(levels, each, np.int32),
    )


def _started(draw: Callable[[], TracedInstance]) -> Future[TracedInstance]:
    """What `draw` will return or raise. It runs in a thread that does not keep the process alive."""
    future: Future[TracedInstance] = Future()

    def work() -> None:
        try:
            future.set_result(draw())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return future
