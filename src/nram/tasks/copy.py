"""Copy: copy an array to the address that a pointer gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from nram.lazy import jax, jnp
from nram.limits import StepLimit
from nram.tasks import _plain, _symbolic, _traced
from nram.tasks.base import SymbolicCase, Task, Term, TracedInstance
from nram.tasks.claim import SIZE, Claim, N, always, memory, positive_from, zero_from
from nram.terms import between, equal, number


def sample_input(rng: Random, n: int, memory_size: int) -> list[int]:
    return _plain.padded([n + 1, *_plain.random_values(rng, n, memory_size - 1)], memory_size)


def oracle(memory: Sequence[int]) -> tuple[list[int], list[int]]:
    destination = memory[0]
    array = list(memory[1:destination])  # the destination is the cell after A
    end = destination + len(array)
    return [*memory[:destination], *array, *memory[end:]], list(range(destination, end))


def traced_start(key: jax.Array, n: Any, memory_size: int) -> jax.Array:
    values = _traced.random_values(key, memory_size, memory_size - 1)
    return jnp.where(_traced.between(1, n + 1, memory_size), values, 0).at[0].set(n + 1)


def sample_traced(key: jax.Array, n: Any, memory_size: int) -> TracedInstance:
    start = traced_start(key, n, memory_size)
    return _traced.instance(start, cells=_traced.between(n + 1, 2 * n + 1, memory_size), answer=jnp.roll(start, n))


def legal_inputs(n: int, memory_size: int) -> Iterator[list[int]]:
    for values in _plain.all_values(n, memory_size - 1):
        yield _plain.padded([n + 1, *values], memory_size)


def symbolic(n: int, memory_size: Term) -> Iterator[SymbolicCase]:
    values = _symbolic.variables("A", n)
    yield SymbolicCase(
        shape="",
        cells=((0, n + 1), *enumerate(values, start=1)),
        assumptions=tuple(_symbolic.within(values, 1, memory_size - 1)),
        expected=tuple(enumerate(values, start=n + 1)),
    )


def claim() -> Claim:
    return Claim(
        assumptions=(
            always((2 * N + 1 <= SIZE) & (number(3) <= SIZE)),
            always(equal(memory(0), N + 1)),
            positive_from(1, N),
            zero_from(N + 1),
        ),
        is_output=lambda x: between(N + 1, x, 2 * N),
        expected=lambda x: memory(x - N),
    )


TASK = Task(
    name="copy",
    summary="Given an array and a pointer to the destination, copy the array there.",
    layout="p, A[0..n-1] with p = n+1; A goes to p..p+n-1",
    trained_up_to=15,
    step_limit=StepLimit(2, 4),
    least_memory=lambda n: max(2 * n + 1, 3),
    sample_input=sample_input,
    oracle=oracle,
    sample_traced=sample_traced,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
    claim=claim,
)
