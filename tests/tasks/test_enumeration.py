"""Every input listed, and all inputs as cases for a solver: both must say what the samplers and oracles say."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from nram.extensions import get_task, task_names
from nram.tasks import Task

# Sizes with few enough inputs to look at all of them, and how many there are, counted by hand.
SIZES = [
    ("access", 1, 3, 2),
    ("access", 2, 5, 2 * 4**2),
    ("increment", 1, 3, 1),
    ("increment", 3, 5, 3**3),
    ("copy", 1, 4, 3),
    ("copy", 2, 6, 5**2),
    ("reverse", 2, 5, 4**2),
    ("swap", 2, 5, 4**2),
    ("swap", 3, 6, 3 * 5**3),
    ("permutation", 2, 5, 2 * 4**2),
    ("permutation", 3, 7, 6 * 6**3),
    ("listk", 1, 7, 3 * 6),  # addresses, values
    ("listk", 2, 7, 2 * 6**2 * 2),  # orders, values, k
    ("listk", 2, 8, 3 * 2 * 7**2 * 2),
    ("listsearch", 1, 6, 2 * 5 * 5),  # addresses, values, the cell of trash
    ("listsearch", 2, 7, 2 * (6 + 6 * 5 * 2)),  # equal values leave one v to look for
    ("listsearch", 2, 8, 3 * 2 * (7 + 7 * 6 * 2) * 7),
    ("merge", 1, 8, 2 * 6),
    ("merge", 2, 9, 28 + 7**2 + 28),
    ("walkbst", 1, 7, 2 * 6),
    ("walkbst", 2, 10, 36 * 2 * 2),  # keys, which one is the root, which node is first
    ("walkbst", 2, 11, 45 * 2 * (3 * 2)),
]


def listed(task: Task, n: int, size: int) -> list[list[int]]:
    assert task.legal_inputs is not None
    return list(task.legal_inputs(n, size))


@pytest.mark.parametrize(("name", "n", "size", "count"), SIZES)
def test_every_input_is_listed_once(name, n, size, count):
    memories = [tuple(memory) for memory in listed(get_task(name), n, size)]
    assert len(memories) == len(set(memories)) == count


@pytest.mark.parametrize(("name", "n", "size", "count"), SIZES)
def test_the_sampler_draws_what_is_listed_and_all_of_it(name, n, size, count):
    task = get_task(name)
    memories = {tuple(memory) for memory in listed(task, n, size)}
    # So many that one which is left out would be a wonder, also the rarest: a tree from a nearly sorted order.
    drawn = {tuple(instance.input) for instance in task.sample(n, 25 * count + 200, seed=5, memory_size=size)}
    assert drawn == memories


@pytest.mark.parametrize("name", task_names())
def test_what_is_drawn_at_larger_sizes_is_listed_too(name):
    task = get_task(name)
    n = max(task.min_complexity, 3)
    # Lists of nodes among trash become very many: the least memory leaves none.
    size = task.least_memory(n) + (name not in ("listk", "listsearch", "walkbst"))
    memories = {tuple(memory) for memory in listed(task, n, size)}
    assert all(tuple(instance.input) in memories for instance in task.sample(n, 300, seed=6, memory_size=size))


@pytest.mark.parametrize("name", task_names())
def test_listing_is_lazy(name):
    task = get_task(name)
    assert task.legal_inputs is not None
    first = list(islice(task.legal_inputs(12, task.least_memory(12) + 3), 5))
    assert len({tuple(memory) for memory in first}) == 5


# ---- cases for a solver


def matching(task: Task, n: int, size: int, memory: list[int], unknown_size: bool) -> Iterator[tuple[Any, Any]]:
    """The cases that hold a memory, each with a model that says how."""
    import z3

    term: Any = z3.Int("M") if unknown_size else size
    held: Any = z3.K(z3.IntSort(), z3.IntVal(-1))
    for address, value in enumerate(memory):
        held = z3.Store(held, address, value)
    assert task.symbolic is not None
    for case in task.symbolic(n, term):
        solver = z3.Solver()
        solver.add(*case.assumptions, *([term == size] if unknown_size else []))
        for address, value in case.cells:
            solver.add(z3.Select(held, address) == value)
        if solver.check() == z3.sat:
            yield case, solver.model()


def number(model: Any, term: Any) -> int:
    return term if isinstance(term, int) else model.eval(term, model_completion=True).as_long()


@pytest.mark.parametrize("unknown_size", [False, True], ids=["M given", "M unknown"])
@pytest.mark.parametrize("name", task_names())
def test_every_input_lies_in_one_case_which_expects_what_the_oracle_says(name, unknown_size):
    task = get_task(name)
    for n, more in ((task.min_complexity, 1), (3, 0), (4, 2)):
        size = task.least_memory(n) + more
        for instance in task.sample(n, 4, seed=n, memory_size=size):
            ((case, model),) = matching(task, n, size, instance.input, unknown_size)
            cells = {number(model, address): number(model, value) for address, value in case.cells}
            for address, value in enumerate(instance.input):
                if address in cells:
                    assert cells[address] == value
                else:
                    assert value == 0 if case.trash is None else 1 <= value < size
            expected = {number(model, address): number(model, value) for address, value in case.expected}
            assert expected == {cell: instance.output[cell] for cell in instance.cells}


@pytest.mark.parametrize(("name", "n", "size", "count"), [row for row in SIZES if row[3] < 100])
def test_every_listed_input_of_a_small_size_lies_in_one_case(name, n, size, count):
    task = get_task(name)
    for memory in listed(task, n, size):
        assert len(list(matching(task, n, size, memory, unknown_size=False))) == 1


@pytest.mark.parametrize("name", task_names())
def test_what_a_case_admits_is_a_legal_input(name):
    import z3

    task = get_task(name)
    n = max(2, task.min_complexity)
    size = task.least_memory(n)
    legal = {tuple(memory) for memory in listed(task, n, size)}
    assert task.symbolic is not None
    for case in task.symbolic(n, size):
        solver = z3.Solver()
        solver.add(*case.assumptions)
        terms = [term for cell in case.cells for term in cell if not isinstance(term, int)]
        for _ in range(15):
            if solver.check() != z3.sat:
                break
            model = solver.model()
            memory = [0] * size  # no room for trash in the least memory
            for address, value in case.cells:
                memory[number(model, address)] = number(model, value)
            assert tuple(memory) in legal
            solver.add(z3.Or(*(term != number(model, term) for term in terms)))


@pytest.mark.parametrize("name", task_names())
def test_cases_are_lazy_and_do_not_contradict_themselves(name):
    import z3

    task = get_task(name)
    assert task.symbolic is not None
    for case in islice(task.symbolic(7, z3.Int("M")), 3):
        solver = z3.Solver()
        solver.add(z3.Int("M") >= task.least_memory(7), *case.assumptions)
        assert solver.check() == z3.sat
