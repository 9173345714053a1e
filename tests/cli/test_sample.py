"""`nram tasks` and `nram sample`: the instances that other people's scripts read (spec, sections 3 and 5)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest


class Row(NamedTuple):
    """A row of the spec's table."""

    smallest: int
    trained_up_to: int
    limit: Callable[[int], int]
    least: Callable[[int], int]
    cells: Callable[[int, list[int]], range | list[int]]  # (n, memory at the start) -> output cells


SPEC = {
    "access": Row(1, 20, lambda n: 6, lambda n: n + 2, lambda n, memory: [0]),
    "increment": Row(1, 15, lambda n: n + 4, lambda n: max(n + 1, 3), lambda n, memory: range(n)),
    "copy": Row(1, 15, lambda n: 2 * n + 4, lambda n: max(2 * n + 1, 3), lambda n, memory: range(n + 1, 2 * n + 1)),
    "reverse": Row(1, 15, lambda n: 2 * n + 4, lambda n: max(2 * n + 1, 3), lambda n, memory: range(n + 1, 2 * n + 1)),
    "swap": Row(2, 20, lambda n: 8, lambda n: n + 3, lambda n, memory: range(2, n + 2)),
    "permutation": Row(1, 6, lambda n: 2 * n + 6, lambda n: max(2 * n + 1, 3), lambda n, memory: range(1, n + 1)),
    "listk": Row(1, 10, lambda n: 2 * n + 8, lambda n: 3 + 2 * n, lambda n, memory: [2]),
    "listsearch": Row(1, 6, lambda n: 3 * n + 8, lambda n: 3 + 2 * n, lambda n, memory: [2]),
    "merge": Row(1, 10, lambda n: 4 * n + 8, lambda n: 5 + 2 * n, lambda n, memory: range(memory[2], memory[2] + n)),
    "walkbst": Row(1, 10, lambda n: 4 * n + 8, lambda n: 4 * n + 2, lambda n, memory: [1]),
}


def check_instance(instance: dict[str, Any], task: str, n: int, size: int) -> None:
    row = SPEC[task]
    assert list(instance) == ["input", "output", "cells", "steps"]
    assert len(instance["input"]) == len(instance["output"]) == size
    assert all(type(value) is int and 0 <= value < size for value in instance["input"] + instance["output"])
    assert instance["cells"] == list(row.cells(n, instance["input"]))
    assert instance["steps"] == row.limit(n)
    unchanged = set(range(size)) - set(instance["cells"])
    assert all(instance["input"][cell] == instance["output"][cell] for cell in unchanged)


def test_tasks_json_lists_the_ten_of_the_paper_with_their_sizes(call):
    outcome = call("tasks", "--json")
    assert (outcome.status, outcome.err) == (0, "")
    listed = outcome.value
    assert [task["name"] for task in listed[: len(SPEC)]] == list(SPEC)
    for task in listed[: len(SPEC)]:
        row = SPEC[task["name"]]
        assert (task["min_complexity"], task["trained_up_to"]) == (row.smallest, row.trained_up_to)
        limit = task["step_limit"]
        assert limit["per_item"] * 7 + limit["constant"] == row.limit(7)
        assert task["least_memory"] == row.least(row.trained_up_to)


def test_tasks_in_words_gives_a_line_to_each(call):
    out = call("tasks").out
    for name, row in SPEC.items():
        (line,) = [line for line in out.splitlines() if line.startswith(f"{name} ")]
        assert f"{row.smallest}..{row.trained_up_to}" in line


@pytest.mark.parametrize("task", SPEC)
def test_instances_have_the_form_that_scripts_rely_on(call, task):
    for n in (SPEC[task].smallest, 5, 12):
        outcome = call("sample", task, "--complexity", n, "--count", 20, "--seed", 3, "--json")
        assert (outcome.status, outcome.err, outcome.out.count("\n")) == (0, "", 1)
        assert len(outcome.value) == 20
        for instance in outcome.value:
            check_instance(instance, task, n, SPEC[task].least(n))


@pytest.mark.parametrize("task", SPEC)
def test_a_larger_memory_is_filled_by_the_same_rules(call, task):
    size = SPEC[task].least(5) + 9
    instances = call("sample", task, "--complexity", 5, "--count", 20, "--memory-size", size, "--json").value
    for instance in instances:
        check_instance(instance, task, 5, size)


@pytest.mark.parametrize("task", SPEC)
def test_the_same_seed_gives_the_same_instances_and_another_seed_others(call, task):
    def sample(seed: int, count: int):
        return call("sample", task, "--complexity", 6, "--count", count, "--seed", seed, "--json").value

    assert sample(5, 10) == sample(5, 10)
    assert sample(5, 10)[:4] == sample(5, 4)
    assert sample(5, 10) != sample(6, 10)


@pytest.mark.parametrize("task", SPEC)
def test_a_memory_too_small_is_refused_with_the_least_that_works(call, task):
    least = SPEC[task].least(5)
    refused = call("sample", task, "--complexity", 5, "--memory-size", least - 1, "--json")
    assert (refused.status, refused.out) == (2, "")
    assert f"at least {least}" in refused.err
    assert call("sample", task, "--complexity", 5, "--memory-size", least, "--json").status == 0


def test_no_instances_are_an_empty_list(call):
    assert call("sample", "copy", "--count", 0, "--json").value == []


def test_the_default_is_one_instance_that_every_task_has(call):
    for task in SPEC:
        (instance,) = call("sample", task, "--json").value
        check_instance(instance, task, 5, SPEC[task].least(5))


def test_text_shows_layout_memories_and_marks_the_output_cells(call):
    words = ("sample", "copy", "--complexity", 3, "--seed", 1)
    (instance,) = call(*words, "--json").value
    layout, empty, start, end, marks = call(*words).out.splitlines()
    assert layout.startswith("copy: p, A[0..n-1]")
    assert empty == ""
    assert start.split() == ["input", *map(str, instance["input"])]
    assert end.split() == ["output", *map(str, instance["output"])]
    assert marks.endswith("within 10 steps")
    assert [place for place, mark in enumerate(marks) if mark == "^"] == [8 + 2 * cell for cell in instance["cells"]]


def test_text_keeps_its_columns_where_addresses_have_two_digits(call):
    words = ("sample", "swap", "--complexity", 20, "--seed", 2)
    (instance,) = call(*words, "--json").value
    _, _, start, end, marks = call(*words).out.splitlines()
    width = 3  # two digits and a space
    for line, values in ((start, instance["input"]), (end, instance["output"])):
        assert [int(line[8 + width * c : 10 + width * c]) for c in range(len(values))] == values
    assert [c for c in range(len(instance["input"])) if marks[8 + width * c : 10 + width * c] == "^^"] == instance[
        "cells"
    ]
