"""Finding tasks by name, and refusing requests that cannot be met."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from nram.errors import UsageError
from nram.extensions import get_task, register_task, task_names
from nram.tasks import Instance, StepLimit

# As spec.md has it: name, least complexity, trained up to, least M at the two least n and at 7, T(1), T(10)
TABLE = [
    ("access", 1, 20, (3, 4, 9), 6, 6),
    ("increment", 1, 15, (3, 3, 8), 5, 14),
    ("copy", 1, 15, (3, 5, 15), 6, 24),
    ("reverse", 1, 15, (3, 5, 15), 6, 24),
    ("swap", 2, 20, (5, 6, 10), 8, 8),
    ("permutation", 1, 6, (3, 5, 15), 8, 26),
    ("listk", 1, 10, (5, 7, 17), 10, 28),
    ("listsearch", 1, 6, (5, 7, 17), 11, 38),
    ("merge", 1, 10, (7, 9, 19), 12, 48),
    ("walkbst", 1, 10, (6, 10, 30), 12, 48),
]


def test_the_ten_tasks_in_the_order_of_the_paper():
    assert task_names()[: len(TABLE)] == tuple(row[0] for row in TABLE)


@pytest.mark.parametrize(("name", "least", "trained_up_to", "memory", "steps_1", "steps_10"), TABLE)
def test_figures_of_the_specification(name, least, trained_up_to, memory, steps_1, steps_10):
    task = get_task(name)
    assert task.name == name
    assert task.summary and "\n" not in task.summary
    assert task.layout
    assert task.min_complexity == least
    assert task.trained_up_to == trained_up_to
    assert tuple(task.least_memory(n) for n in (least, least + 1, 7)) == memory
    assert (task.step_limit(1), task.step_limit(10)) == (steps_1, steps_10)


@pytest.mark.parametrize("name", task_names())
def test_largest_complexity_is_the_last_that_fits(name):
    task = get_task(name)
    for size in range(task.least_memory(task.min_complexity), 100):
        largest = task.largest_complexity(size)
        assert task.least_memory(largest) <= size < task.least_memory(largest + 1)
    assert task.largest_complexity(2) < task.min_complexity


@pytest.mark.parametrize("name", task_names())
def test_memory_size_is_the_least_unless_given(name):
    task = get_task(name)
    (instance,) = task.sample(4, 1, seed=0)
    assert len(instance.input) == len(instance.output) == task.least_memory(4)
    (instance,) = task.sample(4, 1, seed=0, memory_size=77)
    assert len(instance.input) == 77


def test_importing_and_sampling_leave_jax_alone():
    code = (
        "import sys, nram\n"
        "for name in nram.task_names(): nram.get_task(name).sample(3, 2, seed=0)\n"
        "sys.exit('jax' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_unknown_name_is_answered_with_the_nearest_and_the_list():
    with pytest.raises(UsageError, match="did you mean listsearch") as error:
        get_task("ListSerch")
    assert all(name in str(error.value) for name in task_names())
    with pytest.raises(UsageError, match="no task 'zzz'. The tasks are: access, increment"):
        get_task("zzz")


def test_register_adds_a_name_once():
    new = dataclasses.replace(get_task("access"), name="access-again")
    assert register_task(new) is new
    assert get_task("access-again") is new
    assert task_names()[-1] == "access-again"
    with pytest.raises(UsageError, match="already a task 'access-again'"):
        register_task(new)


@pytest.mark.parametrize("name", task_names())
def test_a_memory_that_is_too_small_is_refused_with_the_least(name):
    task = get_task(name)
    least = task.least_memory(6)
    task.check_memory_size(6, least)
    message = f"{name} of complexity 6 .* at least {least}, or a complexity of at most 5"
    with pytest.raises(UsageError, match=message):
        task.check_memory_size(6, least - 1)
    with pytest.raises(UsageError, match=message):
        task.sample(6, 1, seed=0, memory_size=least - 1)
    with pytest.raises(UsageError, match=rf"at least {least}$"):
        task.check_memory_size(6, 1)


@pytest.mark.parametrize("complexity", [-1, 0, 1, 2.5, "3", None])
def test_a_complexity_without_instances_is_refused(complexity):
    task = get_task("swap")
    task.check_complexity(2)
    for request in (
        lambda: task.check_complexity(complexity),
        lambda: task.check_memory_size(complexity, 50),
        lambda: task.sample(complexity, 1, seed=0),
    ):
        with pytest.raises(UsageError, match="swap has no instances of complexity .* from 2 up"):
            request()


def test_all_problems_are_named_at_once():
    with pytest.raises(UsageError) as error:
        get_task("copy").sample(6, -1, seed=-1, memory_size=10)
    message = str(error.value)
    assert "at least 13" in message
    assert "count must be a whole number from 0 up, not -1" in message
    assert "seed must be a whole number from 0 up, not -1" in message


def test_a_broken_number_of_cells_is_refused():
    size: Any = 10.5
    with pytest.raises(UsageError, match="memory size must be a whole number, not 10.5"):
        get_task("copy").sample(2, 1, seed=0, memory_size=size)


def test_an_instance_prints_as_the_interface_says():
    instance = Instance([1, 4, 2, 0], [2, 4, 2, 0], [0], [0], 6)
    assert instance.as_dict() == {"input": [1, 4, 2, 0], "output": [2, 4, 2, 0], "cells": [0], "steps": 6}


def test_numpy_numbers_give_plain_integers():
    numbers: Any = np.array([3, 1, 5, 9])
    (instance,) = get_task("copy").sample(*numbers)
    assert json.loads(json.dumps(instance.as_dict())) == instance.as_dict()
    assert instance == get_task("copy").sample(3, 1, 5, 9)[0]


def test_no_instances_is_an_answer():
    assert get_task("copy").sample(3, 0, seed=0) == []


def test_step_limit_takes_arrays():
    assert StepLimit(2, 5)(np.array([1, 4])).tolist() == [7, 13]
