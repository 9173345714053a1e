"""Increment: add 1 to every element of an array that ends with NULL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from nram.lazy import jax, jnp
from nram.limits import StepLimit
from nram.tasks import _plain, _symbolic, _traced
from nram.tasks.base import SymbolicCase, Task, Term, TracedInstance
from nram.tasks.claim import SIZE, Claim, N, always, memory, positive_from, zero_from
from nram.terms import between, number


def sample_input(rng: Random, n: int, memory_size: int) -> list[int]:
    # Up to M-2: a sum of M would wrap around to 0, which reads as the end of the array.
    return _plain.padded(_plain.random_values(rng, n, memory_size - 2), memory_size)


def oracle(memory: Sequence[int]) -> tuple[list[int], list[int]]:
    n = list(memory).index(0)
    return [value + 1 for value in memory[:n]] + list(memory[n:]), list(range(n))


def sample_traced(key: jax.Array, n: Any, memory_size: int) -> TracedInstance:
    array = _traced.between(0, n, memory_size)
    values = _traced.random_values(key, memory_size, memory_size - 2)
    return _traced.instance(jnp.where(array, values, 0), cells=array, answer=values + 1)


def legal_inputs(n: int, memory_size: int) -> Iterator[list[int]]:
    for values in _plain.all_values(n, memory_size - 2):
        yield _plain.padded([*values], memory_size)


def symbolic(n: int, memory_size: Term) -> Iterator[SymbolicCase]:
    values = _symbolic.variables("A", n)
    yield SymbolicCase(
        shape="",
        cells=tuple(enumerate(values)),
        assumptions=tuple(_symbolic.within(values, 1, memory_size - 2)),
        expected=tuple((address, value + 1) for address, value in enumerate(values)),
    )


def claim() -> Claim:
    return Claim(
        assumptions=(
            always((N + 1 <= SIZE) & (number(3) <= SIZE)),
            positive_from(0, N - 1, SIZE - 2),
            zero_from(N),
        ),
        is_output=lambda x: between(0, x, N - 1),
        expected=lambda x: memory(x) + 1,
    )


TASK = Task(
    name="increment",
    summary="Given an array, increment all its elements by 1.",
    layout="A[0..n-1], 0 with values 1..M-2; A[i]+1 takes the place of A[i]",
    trained_up_to=15,
    step_limit=StepLimit(1, 4),
    least_memory=lambda n: max(n + 1, 3),
    sample_input=sample_input,
    oracle=oracle,
    sample_traced=sample_traced,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
    claim=claim,
)
