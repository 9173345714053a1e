"""Training examples as a task: it draws what was given, padded if the answers allow that, and nothing held out."""

from __future__ import annotations

import json
from functools import cache
from itertools import product
from pathlib import Path
from random import Random

import jax
import numpy as np

from nram.learning.task import training_tasks
from nram.limits import StepLimit
from nram.tasks.base import GivenInstance
from nram.tasks.example_files import Example, read_examples
from nram.training.config import CurriculumConfig, StageConfig, TrainConfig
from nram.training.evaluation import Trial, draw_trial
from nram.training.member import draw_examples
from nram.training.settings import load_config


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
    task = training_tasks(_examples(tmp_path, ROWS), "last")[0]

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


def test_every_example_has_at_least_its_own_steps_and_not_many_more(tmp_path: Path):
    examples = _examples(tmp_path, ROWS)
    task = training_tasks(examples, "last")[0]
    assert all(task.step_limit(example.size) >= example.instance.steps for example in examples)
    limited = read_examples(tmp_path / "examples.jsonl").with_steps(StepLimit(3, 10)).examples
    task = training_tasks(limited, "last")[0]
    assert task.step_limit == StepLimit(3, 10)


def test_a_memory_of_zeros_is_as_complex_as_what_must_be_written_into_it(tmp_path: Path):
    rows = [([k, *[0] * 6], [k, *[1] * k, *[0] * (6 - k)]) for k in range(1, 7)]
    (task,) = training_tasks(_examples(tmp_path, rows), "fill")
    assert (task.min_complexity, task.trained_up_to) == (1, 6)


def _complement(memories: range) -> list[tuple[list[int], list[int]]]:
    """x becomes M-1-x: the answers depend on M."""
    return [([x, *[0] * (m - 1)], [m - 1 - x, *[0] * (m - 1)]) for m in memories for x in range(m - 1)]


def test_examples_that_contradict_each_other_when_padded_are_drawn_at_their_own_memory_size(tmp_path: Path, quick_jit):
    (task,) = training_tasks(_examples(tmp_path, _complement(range(4, 8))), "complement")
    assert (task.min_complexity, task.trained_up_to, task.least_memory(1)) == (1, 1, 7)  # 7 has the most examples
    for m in (4, 7):
        wanted = {(x, m - 1 - x) for x in range(m - 1)}
        plain = [task.solved(task.sample_input(Random(seed), 1, m), 1) for seed in range(60)]
        assert {(one.input[0], one.output[0]) for one in plain} == wanted
        draw = quick_jit(jax.vmap(lambda key, m=m: task.draw_traced(key, 1, m)))
        traced = draw(jax.random.split(jax.random.key(m), 60))
        assert {*zip(traced.input[:, 0].tolist(), traced.output[:, 0].tolist(), strict=True)} == wanted


def test_where_every_size_has_its_own_memory_size_both_kinds_of_task_are_tried(tmp_path: Path):
    rows = [([0, *[v] * n, 0], [n * v % (n + 2), *[v] * n, 0]) for n in range(2, 6) for v in range(1, n + 1)]
    padded, exact = training_tasks(_examples(tmp_path, rows), "sum")
    assert [padded.least_memory(n) for n in range(2, 6)] == [4, 5, 6, 7] == [exact.least_memory(n) for n in range(2, 6)]
    assert padded.examples and exact.examples
    assert padded.examples.nearest(np.arange(1, 7), 6).tolist() == [2, 2, 3, 4, 4, 4]
    # In a memory of its own there is one size only, and the step limit must be that of this size.
    assert exact.examples.nearest(np.arange(1, 7), 6).tolist() == [4] * 6
    assert {len(_nonzero(one.input)) for one in exact.sample(4, 40, 0, 6)} == {4}
    assert {len(_nonzero(one.input)) for n in (2, 3, 4) for one in padded.sample(n, 40, 0, 6)} == {2, 3, 4}


def test_a_stage_trains_at_several_memory_sizes_where_one_has_too_few_examples(tmp_path: Path):
    def sizes(rows: list[tuple[list[int], list[int]]]) -> list[int]:
        (task,) = training_tasks(_examples(tmp_path, rows), "complement")
        stage = StageConfig(1, 10, 4)
        config = TrainConfig(task.name, stages=(stage,))
        assert config.by_memory_size(stage)[0] == stage
        return [config.memory_size(one) for one in config.by_memory_size(stage)]

    assert sizes(_complement(range(3, 9))) == [8, 7, 6, 5]  # of 7, 6, 5 and 4 examples; each size is compiled
    assert sizes(_complement(range(13, 16))) == [15, 14]  # 14 and 13 are enough
    assert sizes([([0, v, *[0] * room], [v, v, *[0] * room]) for v in (1, 2) for room in (1, 2, 3)]) == [5]


