"""Examples of a task that has no traced sampler, drawn in Python ahead of the compiled code that trains on them.

A step of 512 members needs thousands of examples, and Python draws about 30,000 a second. So members share a *pool*.
Compiled code gets the pool as an argument, and each member draws its own batches from it. Every `CHUNK` steps a slice
of new examples replaces the oldest slice. A thread draws the next slice while the device trains on this pool and the
main thread waits for it.

A slice holds as many examples as one member uses until the next slice, and it stays for `SLICES` chunks. So a member
meets an example about once, as if it had drawn all of them for itself, and other members meet it in other batches.

A slice depends only on its number, the seed and the stage. So neither timing nor where a run was stopped matters.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

import numpy as np

from nram.extensions import known_task
from nram.tasks._plain_arrays import as_arrays
from nram.tasks._traced import TracedPool
from nram.tasks.base import TracedInstance
from nram.training.config import StageConfig, TrainConfig

CHUNK = 25  # training steps with one pool, and at most between two reports
SLICES = 8  # in a pool: 1,600 examples for batches of 8
DRAW_SECONDS, PAUSE_SECONDS = 1e-4, 1e-5  # of a thread that draws ahead, in turn

_Made = tuple[dict[int, TracedInstance], TracedPool]  # slices by their numbers, and the pool of them


class Pools:
    """The pools of a stage of a group."""

    def __init__(self, config: TrainConfig, stage: StageConfig, stage_index: int):
        self.config, self.stage, self.stage_index = config, stage, stage_index
        self.task = known_task(config.task)
        self.needed = self.task.sample_traced is None
        self.chunk, self.slices, self.pool = -1, {}, None
        self.next: Future[_Made] | None = None
        self.awaited, self.paused = False, 0.0

    def steps_from(self, step: int) -> int:
        """How many steps to train from this one in one call, which has one pool."""
        return CHUNK - step % CHUNK if self.needed else CHUNK

    def at(self, step: int) -> TracedPool | None:
        """The pool of the chunk with this step; None if the task draws inside compiled code."""
        chunk = step // CHUNK
        if self.needed and chunk != self.chunk:
            self.awaited = True
            made = self.next.result() if self.next and chunk == self.chunk + 1 else self._made(chunk)
            self.chunk, (self.slices, self.pool), self.awaited = chunk, made, False
            self.next = _started(partial(self._made, chunk + 1))
        return self.pool

    def unseen(self, step: int) -> TracedPool | None:
        """Examples that no member has trained on before this step: those of the slice that is new next."""
        self.at(step)
        if not self.next:
            return None
        slices, number = self.slices, -(-step // CHUNK)
        if number not in slices:
            slices, _ = self.next.result()
        return self._joined([slices[number]])

    def _made(self, chunk: int) -> _Made:
        """The slices of a chunk, of which some are drawn already, and the pool of them."""
        numbers = range(chunk - SLICES + 1, chunk + 1)
        slices = {i: self.slices[i] if i in self.slices else self._drawn(i) for i in numbers}
        return slices, self._joined(list(slices.values()))

    def _drawn(self, number: int) -> TracedInstance:
        """A slice: arrays [complexities, examples, M] with equally many examples of every complexity of the stage."""
        task, size = self.task, self.config.memory_size(self.stage)
        complexities = range(task.min_complexity, self.stage.max_complexity + 1)
        each = -(-self.config.batch * CHUNK // len(complexities))
        rng = random.Random(f"examples {self.config.seed} {self.stage_index} {number}")
        drawn = []
        for n in complexities:
            for _ in range(each):
                drawn.append(task.solved(task.sample_input(rng, n, size), n))
                self._pause()
        return TracedInstance(*(array.reshape(len(complexities), each, size) for array in as_arrays(drawn)))

    def _pause(self) -> None:
        """Let the main thread run, unless it waits for this pool.

        Python takes turns of 5 ms. A main thread that hands work to the device has some ten turns, and a GPU would
        wait for it. During a pause it has its turn at once.
        """
        if not self.awaited and time.perf_counter() - self.paused > DRAW_SECONDS:
            time.sleep(PAUSE_SECONDS)
            self.paused = time.perf_counter()

    def _joined(self, slices: list[TracedInstance]) -> TracedPool:
        levels, each, size = slices[0].input.shape
        least, each = self.task.min_complexity, each * len(slices)
        examples: list[Any] = [np.concatenate(parts, axis=1).reshape(-1, size) for parts in zip(*slices, strict=True)]
        return TracedPool(
            TracedInstance(*examples),
            np.arange(least, least + levels, dtype=np.int32),
            np.arange(0, each * levels, each, dtype=np.int32),
            np.full(levels, each, np.int32),
        )


def _started(draw: Callable[[], _Made]) -> Future[_Made]:
    """What `draw` will return or raise. It runs in a thread that does not keep the process alive."""
    future = Future()

    def work() -> None:
        try:
            future.set_result(draw())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return future
