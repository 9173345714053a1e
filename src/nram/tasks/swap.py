"""Swap: exchange two elements of an array. The pointers are absolute addresses, as in the paper's table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from random import Random
from typing import Any

from nram.lazy import jax, jnp, z3
from nram.limits import StepLimit
from nram.tasks import _plain, _symbolic, _traced
from nram.tasks.base import SymbolicCase, Task, Term, TracedInstance
from nram.tasks.claim import SIZE, Claim, N, always, memory, positive_from, zero_from
from nram.terms import between, both, choose, equal, number


def sample_input(rng: Random, n: int, memory_size: int) -> list[int]:
    p, q = sorted(rng.sample(range(2, n + 2), 2))
    return _plain.padded([p, q, *_plain.random_values(rng, n, memory_size - 1)], memory_size)


def oracle(memory: Sequence[int]) -> tuple[list[int], list[int]]:
    p, q = memory[:2]
    expected = list(memory)
    expected[p], expected[q] = memory[q], memory[p]
    return expected, list(range(2, expected.index(0, 2)))


def scored_cells(memory: Sequence[int], cells: list[int]) -> list[int]:
    # The rest of A must stay as it is: it counts for an exact match, but nothing there is modified.
    return list(memory[:2])


def sample_traced(key: jax.Array, n: Any, memory_size: int) -> TracedInstance:
    one_key, other_key, value_key = jax.random.split(key, 3)
    one = _traced.random_below(one_key, n)
    other = _traced.random_below(other_key, n - 1)
    other = other + (other >= one)  # uniform over the n-1 elements that are left
    p = 2 + jnp.minimum(one, other)
    q = 2 + jnp.maximum(one, other)

    array = _traced.between(2, n + 2, memory_size)
    values = _traced.random_values(value_key, memory_size, memory_size - 1)
    start = jnp.where(array, values, 0).at[0].set(p).at[1].set(q)
    address = _traced.addresses(memory_size)
    return _traced.instance(
        start,
        cells=array,
        answer=start.at[p].set(start[q]).at[q].set(start[p]),
        scored=(address == p) | (address == q),
    )


def legal_inputs(n: int, memory_size: int) -> Iterator[list[int]]:
    for p, q in combinations(range(2, n + 2), 2):
        for values in _plain.all_values(n, memory_size - 1):
            yield _plain.padded([p, q, *values], memory_size)


def symbolic(n: int, memory_size: Term) -> Iterator[SymbolicCase]:
    p, q, values = z3.Int("p"), z3.Int("q"), _symbolic.variables("A", n)
    at_p, at_q = _symbolic.selected(p - 2, values), _symbolic.selected(q - 2, values)
    yield SymbolicCase(
        shape="",
        cells=((0, p), (1, q), *enumerate(values, start=2)),
        assumptions=(p >= 2, p < q, q <= n + 1, *_symbolic.within(values, 1, memory_size - 1)),
        expected=tuple(
            (address, z3.If(p == address, at_q, z3.If(q == address, at_p, value)))
            for address, value in enumerate(values, start=2)
        ),
    )


def claim() -> Claim:
    p, q = memory(0), memory(1)
    return Claim(
        assumptions=(
            always(N + 3 <= SIZE),
            always(both(number(2) <= p, p < q, q <= N + 1)),
            positive_from(2, N + 1),
            zero_from(N + 2),
        ),
        is_output=lambda x: between(2, x, N + 1),
        expected=lambda x: choose(equal(x, p), memory(q), choose(equal(x, q), memory(p), memory(x))),
    )


TASK = Task(
    name="swap",
    summary="Given two pointers p, q and an array A, swap the elements they point to.",
    layout="p, q, A[0..n-1], 0 with p < q addresses inside A; the cells at p and q are exchanged",
    min_complexity=2,
    trained_up_to=20,
    step_limit=StepLimit(0, 8),
    least_memory=lambda n: n + 3,
    sample_input=sample_input,
    oracle=oracle,
    sample_traced=sample_traced,
    scored_cells=scored_cells,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
    claim=claim,
)
