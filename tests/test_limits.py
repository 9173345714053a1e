"""The step limits and the comparison of memories, which every part of the project takes from `nram.limits`."""

import jax.numpy as jnp
import numpy as np
import pytest

from nram.extensions import get_task
from nram.limits import LIMIT_NAMES, StepLimit, example_limits, wrong_cells, wrong_instances


def test_the_three_limits_of_the_definition_of_right():
    n = np.array([1, 5, 50])
    limits = [get_task("copy").step_limit.named(n, name) for name in LIMIT_NAMES]
    np.testing.assert_array_equal(limits, [[6, 14, 104], [12, 28, 208], [220, 300, 1200]])


@pytest.mark.parametrize("limit", [StepLimit(30, 0), StepLimit(0, 1500), StepLimit(2, 4), StepLimit(0, 0)])
def test_no_limit_lies_below_t(limit):
    n = np.arange(1, 60)
    for name in LIMIT_NAMES:
        several = limit.named(n, name)
        assert several.shape == n.shape and (several >= limit(n)).all()
        assert [limit.named(int(one), name) for one in n] == several.tolist()
    assert limit.named(50, "20n+200") == max(1200, limit(50))


def test_limits_ascend_with_t_first():
    assert list(StepLimit(2, 4).ascending(3).items()) == [("T", 10), ("2T", 20), ("20n+200", 260)]
    assert list(StepLimit(0, 500).ascending(3).items()) == [("T", 500), ("20n+200", 500), ("2T", 1000)]
    assert StepLimit(0, 500).longest(3) == 1000 and StepLimit(2, 4).longest(3) == 260


def test_an_example_has_three_limits_of_its_steps_and_cells():
    assert example_limits(30, 8) == (30, 60, 390)


def test_only_output_cells_can_be_wrong():
    (instance,) = get_task("copy").sample(3, 1, 0)
    assert wrong_cells(instance.output, instance) == []
    strayed = [value + (cell not in instance.cells) for cell, value in enumerate(instance.output)]
    assert wrong_cells(strayed, instance) == []
    assert wrong_cells([value + 1 for value in instance.output], instance) == instance.cells


@pytest.mark.parametrize("xp", [np, jnp])
def test_arrays_of_memories_are_compared_alike(xp):
    instances = get_task("copy").sample(4, 20, 1)
    outputs = np.array([instance.output for instance in instances])
    cells = np.zeros(outputs.shape, bool)
    for row, instance in enumerate(instances):
        cells[row, instance.cells] = True
    memories = np.where(np.random.default_rng(0).random(outputs.shape) < 0.1, outputs + 1, outputs)
    expected = [bool(wrong_cells(memory, one)) for memory, one in zip(memories.tolist(), instances, strict=True)]
    assert any(expected) and not all(expected)
    found = wrong_instances(xp.asarray(memories), xp.asarray(outputs), xp.asarray(cells))
    assert found.tolist() == expected
