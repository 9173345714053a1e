"""Every sampled memory follows the layout of its task and has the answer the oracle gives.

The checkers below read a memory as spec.md describes it; they share no code with samplers and oracles.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from nram.extensions import get_task, task_names
from nram.tasks import Instance

ALL_TASKS = task_names()


def check_array(values: list[int], largest: int) -> None:
    assert all(1 <= value <= largest for value in values)


def check_empty(memory: list[int], used: set[int]) -> None:
    assert all(value == 0 for address, value in enumerate(memory) if address not in used)


def check_access(memory: list[int], n: int) -> None:
    assert 0 <= memory[0] < n
    check_array(memory[1 : n + 1], len(memory) - 1)
    assert memory[n + 1] == 0
    check_empty(memory, set(range(n + 1)))


def check_increment(memory: list[int], n: int) -> None:
    check_array(memory[:n], len(memory) - 2)
    assert memory[n] == 0
    check_empty(memory, set(range(n)))


def check_copy(memory: list[int], n: int) -> None:
    assert memory[0] == n + 1
    check_array(memory[1 : n + 1], len(memory) - 1)
    assert len(memory) >= 2 * n + 1
    check_empty(memory, set(range(n + 1)))


def check_swap(memory: list[int], n: int) -> None:
    assert 2 <= memory[0] < memory[1] <= n + 1
    check_array(memory[2 : n + 2], len(memory) - 1)
    assert memory[n + 2] == 0
    check_empty(memory, set(range(n + 2)))


def check_permutation(memory: list[int], n: int) -> None:
    assert memory[0] == n + 1
    assert sorted(memory[1 : n + 1]) == list(range(n))
    check_array(memory[n + 1 : 2 * n + 1], len(memory) - 1)
    check_empty(memory, set(range(2 * n + 1)))


def list_cells(memory: list[int], n: int) -> set[int]:
    """The cells of the list that starts at the head, each in one node only."""
    cells: set[int] = set()
    node = memory[0]
    for _ in range(n):
        assert 3 <= node <= len(memory) - 2
        assert not cells & {node, node + 1}
        cells |= {node, node + 1}
        assert 1 <= memory[node + 1] < len(memory)
        node = memory[node]
    assert node == 0
    return cells


def check_listk(memory: list[int], n: int) -> None:
    assert 0 <= memory[1] < n
    check_empty(memory, {0, 1} | list_cells(memory, n))


def check_listsearch(memory: list[int], n: int) -> None:
    cells = list_cells(memory, n)
    assert memory[2] == 0
    values, node = [], memory[0]
    while node:
        values.append(memory[node + 1])
        node = memory[node]
    assert memory[1] in values
    check_array([memory[cell] for cell in range(3, len(memory)) if cell not in cells], len(memory) - 1)


def check_merge(memory: list[int], n: int) -> None:
    guardian = len(memory) - 1
    a, b, out = memory[:3]
    assert a == 3 < b < out == n + 5
    first, second = memory[a : b - 1], memory[b : out - 1]
    assert memory[b - 1] == memory[out - 1] == guardian
    assert len(first) + len(second) == n
    for array in (first, second):
        assert array == sorted(array)
        check_array(array, guardian - 1)
    assert len(memory) >= out + n
    check_empty(memory, set(range(out)))


def check_walkbst(memory: list[int], n: int) -> None:
    root, used, keys = memory[0], set[int](), list[int]()
    # In order: a tree whose keys come out ascending is a search tree.
    pending, node = list[int](), root
    while pending or node:
        while node:
            assert not used & {node, node + 1, node + 2}
            used |= {node, node + 1, node + 2}
            pending.append(node)
            node = memory[node + 1]
        node = pending.pop()
        keys.append(memory[node])
        node = memory[node + 2]
    assert len(keys) == n
    assert all(low < high for low, high in zip(keys, keys[1:], strict=False))
    assert 1 <= keys[0] <= keys[-1] < len(memory)
    assert max(used) < len(memory)

    steps, node = 0, root
    while memory[node + 1] or memory[node + 2]:
        node = memory[node + 1 + memory[2 + steps]]
        assert node
        steps += 1
    end = 2 + steps
    assert memory[1] == memory[end] == 0
    assert min(used) > end
    check_empty(memory, {0, *range(2, end), *used})


CHECKERS: dict[str, Callable[[list[int], int], None]] = {
    "access": check_access,
    "increment": check_increment,
    "copy": check_copy,
    "reverse": check_copy,
    "swap": check_swap,
    "permutation": check_permutation,
    "listk": check_listk,
    "listsearch": check_listsearch,
    "merge": check_merge,
    "walkbst": check_walkbst,
}

EXPECTED_CELLS: dict[str, Callable[[int], list[int]]] = {
    "access": lambda n: [0],
    "increment": lambda n: list(range(n)),
    "copy": lambda n: list(range(n + 1, 2 * n + 1)),
    "reverse": lambda n: list(range(n + 1, 2 * n + 1)),
    "swap": lambda n: list(range(2, n + 2)),
    "permutation": lambda n: list(range(1, n + 1)),
    "listk": lambda n: [2],
    "listsearch": lambda n: [2],
    "merge": lambda n: list(range(n + 5, 2 * n + 5)),
    "walkbst": lambda n: [1],
}


def check(task_name: str, instance: Instance, n: int) -> None:
    memory = instance.input
    assert all(type(value) is int and 0 <= value < len(memory) for value in memory + instance.output)
    if task_name in CHECKERS:  # the paper's ten; other tasks have their own tests
        CHECKERS[task_name](memory, n)
        assert instance.cells == EXPECTED_CELLS[task_name](n)
    assert instance.scored == (memory[:2] if task_name == "swap" else instance.cells)
    expected, cells = get_task(task_name).oracle(memory)
    assert instance.output == expected
    assert instance.cells == cells


@pytest.mark.parametrize("name", ALL_TASKS)
def test_plain_instances_follow_the_layout(name):
    task = get_task(name)
    choose = random.Random(name)
    for seed in range(1500):
        n = choose.randint(task.min_complexity, choose.choice([3, task.trained_up_to, 30]))
        size = task.least_memory(n) + choose.choice([0, 0, 1, 2, choose.randrange(60)])
        (instance,) = task.sample(n, 1, seed, size)
        assert len(instance.input) == size
        assert instance.steps == task.step_limit(n)
        check(name, instance, n)


@pytest.mark.parametrize("name", ALL_TASKS)
def test_traced_instances_follow_the_layout_for_every_complexity_that_fits(name, traced_batch):
    task = get_task(name)
    exact = [task.least_memory(n) for n in (task.min_complexity, task.min_complexity + 1, task.trained_up_to)]
    for size in (*exact, exact[-1] + 1):
        batch = traced_batch(name, size, 2000)
        assert {n for n, _ in batch} == set(range(task.min_complexity, task.largest_complexity(size) + 1))
        for n, instance in batch:
            check(name, instance, n)


@pytest.mark.parametrize("name", ALL_TASKS)
def test_plain_sampler_at_complexity_100_000(name):
    (instance,) = get_task(name).sample(100_000, 1, seed=3)
    check(name, instance, 100_000)


@pytest.mark.parametrize(
    ("name", "memory", "expected"),
    [
        ("access", [2, 5, 6, 4, 0, 0, 0], [4, 5, 6, 4, 0, 0, 0]),
        ("increment", [1, 3, 1, 0, 0], [2, 4, 2, 0, 0]),
        ("copy", [4, 7, 2, 5, 0, 0, 0, 0], [4, 7, 2, 5, 7, 2, 5, 0]),
        ("reverse", [4, 7, 2, 5, 0, 0, 0, 0], [4, 7, 2, 5, 5, 2, 7, 0]),
        ("swap", [2, 4, 6, 3, 5, 1, 0], [2, 4, 5, 3, 6, 1, 0]),
        ("permutation", [4, 1, 2, 0, 7, 5, 6, 0], [4, 5, 6, 7, 7, 5, 6, 0]),
        ("listk", [6, 2, 0, 0, 9, 0, 8, 5, 3, 7], [6, 2, 9, 0, 9, 0, 8, 5, 3, 7]),
        ("listsearch", [6, 7, 0, 0, 7, 7, 8, 5, 3, 7], [6, 7, 8, 0, 7, 7, 8, 5, 3, 7]),
        ("merge", [3, 6, 8, 2, 5, 11, 4, 11, 0, 0, 0, 0], [3, 6, 8, 2, 5, 11, 4, 11, 2, 4, 5, 0]),
        ("merge", [3, 4, 7, 8, 1, 6, 8, 0, 0], [3, 4, 7, 8, 1, 6, 8, 1, 6]),
        # The root, 5, is at 9; to the right of it 8, whose left child is 6.
        (
            "walkbst",
            [9, 0, 1, 0, 0, 0, 6, 0, 0, 5, 0, 12, 8, 6, 0],
            [9, 6, 1, 0, 0, 0, 6, 0, 0, 5, 0, 12, 8, 6, 0],
        ),
    ],
)
def test_oracle_on_examples_worked_by_hand(name, memory, expected):
    assert get_task(name).oracle(memory)[0] == expected
