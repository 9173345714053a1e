"""What the samplers cover, and with which frequency: both samplers, the same law."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable
from fractions import Fraction
from math import comb, factorial, sqrt
from typing import Any

import pytest

from nram.extensions import get_task, task_names

Memories = Callable[[str, int, int, int], list[list[int]]]


@pytest.fixture(params=["plain", "traced"])
def memories(request, traced_batch) -> Memories:
    """(task, n, M, count) -> memories at the start, from one sampler and then from the other."""

    def plain(name: str, n: int, size: int, count: int) -> list[list[int]]:
        return [instance.input for instance in get_task(name).sample(n, count, seed=11, memory_size=size)]

    def traced(name: str, n: int, size: int, count: int) -> list[list[int]]:
        return [instance.input for _, instance in traced_batch(name, size, count, n)]

    return plain if request.param == "plain" else traced


def assert_law(observed: Iterable[Hashable], law: dict[Any, Fraction]) -> None:
    """Every outcome of the law, and no other, as often as it should be, within five standard deviations."""
    assert sum(law.values()) == 1
    counts = Counter(observed)
    total = counts.total()
    assert counts.keys() == law.keys()
    for outcome, probability in law.items():
        spread = sqrt(total * probability * (1 - probability))
        assert abs(counts[outcome] - total * probability) <= 5 * spread, outcome


def uniform(outcomes: Iterable[Hashable]) -> dict[Hashable, Fraction]:
    listed = list(outcomes)
    return {outcome: Fraction(1, len(listed)) for outcome in listed}


def walk(memory: list[int]) -> list[int]:
    """The addresses of a list's nodes, from the head on."""
    nodes, node = [], memory[0]
    while node:
        assert node not in nodes
        nodes.append(node)
        node = memory[node]
    return nodes


