"""WalkBST: follow a path of left and right steps from the root of a binary search tree.

Inserting keys one after another gives the Cartesian tree on (rank of the key, time of its insertion): among the
earlier keys, take the next smaller and the next larger one; a node's parent is the later of these two. Both samplers
build the tree in this way: the plain one because insertion takes quadratic time on sorted keys, the traced one because
it needs no loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from random import Random
from typing import Any

from nram.lazy import jax, jnp
from nram.limits import StepLimit
from nram.tasks import _plain, _symbolic, _traced
from nram.tasks.base import SymbolicCase, Task, Term, TracedInstance
from nram.tasks.claim import SIZE, Claim, N, always, apart, holds_from, memory, node_at
from nram.terms import between, equal, variable

# For one tree in four the keys are inserted in ascending or descending order (a fair coin), after 0 to 3 transpositions
# of two random positions (which may coincide): such trees are deep.
NEARLY_SORTED_ONE_IN = 4
MOST_TRANSPOSITIONS = 3


def insertion_times(rng: Random, n: int) -> list[int]:
    """When each key is inserted, by rank."""
    times = list(range(n))
    if rng.randrange(NEARLY_SORTED_ONE_IN):
        rng.shuffle(times)
        return times
    if rng.randrange(2):
        times.reverse()
    for _ in range(rng.randrange(MOST_TRANSPOSITIONS + 1)):
        i, j = rng.randrange(n), rng.randrange(n)
        times[i], times[j] = times[j], times[i]
    return times


def parents(times: list[int]) -> list[int]:
    """Each node's parent, by rank; -1 for the root."""
    parent = [-1] * len(times)
    right_spine: list[int] = []  # of the tree of the ranks so far, from the root down
    for rank, time in enumerate(times):
        below = -1
        while right_spine and times[right_spine[-1]] > time:
            below = right_spine.pop()
        if below >= 0:
            parent[below] = rank
        if right_spine:
            parent[rank] = right_spine[-1]
        right_spine.append(rank)
    return parent


def leaves(parent: Sequence[int]) -> list[int]:
    inner = set(parent)
    return [rank for rank in range(len(parent)) if rank not in inner]


def path_to(leaf: int, parent: Sequence[int]) -> list[int]:
    """The steps from the root: 0 to the left, 1 to the right."""
    path: list[int] = []
    below, node = leaf, parent[leaf]
    while node >= 0:
        path.append(int(below > node))
        below, node = node, parent[node]
    path.reverse()
    return path


def tree_cells(
    parent: Sequence[int], path: Sequence[int], nodes: Sequence[Term], keys: Sequence[Term]
) -> list[tuple[Term, Term]]:
    """Addresses and values of the root's pointer, the path and the nodes, given each node's address and key by rank."""
    children = [[0, 0] for _ in parent]
    for rank, above in enumerate(parent):
        if above >= 0:
            children[above][rank > above] = nodes[rank]
    cells = [(0, nodes[list(parent).index(-1)]), *enumerate(path, start=2)]
    for node, key, (left, right) in zip(nodes, keys, children, strict=True):
        cells += [(node, key), (node + 1, left), (node + 2, right)]
    return cells


def sample_input(rng: Random, n: int, memory_size: int) -> list[int]:
    parent = parents(insertion_times(rng, n))
    leaf = rng.choice(leaves(parent))
    path = path_to(leaf, parent)
    nodes = _plain.place_blocks(rng, n, width=3, first=3 + len(path), memory_size=memory_size)
    keys = sorted(rng.sample(range(1, memory_size), n))
    return _plain.memory_of(tree_cells(parent, path, nodes, keys), memory_size)


def oracle(memory: Sequence[int]) -> tuple[list[int], list[int]]:
    node = memory[0]
    step = 2
    # The path ends at a leaf: beyond it, the final 0 would look like a step to the left.
    while memory[node + 1] or memory[node + 2]:
        node = memory[node + 1 + memory[step]]
        step += 1
    return [memory[0], memory[node], *memory[2:]], [1]


def sample_traced(key: jax.Array, n: Any, memory_size: int) -> TracedInstance:
    most = (memory_size - 2) // 4
    times_key, leaf_key, place_key, value_key = jax.random.split(key, 4)
    rank = _traced.addresses(most)
    used = rank < n
    time = jnp.where(used, _traced_insertion_times(times_key, n, most), most)

    # The nearest rank on each side that was inserted earlier; -1 and n if there is none.
    earlier = time[None, :] < time[:, None]
    left = jnp.max(jnp.where(earlier & (rank[None, :] < rank[:, None]), rank[None, :], -1), axis=1)
    right = jnp.min(jnp.where(earlier & (rank[None, :] > rank[:, None]), rank[None, :], n), axis=1)
    left_time = jnp.where(left >= 0, time[left], -1)
    right_time = jnp.where(right < n, time[right], -1)
    parent = jnp.where(left_time > right_time, left, right)
    is_root = time == 0

    # A node's subtree is everything between these two, so a leaf is alone between them.
    is_leaf = used & (left == rank - 1) & (right == rank + 1)
    draw = jax.random.bits(leaf_key, (most,), jnp.uint32) >> 1
    leaf = jnp.argmax(jnp.where(is_leaf, draw + 1, 0)).astype(jnp.int32)
    on_path = used & (left < leaf) & (leaf < right) & (rank != leaf)
    depth = jnp.sum(on_path[None, :] & earlier, axis=1, dtype=jnp.int32)
    length = jnp.sum(on_path, dtype=jnp.int32)

    nodes = _traced.place_blocks(place_key, n, width=3, first=3 + length, memory_size=memory_size, most=most)
    drawn_keys = 1 + _traced.random_order(value_key, memory_size - 1, memory_size - 1)[:most]
    keys = jnp.sort(jnp.where(used, drawn_keys, memory_size))
    child_cell = nodes[parent] + 1 + (rank > parent)

    memory = jnp.zeros(memory_size, jnp.int32).at[0].set(nodes[jnp.argmax(is_root)])
    memory = _traced.write(memory, 2 + depth, (leaf > rank).astype(jnp.int32), on_path)
    memory = _traced.write(memory, nodes, keys, used)
    memory = _traced.write(memory, child_cell, nodes, used & ~is_root)
    return _traced.instance(memory, cells=_traced.between(1, 2, memory_size), answer=keys[leaf])


