"""ListSearch: the first node of a linked list that holds a value, among trash."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from nram.lazy import jax, jnp, z3
from nram.limits import StepLimit
from nram.tasks import _plain, _symbolic, _traced
from nram.tasks.base import SymbolicCase, Task, Term, TracedInstance
from nram.tasks.claim import SIZE, Claim, N, always, holds_from, linked_list, list_nodes, memory, node_at
from nram.terms import between, equal, variable


def sample_input(rng: Random, n: int, memory_size: int) -> list[int]:
    # Trash around the nodes, so that a scan of the whole memory does not find the value.
    memory = _plain.random_values(rng, memory_size, memory_size - 1)
    values = _plain.write_linked_list(rng, n, memory)
    memory[1] = rng.choice(values)
    memory[2] = 0
    return memory


def oracle(memory: Sequence[int]) -> tuple[list[int], list[int]]:
    node, wanted = memory[:2]
    for _ in memory:  # a list has fewer nodes than the memory has cells
        if memory[node + 1] == wanted:
            return [*memory[:2], node, *memory[3:]], [2]
        node = memory[node]
    raise ValueError("v is not on the list")


def sample_traced(key: jax.Array, n: Any, memory_size: int) -> TracedInstance:
    trash_key, list_key, wanted_key = jax.random.split(key, 3)
    trash = _traced.random_values(trash_key, memory_size, memory_size - 1)
    memory, nodes, values = _traced.write_linked_list(list_key, n, trash)
    wanted = values[_traced.random_below(wanted_key, n)]
    # The drawn node is among the first n, so the first match is too.
    first_match = nodes[jnp.argmax(values == wanted)]
    start = memory.at[1].set(wanted).at[2].set(0)
    return _traced.instance(start, cells=_traced.between(2, 3, memory_size), answer=first_match)


def legal_inputs(n: int, memory_size: int) -> Iterator[list[int]]:
    rest = memory_size - 3 - 2 * n
    for nodes in _plain.all_placements(n, width=2, first=3, memory_size=memory_size):
        inside = {address for node in nodes for address in (node, node + 1)}
        around = [address for address in range(3, memory_size) if address not in inside]
        for values in _plain.all_values(n, memory_size - 1):
            for wanted in sorted(set(values)):
                cells = [*_plain.list_cells(nodes, values), (1, wanted)]
                for trash in _plain.all_values(rest, memory_size - 1):
                    yield _plain.memory_of([*cells, *zip(around, trash, strict=True)], memory_size)


def symbolic(n: int, memory_size: Term) -> Iterator[SymbolicCase]:
    wanted = z3.Int("v")
    nodes, values, assumptions = _symbolic.linked_list(n, memory_size)
    first_match = nodes[-1]
    for node, value in reversed([*zip(nodes, values, strict=True)][:-1]):
        first_match = z3.If(value == wanted, node, first_match)
    yield SymbolicCase(
        shape="",
        cells=((1, wanted), (2, 0), *_plain.list_cells(nodes, values)),
        assumptions=(*assumptions, z3.Or(*(wanted == value for value in values))),
        expected=((2, first_match),),
        trash=z3.Function("trash", z3.IntSort(), z3.IntSort()),
    )


def claim() -> Claim:
    first = variable("first")  # the number of hops to the first node that holds v
    return Claim(
        assumptions=(
            always(2 * N + 3 <= SIZE),
            *linked_list(),
            always(between(1, memory(1), SIZE - 1)),
            always(equal(memory(2), 0)),
            always(between(0, first, N - 1)),
            always(equal(memory(node_at(first) + 1), memory(1))),
            holds_from(0, first - 1, lambda i: ~equal(memory(node_at(i) + 1), memory(1))),
        ),
        is_output=lambda x: equal(x, 2),
        expected=lambda x: node_at(first),
        numbers={"first": _hops},
        functions={"node": list_nodes},
    )


def _hops(memory: Sequence[int], n: int) -> int:
    return next(i for i, address in enumerate(list_nodes(memory, n)) if memory[address + 1] == memory[1])


TASK = Task(
    name="listsearch",
    summary="Given the head of a linked list and a value v, return the address of the first node with v.",
    layout="head, v, 0, then n nodes (next, value) at random addresses and trash in every other cell; "
    "v is on the list; the address goes to cell 2",
    trained_up_to=6,
    step_limit=StepLimit(3, 8),
    least_memory=lambda n: 3 + 2 * n,
    sample_input=sample_input,
    oracle=oracle,
    sample_traced=sample_traced,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
    claim=claim,
)
