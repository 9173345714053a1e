"""Permutation: overwrite a permutation with the array, reordered by it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from random import Random
from typing import Any

from nram.lazy import jax, jnp
from nram.limits import StepLimit
from nram.tasks import _plain, _symbolic, _traced
from nram.tasks.base import SymbolicCase, Task, Term, TracedInstance
from nram.tasks.claim import SIZE, Claim, N, always, holds_from, memory, positive_from, zero_from
from nram.terms import between, both, equal, implies, number


def sample_input(rng: Random, n: int, memory_size: int) -> list[int]:
    permutation = list(range(n))
    rng.shuffle(permutation)
    array = _plain.random_values(rng, n, memory_size - 1)
    return _plain.padded([n + 1, *permutation, *array], memory_size)


def oracle(memory: Sequence[int]) -> tuple[list[int], list[int]]:
    array = memory[0]
    permuted = [memory[array + index] for index in memory[1:array]]
    return [array, *permuted, *memory[array:]], list(range(1, array))


def sample_traced(key: jax.Array, n: Any, memory_size: int) -> TracedInstance:
    order_key, value_key = jax.random.split(key)
    cells = _traced.between(1, n + 1, memory_size)
    permutation = jnp.roll(_traced.random_order(order_key, n, memory_size), 1)
    values = _traced.random_values(value_key, memory_size, memory_size - 1)
    start = jnp.where(cells, permutation, 0).at[0].set(n + 1)
    start = jnp.where(_traced.between(n + 1, 2 * n + 1, memory_size), values, start)
    return _traced.instance(start, cells, answer=start.at[n + 1 + permutation].get(mode="clip"))


def legal_inputs(n: int, memory_size: int) -> Iterator[list[int]]:
    for permutation in permutations(range(n)):
        for values in _plain.all_values(n, memory_size - 1):
            yield _plain.padded([n + 1, *permutation, *values], memory_size)


def symbolic(n: int, memory_size: Term) -> Iterator[SymbolicCase]:
    permutation, values = _symbolic.variables("P", n), _symbolic.variables("A", n)
    yield SymbolicCase(
        shape="",
        cells=((0, n + 1), *enumerate([*permutation, *values], start=1)),
        assumptions=(
            *_symbolic.within(permutation, 0, n - 1),
            *_symbolic.distinct(permutation),
            *_symbolic.within(values, 1, memory_size - 1),
        ),
        expected=tuple(
            (address, _symbolic.selected(index, values)) for address, index in enumerate(permutation, start=1)
        ),
    )


def claim() -> Claim:
    def different(i: Term, j: Term) -> Term:
        return implies(both(number(1) <= i, i < j, j <= N), ~equal(memory(i), memory(j)))

    return Claim(
        assumptions=(
            always((2 * N + 1 <= SIZE) & (number(3) <= SIZE)),
            always(equal(memory(0), N + 1)),
            holds_from(1, N, lambda i: between(0, memory(i), N - 1)),
            always(different),
            positive_from(N + 1, 2 * N),
            zero_from(2 * N + 1),
        ),
        is_output=lambda x: between(1, x, N),
        expected=lambda x: memory(N + 1 + memory(x)),
    )


TASK = Task(
    name="permutation",
    summary="Given a permutation P of 0..n-1 and an array A, overwrite P[i] with A[P[i]].",
    layout="a, P[0..n-1], A[0..n-1] with a = n+1, P a permutation of 0..n-1; A[P[i]] takes the place of P[i]",
    trained_up_to=6,
    step_limit=StepLimit(2, 6),
    least_memory=lambda n: max(2 * n + 1, 3),
    sample_input=sample_input,
    oracle=oracle,
    sample_traced=sample_traced,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
    claim=claim,
)
