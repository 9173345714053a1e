"""Batches from the traced samplers, compiled once per task and memory size for the whole test run."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from nram.extensions import get_task
from nram.tasks import Instance

CHUNK = 1000
TracedBatch = Callable[..., list[tuple[int, Instance]]]


@cache
def _compiled(task_name: str, memory_size: int):
    import jax

    task = get_task(task_name)
    # These run for milliseconds: the time goes into compiling them.
    quickly = {"xla_backend_optimization_level": 0}
    return jax.jit(jax.vmap(lambda key, n: task.draw_traced(key, n, memory_size)), compiler_options=quickly)


@cache
def _draw(task_name: str, memory_size: int, count: int, only: int | None) -> list[tuple[int, Instance]]:
    import jax
    import numpy as np

    assert count % CHUNK == 0, "another shape would have to be compiled"
    task = get_task(task_name)
    largest = task.largest_complexity(memory_size)
    if only is None:
        complexities = task.min_complexity + np.arange(count) % (largest - task.min_complexity + 1)
    else:
        assert task.min_complexity <= only <= largest
        complexities = np.full(count, only)
    keys = jax.random.split(jax.random.key(memory_size), count)
    sampler = _compiled(task_name, memory_size)
    chunks = [
        sampler(keys[start : start + CHUNK], complexities[start : start + CHUNK].astype(np.int32))
        for start in range(0, count, CHUNK)
    ]
    arrays = [np.concatenate(parts) for parts in zip(*chunks, strict=True)]
    assert [array.dtype.name for array in arrays] == ["int32", "int32", "bool", "bool"]
    assert all(array.shape == (count, memory_size) for array in arrays)
    rows = zip(complexities.tolist(), *(array.tolist() for array in arrays), strict=True)
    return [
        (n, Instance(start, output, _addresses(cells), _addresses(scored), task.step_limit(n)))
        for n, start, output, cells, scored in rows
    ]


def _addresses(mask: list[bool]) -> list[int]:
    return [address for address, marked in enumerate(mask) if marked]


@pytest.fixture(scope="session")
def traced_batch() -> TracedBatch:
    """(task name, M, count, complexity=None) -> [(n, instance)]; without complexity, all that fit in turn."""

    def draw(task_name: str, memory_size: int, count: int, complexity: int | None = None):
        return _draw(task_name, memory_size, count, complexity)

    return draw
