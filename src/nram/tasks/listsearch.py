"""ListSearch: the first node of a linked list that holds a value, among trash."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Any

from nram.tasks import _plain
from nram.tasks.base import StepLimit, Task, TracedInstance

if TYPE_CHECKING:
    from jax import Array


def sample_input(rng: Random, n: int, memory_size: int) -> list[int]:
    # Trash around the nodes, so that going through the whole memory does not find the value.
    memory = _plain.random_values(rng, memory_size, memory_size - 1)
    values = _plain.write_linked_list(rng, n, memory)
    memory[1] = rng.choice(values)
    memory[2] = 0
    return memory


def oracle(memory: Sequence[int]) -> tuple[list[int], list[int]]:
    node, wanted = memory[:2]
    while memory[node + 1] != wanted:
        node = memory[node]
    return [*memory[:2], node, *memory[3:]], [2]


def sample_traced(key: Array, n: Any, memory_size: int) -> TracedInstance:
    import jax
    import jax.numpy as jnp

    from nram.tasks import _traced

    trash_key, list_key, wanted_key = jax.random.split(key, 3)
    trash = _traced.random_values(trash_key, memory_size, memory_size - 1)
    memory, nodes, values = _traced.write_linked_list(list_key, n, trash)
    wanted = values[_traced.random_below(wanted_key, n)]
    # The node drawn is among the first n, so the first match is too.
    first_match = nodes[jnp.argmax(values == wanted)]
    start = memory.at[1].set(wanted).at[2].set(0)
    return _traced.instance(start, cells=_traced.between(2, 3, memory_size), answer=first_match)


TASK = Task(
    name="listsearch",
    summary="Given the head of a linked list and a value v, return the address of the first node with v.",
    layout="head, v, 0, then n nodes (next, value) at random addresses and trash in every other cell; "
    "v is on the list; the address goes to cell 2",
    min_complexity=1,
    trained_up_to=6,
    step_limit=StepLimit(3, 8),
    least_memory=lambda n: 3 + 2 * n,
    sample_input=sample_input,
    oracle=oracle,
    sample_traced=sample_traced,
)
