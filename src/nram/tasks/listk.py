"""ListK: the value of the node k hops from the head of a linked list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from nram.lazy import jax, jnp, z3
from nram.limits import StepLimit
from nram.tasks import _plain, _symbolic, _traced
from nram.tasks.base import SymbolicCase, Task, Term, TracedInstance
from nram.tasks.claim import SIZE, Claim, N, always, linked_list, list_nodes, memory, node_at
from nram.terms import between, equal


def sample_input(rng: Random, n: int, memory_size: int) -> list[int]:
    memory = [0] * memory_size
    _plain.write_linked_list(rng, n, memory)
    memory[1] = rng.randrange(n)
    return memory


def oracle(memory: Sequence[int]) -> tuple[list[int], list[int]]:
    node, hops = memory[:2]
    for _ in range(hops):
        node = memory[node]
    return [*memory[:2], memory[node + 1], *memory[3:]], [2]


def sample_traced(key: jax.Array, n: Any, memory_size: int) -> TracedInstance:
    list_key, k_key = jax.random.split(key)
    empty = jnp.zeros(memory_size, jnp.int32)
    memory, _, values = _traced.write_linked_list(list_key, n, empty)
    k = _traced.random_below(k_key, n)
    return _traced.instance(memory.at[1].set(k), cells=_traced.between(2, 3, memory_size), answer=values[k])


def legal_inputs(n: int, memory_size: int) -> Iterator[list[int]]:
    for nodes in _plain.all_placements(n, width=2, first=3, memory_size=memory_size):
        for k in range(n):
            for values in _plain.all_values(n, memory_size - 1):
                yield _plain.memory_of([*_plain.list_cells(nodes, values), (1, k)], memory_size)


def symbolic(n: int, memory_size: Term) -> Iterator[SymbolicCase]:
    k = z3.Int("k")
    nodes, values, assumptions = _symbolic.linked_list(n, memory_size)
    yield SymbolicCase(
        shape="",
        cells=((1, k), (2, 0), *_plain.list_cells(nodes, values)),
        assumptions=(*_symbolic.within([k], 0, n - 1), *assumptions),
        expected=((2, _symbolic.selected(k, values)),),
    )


def claim() -> Claim:
    return Claim(
        assumptions=(
            always(2 * N + 3 <= SIZE),
            *linked_list(),
            always(between(0, memory(1), N - 1)),
            always(equal(memory(2), 0)),
        ),
        is_output=lambda x: equal(x, 2),
        expected=lambda x: memory(node_at(memory(1)) + 1),
        functions={"node": list_nodes},
    )


TASK = Task(
    name="listk",
    summary="Given the head of a linked list and a number k, return the value of the node k hops away.",
    layout="head, k, 0, then n nodes (next, value) at random addresses, 0 <= k < n; the value goes to cell 2",
    trained_up_to=10,
    step_limit=StepLimit(2, 8),
    least_memory=lambda n: 3 + 2 * n,
    sample_input=sample_input,
    oracle=oracle,
    sample_traced=sample_traced,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
    claim=claim,
)