def _traced_insertion_times(key: jax.Array, n: Any, most: int) -> jax.Array:
    """`insertion_times` for the first n of `most` ranks."""
    order_key, kind_key, direction_key, count_key, place_key = jax.random.split(key, 5)
    rank = _traced.addresses(most)
    nearly_sorted = jnp.where(_traced.random_below(direction_key, 2) == 1, n - 1 - rank, rank)
    transpositions = _traced.random_below(count_key, MOST_TRANSPOSITIONS + 1)
    positions = jax.random.randint(place_key, (MOST_TRANSPOSITIONS, 2), 0, n, dtype=jnp.int32)
    for index in range(MOST_TRANSPOSITIONS):
        i = positions[index, 0]
        j = jnp.where(index < transpositions, positions[index, 1], i)
        nearly_sorted = nearly_sorted.at[i].set(nearly_sorted[j]).at[j].set(nearly_sorted[i])
    is_nearly_sorted = _traced.random_below(kind_key, NEARLY_SORTED_ONE_IN) == 0
    return jnp.where(is_nearly_sorted, nearly_sorted, _traced.random_order(order_key, n, most))


def all_parents(n: int) -> Iterator[list[int]]:
    """The parents in every tree of n nodes."""
    if n == 0:
        yield []
    for root in range(n):
        for left in all_parents(root):
            for right in all_parents(n - root - 1):
                below_left = [root if parent < 0 else parent for parent in left]
                below_right = [root if parent < 0 else parent + root + 1 for parent in right]
                yield [*below_left, -1, *below_right]


def legal_inputs(n: int, memory_size: int) -> Iterator[list[int]]:
    for parent in all_parents(n):
        for leaf in leaves(parent):
            path = path_to(leaf, parent)
            for nodes in _plain.all_placements(n, width=3, first=3 + len(path), memory_size=memory_size):
                for keys in combinations(range(1, memory_size), n):
                    yield _plain.memory_of(tree_cells(parent, path, nodes, keys), memory_size)


def symbolic(n: int, memory_size: Term) -> Iterator[SymbolicCase]:
    nodes, keys = _symbolic.variables("node", n), _symbolic.variables("key", n)
    for parent in all_parents(n):
        for leaf in leaves(parent):
            path = path_to(leaf, parent)
            yield SymbolicCase(
                shape=f"parents {parent}, leaf {leaf}",
                cells=((1, 0), *tree_cells(parent, path, nodes, keys), (2 + len(path), 0)),
                assumptions=(
                    *_symbolic.within(nodes, 3 + len(path), memory_size - 3),
                    *_symbolic.apart(nodes, width=3),
                    *_symbolic.within(keys, 1, memory_size - 1),
                    *_symbolic.ascending(keys),
                    *_symbolic.distinct(keys),
                ),
                expected=((1, keys[leaf]),),
            )


def claim() -> Claim:
    length = variable("length")  # of the path

    def step(i: Term) -> Term:
        return memory(2 + i)

    return Claim(
        assumptions=(
            always(4 * N + 2 <= SIZE),
            always(between(0, length, N - 1)),
            always(equal(memory(1), 0) & equal(step(length), 0)),
            holds_from(0, length - 1, lambda i: between(0, step(i), 1)),
            always(equal(node_at(0), memory(0))),
            holds_from(0, length - 1, lambda i: equal(memory(node_at(i) + 1 + step(i)), node_at(i + 1))),
            holds_from(0, length, lambda i: between(3 + length, node_at(i), SIZE - 3)),
            holds_from(0, length, lambda i: between(1, memory(node_at(i)), SIZE - 1)),
            always(equal(memory(node_at(length) + 1), 0) & equal(memory(node_at(length) + 2), 0)),
            apart(length, 3),
        ),
        is_output=lambda x: equal(x, 1),
        expected=lambda x: memory(node_at(length)),
        numbers={"length": lambda memory, n: len(_path(memory)) - 1},
        functions={"node": lambda memory, n: _path(memory)},
    )


def _path(memory: Sequence[int]) -> list[int]:
    """The addresses of the nodes on the path."""
    nodes = [memory[0]]
    while memory[nodes[-1] + 1] or memory[nodes[-1] + 2]:
        nodes.append(memory[nodes[-1] + 1 + memory[1 + len(nodes)]])
    return nodes


TASK = Task(
    name="walkbst",
    summary="Given the root of a binary search tree and a path, return the value at the end of the path.",
    layout="root, 0, d_1..d_k, 0, then n nodes (value, left, right) at random addresses, a search tree with "
    "distinct keys; d_i is 0 for left and 1 for right, and the path ends at a leaf; its value goes to cell 1",
    trained_up_to=10,
    step_limit=StepLimit(4, 8),
    least_memory=lambda n: 4 * n + 2,  # 3 cells a node, and a path of up to n-1 steps
    sample_input=sample_input,
    oracle=oracle,
    sample_traced=sample_traced,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
    claim=claim,
)