# How many instances there are of complexity n on a memory of M cells, counted by hand.
@pytest.mark.parametrize(
    ("name", "n", "size", "instances"),
    [
        ("access", 1, 3, 2),
        ("access", 2, 4, 2 * 3**2),
        ("increment", 1, 3, 1),
        ("increment", 2, 3, 1),
        ("increment", 2, 5, 3**2),
        ("copy", 1, 3, 2),
        ("copy", 2, 5, 4**2),
        ("reverse", 1, 3, 2),
        ("reverse", 2, 5, 4**2),
        ("swap", 2, 5, 4**2),
        ("swap", 3, 6, comb(3, 2) * 5**3),
        ("permutation", 1, 3, 2),
        ("permutation", 2, 5, 2 * 4**2),
        ("listk", 1, 5, 4),
        ("listk", 1, 7, 3 * 6),  # three addresses
        ("listk", 2, 7, 2 * 6**2 * 2),  # orders, values, k
        ("listsearch", 1, 5, 4),
        ("listsearch", 1, 6, 2 * 5 * 5),  # addresses, values, the cell of trash
        ("listsearch", 2, 7, 2 * (6 + 6 * 5 * 2)),  # equal values leave one v to look for
        ("merge", 1, 7, 2 * 5),
        ("merge", 2, 9, comb(8, 2) + 7**2 + comb(8, 2)),
        ("walkbst", 1, 6, 5),
        ("walkbst", 1, 7, 2 * 6),
        ("walkbst", 2, 10, comb(9, 2) * 2 * 2),  # keys, which one is the root, which node is first
    ],
)
def test_every_small_instance_occurs(name, n, size, instances, memories):
    seen = {tuple(memory) for memory in memories(name, n, size, 1000 * (1 + instances // 50))}
    assert len(seen) == instances


def test_access_draws_index_and_values_uniformly(memories):
    drawn = memories("access", 5, 22, 4000)
    assert_law((memory[0] for memory in drawn), uniform(range(5)))
    for cell in range(1, 6):
        assert_law((memory[cell] for memory in drawn), uniform(range(1, 22)))


def test_increment_never_draws_the_largest_value(memories):
    drawn = memories("increment", 4, 16, 4000)
    for cell in range(4):
        assert_law((memory[cell] for memory in drawn), uniform(range(1, 15)))


def test_swap_draws_every_pair_alike(memories):
    pairs = itertools.combinations(range(2, 7), 2)
    assert_law((tuple(memory[:2]) for memory in memories("swap", 5, 23, 4000)), uniform(pairs))


def test_permutation_draws_every_permutation_alike(memories):
    drawn = memories("permutation", 3, 13, 3000)
    assert_law((tuple(memory[1:4]) for memory in drawn), uniform(itertools.permutations(range(3))))


@pytest.mark.parametrize("name", ["listk", "listsearch"])
def test_lists_lie_anywhere_without_overlap(name, memories):
    # Ten cells for three nodes: every placement of every order, aligned or not, equally likely.
    placements = [
        nodes
        for nodes in itertools.permutations(range(3, 12), 3)
        if all(abs(one - other) >= 2 for one, other in itertools.combinations(nodes, 2))
    ]
    assert len(placements) == comb(10 - 3, 3) * factorial(3)
    drawn = memories(name, 3, 13, 21_000)
    assert_law((tuple(walk(memory)) for memory in drawn), uniform(placements))


def test_listk_draws_every_number_of_hops_alike(memories):
    assert_law((memory[1] for memory in memories("listk", 5, 23, 4000)), uniform(range(5)))


def test_listsearch_looks_for_the_value_of_any_node(memories):
    # Without repeated values the first match is the node drawn; with them it is an earlier one at times.
    drawn = memories("listsearch", 4, 15, 6000)
    lists = [([memory[node + 1] for node in walk(memory)], memory[1]) for memory in drawn]
    distinct = (values.index(wanted) for values, wanted in lists if len(set(values)) == 4)
    assert_law(distinct, uniform(range(4)))
    assert any(values.count(wanted) > 1 for values, wanted in lists)


def test_listsearch_trash_takes_every_value(memories):
    drawn = memories("listsearch", 1, 7, 4000)
    after_node = (memory[6] for memory in drawn if memory[0] <= 4)
    assert_law(after_node, uniform(range(1, 7)))


def test_merge_splits_everywhere_with_either_array_empty(memories):
    drawn = memories("merge", 4, 25, 6000)
    assert_law((memory[1] - 4 for memory in drawn), uniform(range(5)))


def test_merge_interleaves_in_every_way(memories):
    # Which of the four in order come from A, for two in each and no ties.
    drawn = [memory for memory in memories("merge", 4, 25, 6000) if memory[1] == 6]
    patterns = set()
    for memory in drawn:
        first, second = memory[3:5], memory[6:8]
        if len({*first, *second}) == 4:
            patterns.add(tuple(value in first for value in sorted(first + second)))
    assert len(patterns) == comb(4, 2)


def shape_and_path(memory: list[int]) -> tuple[Any, tuple[int, ...]]:
    """The nested (left, right) shape of a tree, and the path to the leaf."""
    depth, node = 0, memory[0]
    while memory[node + 1] or memory[node + 2]:
        node = memory[node + 1 + memory[2 + depth]]
        depth += 1

    def shape(node: int) -> Any:
        return (shape(memory[node + 1]), shape(memory[node + 2])) if node else None

    return shape(memory[0]), tuple(memory[2 : 2 + depth])


def inserted(keys: Iterable[int]) -> Any:
    """The shape that textbook insertion gives."""
    tree: list[Any] | None = None
    for key in keys:
        if tree is None:
            tree = [key, None, None]
            continue
        node = tree
        while node[side := 1 + (key > node[0])] is not None:
            node = node[side]
        node[side] = [key, None, None]

    def shape(node: Any) -> Any:
        return node and (shape(node[1]), shape(node[2]))

    return shape(tree)


def leaf_paths(shape: Any) -> list[tuple[int, ...]]:
    if shape == (None, None):
        return [()]
    return [(side, *path) for side in (0, 1) if shape[side] is not None for path in leaf_paths(shape[side])]


def insertion_order_law(n: int) -> dict[tuple[int, ...], Fraction]:
    """Three quarters any order, one quarter sorted after 0 to 3 transpositions of two places."""
    law: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for order in itertools.permutations(range(n)):
        law[order] += Fraction(3, 4) / factorial(n)
    transpositions = list(itertools.product(range(n), repeat=2))
    for start in (tuple(range(n)), tuple(reversed(range(n)))):
        for count in range(4):
            for chosen in itertools.product(transpositions, repeat=count):
                order = list(start)
                for i, j in chosen:
                    order[i], order[j] = order[j], order[i]
                law[tuple(order)] += Fraction(1, 4 * 2 * 4) / len(transpositions) ** count
    return law


@pytest.mark.parametrize("n", [3, 4])
def test_trees_and_paths_have_the_law_of_insertion(n, memories):
    law: dict[Any, Fraction] = defaultdict(Fraction)
    for order, probability in insertion_order_law(n).items():
        shape = inserted(order)
        paths = leaf_paths(shape)
        for path in paths:
            law[shape, path] += probability / len(paths)
    drawn = memories("walkbst", n, 42, 24_000)
    assert_law((shape_and_path(memory) for memory in drawn), dict(law))


def test_long_paths_occur_on_both_sides(memories):
    lengths = Counter()
    for memory in memories("walkbst", 10, 42, 3000):
        _, path = shape_and_path(memory)
        lengths[len(path)] += 1
        if len(path) == 9:
            lengths[path] += 1
    assert lengths[9] / 3000 > 1 / 16 / 2  # a quarter of a quarter is sorted
    assert lengths[(0,) * 9] > 20
    assert lengths[(1,) * 9] > 20


def test_tree_nodes_lie_anywhere_behind_the_path_without_overlap(memories):
    # One step of path, so nodes from address 4 on; ten cells for two of three cells each.
    placements = [pair for pair in itertools.permutations(range(4, 12), 2) if abs(pair[0] - pair[1]) >= 3]
    assert len(placements) == comb(10 - 4, 2) * 2
    drawn = memories("walkbst", 2, 14, 6000)
    found = ((memory[0], memory[memory[0] + 1] or memory[memory[0] + 2]) for memory in drawn)
    assert_law(found, uniform(placements))


def test_tree_keys_are_every_subset_alike(memories):
    drawn = memories("walkbst", 2, 10, 6000)
    keys = ([memory[4], memory[7]] for memory in drawn)  # the least memory: no cell is left over
    assert_law((tuple(sorted(pair)) for pair in keys), uniform(itertools.combinations(range(1, 10), 2)))


PINNED = {
    "access": [1, 3, 2, 0],
    "increment": [1, 1, 0],
    "copy": [3, 2, 1, 0, 0],
    "reverse": [3, 2, 1, 0, 0],
    "swap": [2, 3, 2, 1, 0],
    "permutation": [3, 0, 1, 4, 2],
    "listk": [3, 0, 0, 5, 4, 0, 1],
    "listsearch": [5, 3, 0, 0, 1, 3, 3],
    "merge": [3, 5, 7, 7, 8, 3, 8, 0, 0],
    "walkbst": [4, 0, 0, 0, 6, 7, 0, 1, 0, 0],
}


@pytest.mark.parametrize("name", PINNED)
def test_plain_samples_are_the_same_on_every_platform(name):
    (instance,) = get_task(name).sample(2, 1, seed=7)
    assert instance.input == PINNED[name]


@pytest.mark.parametrize("name", task_names())
def test_seed_decides_and_a_larger_count_continues(name):
    task = get_task(name)
    few = task.sample(5, 3, seed=1)
    assert task.sample(5, 8, seed=1)[:3] == few
    assert task.sample(5, 3, seed=2) != few


@pytest.mark.parametrize("name", task_names())
def test_traced_sampler_keeps_its_types_under_strict_settings(name):
    import jax

    with jax.enable_x64(True), jax.numpy_rank_promotion("raise"):
        drawn = jax.eval_shape(lambda key, n: get_task(name).draw_traced(key, n, 40), jax.random.key(0), 3)
    assert [array.dtype.name for array in drawn] == ["int32", "int32", "bool", "bool"]