def test_the_first_stage_has_the_smallest_sizes_of_the_file_and_enough_examples(tmp_path: Path):
    def first(of_each_size: int, sizes: range) -> int:
        rows = []
        for n, v in product(sizes, range(1, 1 + of_each_size)):
            rest = [*[1] * (n - 1), v, *[0] * 20]
            rows.append(([0, *rest], [v, *rest]))
        task = training_tasks(_examples(tmp_path, rows), "last")[0]
        stage = load_config(task.name).groups[0].stages[0]
        assert task.examples and task.examples.first_sizes(5) == stage.max_complexity
        return stage.max_complexity

    assert first(20, range(1, 11)) == 5
    assert first(20, range(2, 21, 2)) == 10  # the fifth size
    assert first(8, range(1, 11)) == 8  # 64 examples
    assert first(8, range(1, 7)) == 6  # all there are


def test_every_size_up_to_that_of_a_stage_is_drawn_as_often_as_the_others(tmp_path: Path, quick_jit):
    rows = [([0, *[1] * n, *[0] * (21 - n)], [n, *[1] * n, *[0] * (21 - n)]) for n in (1, 2, 3, 4, 20)]
    task = training_tasks(_examples(tmp_path, rows), "length")[0]
    for most, wanted in ((20, [1, 2, 3, 4, 20]), (19, [1, 2, 3, 4]), (0, [1])):
        config = TrainConfig(task.name, batch=1000, curriculum=CurriculumConfig(enabled=False))
        draw = quick_jit(lambda key, most=most, config=config: draw_examples(config, StageConfig(most, 1, 1), 0, key))
        _, complexities, _ = draw(jax.random.key(most))
        sizes, counts = np.unique(complexities, return_counts=True)
        assert sizes.tolist() == wanted
        assert np.all(np.abs(counts - 1000 / len(wanted)) < 70)


def _nonzero(memory: list[int]) -> list[int]:
    return [value for value in memory if value]


def test_examples_of_the_very_memory_size_are_preferred_where_there_are_enough(tmp_path: Path):
    own = [([0, v, *[0] * 8], [v, v, *[0] * 8]) for v in range(1, 10)]  # enough of size 1
    own += [([0, v, w, *[0] * 7], [w, v, w, *[0] * 7]) for v in (1, 2) for w in (1, 2)]  # few of size 2
    smaller = [([0, 0, 1], [1, 0, 1]), ([0, 0, 2, 1], [1, 0, 2, 1])]
    task = training_tasks(_examples(tmp_path, own + smaller), "last")[0]
    for n, wanted in ((1, own[:9]), (2, own[9:] + smaller[1:])):
        drawn = {tuple(one.input) for one in task.sample(n, 200, 0, 10)}
        assert drawn == {(*start, *[0] * (10 - len(start))) for start, _ in wanted}


def test_output_cells_that_no_example_of_a_size_changes_are_not_scored(tmp_path: Path, quick_jit):
    rows = [{"input": [x, 3, 0, 0], "output": [x == 3, 3, 0, 0], "cells": [0, 1, 2, 3]} for x in range(1, 4)]
    rows += [{"input": [x, 0, 0], "output": [x, 0, 0], "cells": [0, 1, 2]} for x in (1, 2)]  # nothing changes
    path = tmp_path / "examples.json"
    path.write_text(json.dumps([{**row, "output": [*map(int, row["output"])]} for row in rows]))
    task = training_tasks(read_examples(path).examples, "equals")[0]
    for n, scored in ((2, [0]), (1, [0, 1, 2])):
        assert all(one.scored == scored for one in task.sample(n, 20, 0, 4))
        drawn = quick_jit(lambda key, n=n: task.draw_traced(key, n, 4))(jax.random.key(0))
        assert np.flatnonzero(drawn.scored).tolist() == scored
        assert np.flatnonzero(drawn.cells).tolist() == ([0, 1, 2, 3] if n == 2 else [0, 1, 2])
    assert task.examples
    given, levels = task.examples.given()
    assert np.asarray(given.scored).sum(axis=1).tolist() == np.where(levels == 2, 1, 3).tolist()


def test_members_are_selected_on_the_examples_as_given(tmp_path: Path):
    examples = _examples(tmp_path, _complement(range(4, 8)))
    (task,) = training_tasks(examples, "complement")
    instances, complexity = draw_trial(Trial(task.name, 2, 30, 0, "validation"))
    assert complexity.tolist() == [1] * 30 and isinstance(instances, GivenInstance)
    found = [
        (start[:size].tolist(), end[:size].tolist())
        for start, end, size in zip(instances.input, instances.output, instances.size, strict=True)
    ]
    given = _complement(range(4, 8))
    assert all(pair in found for pair in given) and all(pair in given for pair in found)
