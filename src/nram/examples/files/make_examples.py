"""Makes the example files of docs/examples/README.md in plain Python, as a user of nram might do it.

python examples/files/make_examples.py FOLDER                           # the eight files of the problems below
python examples/files/make_examples.py FOLDER examples/suite/rotate.py  # rotate.jsonl, and so for any other task

Each problem gives a memory before, the memory after, and the output cells. The files name the output cells, because by
default a cell that changes in no example of the same memory size does not count.
"""

import json
import sys
from pathlib import Path
from random import Random
from runpy import run_path

SIZES = range(1, 11)
MEMORY_SIZES = 8  # so many different ones for each size


def all_cells(memory):
    """All addresses as output cells: the program must not change anything else."""
    return list(range(len(memory)))


def array_length(rng, n, room):
    """The number of elements goes to cell 0."""
    values = [rng.randint(1, n + 1) for _ in range(n)]
    rest = [0] * (room + 1)
    after = [n, *values, *rest]
    return [0, *values, *rest], after, all_cells(after)


def add_to_all(rng, n, room):
    """The number in cell 0 is added to every element of the array behind it."""
    k = rng.randint(1, 3)
    values = [rng.randint(1, n + room + 1) for _ in range(n)]
    rest = [0] * (room + 4)
    after = [k, *(value + k for value in values), *rest]
    return [k, *values, *rest], after, all_cells(after)


def prefix_sums(rng, n, room):
    """Every element becomes the sum of those up to it."""
    values = [rng.randint(1, 2) for _ in range(n)]
    rest = [0] * (n + room + 1)
    after = [*(sum(values[: i + 1]) for i in range(n)), *rest]
    return [*values, *rest], after, all_cells(after)


def shift_left(rng, n, room):
    """Every element moves one cell to the left; the first is lost, and 0 follows the last."""
    values = [rng.randint(1, n + room + 1) for _ in range(n)]
    rest = [0] * (room + 2)
    return [*values, *rest], [*values[1:], 0, *rest], list(range(n))


def distance(rng, n, room):
    """The difference between the numbers in the first two cells goes to the third."""
    a, b = rng.randint(1, n + room + 2), rng.randint(1, n + room + 2)
    rest = [0] * (n + room)
    return [a, b, 0, *rest], [a, b, abs(a - b), *rest], [2]


def contains(rng, n, room):
    """1 goes to cell 0 if the value there is among the elements behind it, otherwise 0."""
    values = [rng.randint(1, n + room + 1) for _ in range(n)]
    wanted = rng.choice(values) if rng.random() < 0.5 else rng.randint(1, n + room + 1)
    rest = [0] * (room + 1)
    after = [int(wanted in values), *values, *rest]
    return [wanted, *values, *rest], after, all_cells(after)


def linked_list(rng, n, room, largest):
    """A memory with n nodes (next, value) at random addresses, the first node's address in cell 0; and the values."""
    nodes = [2 + position + before for before, position in enumerate(sorted(rng.sample(range(n + room), n)))]
    rng.shuffle(nodes)
    values = [rng.randint(1, largest) for _ in nodes]
    memory = [nodes[0], *[0] * (1 + 2 * n + room)]
    for node, following, value in zip(nodes, [*nodes[1:], 0], values, strict=True):
        memory[node : node + 2] = following, value
    return memory, values


def list_last(rng, n, room):
    """The value of a linked list's last node goes to cell 1."""
    memory, values = linked_list(rng, n, room, largest=n + 2)
    return memory, [memory[0], values[-1], *memory[2:]], [1]


def list_sum(rng, n, room):
    """The sum of a linked list's values goes to cell 1."""
    memory, values = linked_list(rng, n, room, largest=2)
    after = [memory[0], sum(values), *memory[2:]]
    return memory, after, all_cells(after)


PROBLEMS = (array_length, add_to_all, prefix_sums, shift_left, distance, contains, list_last, list_sum)


def problem_of(task):
    """A task as a problem like those above."""

    def problem(rng, n, room):
        memory = task.sample_input(rng, n, task.least_memory(n) + room)
        return memory, *task.oracle(memory)

    problem.__name__ = task.name
    return problem


def lines_of(problem, sizes=SIZES, of_each_size=MEMORY_SIZES):
    rng = Random(problem.__name__)
    for n in sizes:
        for i in range(of_each_size):
            before, after, cells = problem(rng, n, room=i % MEMORY_SIZES)
            yield json.dumps({"input": before, "output": after, "cells": cells})


def lines_of_task(task):
    """About 380 lines. A line may occur twice among the smallest sizes, which have few different inputs."""
    sizes = range(task.min_complexity, SIZES.stop)
    return lines_of(problem_of(task), sizes, of_each_size=380 // len(sizes))


if __name__ == "__main__":
    folder, *task_files = sys.argv[1:]
    if task_files:
        tasks = [run_path(file)["TASK"] for file in task_files]
        made = {task.name: lines_of_task(task) for task in tasks}
    else:
        made = {problem.__name__: lines_of(problem) for problem in PROBLEMS}
    for name, lines in made.items():
        (Path(folder) / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
