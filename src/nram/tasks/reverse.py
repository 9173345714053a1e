"""Reverse: write an array backwards, to where a pointer says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

from nram.limits import StepLimit
from nram.tasks import _enumerated, _plain
from nram.tasks.base import SymbolicCase, Task, Term, TracedInstance

if TYPE_CHECKING:
    from jax import Array


def sample_input(rng: Random, n: int, memory_size: int) -> list[int]:
    return _plain.padded([n + 1, *_plain.random_values(rng, n, memory_size - 1)], memory_size)


def oracle(memory: Sequence[int]) -> tuple[list[int], list[int]]:
    destination = memory[0]
    array = list(memory[1:destination])  # the destination is the cell after A
    end = destination + len(array)
    return [*memory[:destination], *reversed(array), *memory[end:]], list(range(destination, end))


def sample_traced(key: Array, n: Any, memory_size: int) -> TracedInstance:
    import jax.numpy as jnp

    from nram.tasks import _traced

    values = _traced.random_values(key, memory_size, memory_size - 1)
    start = jnp.where(_traced.between(1, n + 1, memory_size), values, 0).at[0].set(n + 1)
    # Cell p+i takes A[n-1-i]: the two addresses, n+1+i and n-i, add up to 2n+1.
    mirrored = start.at[2 * n + 1 - _traced.addresses(memory_size)].get(mode="clip")
    return _traced.instance(start, cells=_traced.between(n + 1, 2 * n + 1, memory_size), answer=mirrored)


def legal_inputs(n: int, memory_size: int) -> Iterator[list[int]]:
    for values in _enumerated.all_values(n, memory_size - 1):
        yield _plain.padded([n + 1, *values], memory_size)


def symbolic(n: int, memory_size: Term) -> Iterator[SymbolicCase]:
    from nram.tasks import _symbolic

    values = _symbolic.variables("A", n)
    yield SymbolicCase(
        shape="",
        cells=((0, n + 1), *enumerate(values, start=1)),
        assumptions=tuple(_symbolic.within(values, 1, memory_size - 1)),
        expected=tuple(enumerate(reversed(values), start=n + 1)),
    )


TASK = Task(
    name="reverse",
    summary="Given an array and a pointer to the destination, copy the array there in reversed order.",
    layout="p, A[0..n-1] with p = n+1; A reversed goes to p..p+n-1",
    min_complexity=1,
    trained_up_to=15,
    step_limit=StepLimit(2, 4),
    least_memory=lambda n: max(2 * n + 1, 3),
    sample_input=sample_input,
    oracle=oracle,
    sample_traced=sample_traced,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
)
