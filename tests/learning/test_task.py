"""Training examples as a task: it draws what was given, padded, and nothing of what is held out."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import jax
import numpy as np
import pytest

from nram.learning.task import CannotPad, training_task
from nram.tasks.example_files import Example, read_examples


def _examples(tmp_path: Path, rows: list[tuple[list[int], list[int]]]) -> tuple[Example, ...]:
    path = tmp_path / "examples.jsonl"
    path.write_text("\n".join(json.dumps({"input": start, "output": end}) for start, end in rows))
    return read_examples(path).examples


ROWS = [
    ([0, 2, 0], [2, 2, 0]),
    ([0, 1, 0, 0], [1, 1, 0, 0]),
    ([0, 2, 1, 0], [1, 2, 1, 0]),
    ([0, 3, 1, 2, 0], [2, 3, 1, 2, 0]),
    ([0, 4, 3, 1, 2, 1, 0], [1, 4, 3, 1, 2, 1, 0]),
]


def test_both_samplers_draw_the_padded_examples_of_a_size(tmp_path: Path, quick_jit):
    task = training_task(_examples(tmp_path, ROWS), "last")

    @cache
    def draw(memory_size: int):
        sample = quick_jit(jax.vmap(lambda key, n: task.draw_traced(key, n, memory_size), in_axes=(0, None)))
        return lambda keys, n: jax.tree.map(np.asarray, sample(keys, n))

    for n, memory_size in ((1, 4), (2, 4), (3, 9), (4, 9), (5, 9), (10, 12)):
        size = max(size for size in (1, 2, 3, 5) if size <= n)
        rows = [(start, end[0]) for start, end in ROWS if len(start) - start.count(0) == size]
        wanted = {(*start, *[0] * (memory_size - len(start))): value for start, value in rows}
        plain = task.sample(n, 40, seed=n, memory_size=memory_size)
        assert {tuple(one.input): one.output[0] for one in plain} == wanted
        assert all(one.cells == [0] for one in plain)
        traced = draw(memory_size)(jax.random.split(jax.random.key(n), 40), n)
        found = {tuple(map(int, start)): int(end[0]) for start, end in zip(traced.input, traced.output, strict=True)}
        assert found == wanted
        assert np.array_equal(traced.cells.sum(axis=0), [40] + [0] * (memory_size - 1))


def test_every_example_has_at_least_its_own_steps(tmp_path: Path):
    examples = _examples(tmp_path, ROWS)
    task = training_task(examples, "last")
    assert all(task.step_limit(example.size) >= example.instance.steps for example in examples)


def test_examples_that_disagree_once_they_are_padded_are_not_trained_on(tmp_path: Path):
    with pytest.raises(CannotPad, match="lines 1 and 2"):
        training_task(_examples(tmp_path, [([0, 2, 0], [2, 2, 0]), ([0, 2, 0, 0], [1, 2, 0, 0])]), "size")
