"""Reverse: copy an array in reverse to the address that a pointer gives. The inputs are those of copy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from nram.lazy import jax
from nram.tasks import _traced, copy
from nram.tasks.base import SymbolicCase, Term, TracedInstance
from nram.tasks.claim import Claim, N, memory


def oracle(memory: Sequence[int]) -> tuple[list[int], list[int]]:
    destination = memory[0]
    array = list(memory[1:destination])  # the destination is the cell after A
    end = destination + len(array)
    return [*memory[:destination], *reversed(array), *memory[end:]], list(range(destination, end))


def sample_traced(key: jax.Array, n: Any, memory_size: int) -> TracedInstance:
    start = copy.traced_start(key, n, memory_size)
    # Cell p+i takes A[n-1-i]: the two addresses, n+1+i and n-i, add up to 2n+1.
    mirrored = start.at[2 * n + 1 - _traced.addresses(memory_size)].get(mode="clip")
    return _traced.instance(start, cells=_traced.between(n + 1, 2 * n + 1, memory_size), answer=mirrored)


def symbolic(n: int, memory_size: Term) -> Iterator[SymbolicCase]:
    (case,) = copy.symbolic(n, memory_size)
    array = [value for _, value in case.expected]
    yield replace(case, expected=tuple(enumerate(reversed(array), start=n + 1)))


def claim() -> Claim:
    return replace(copy.claim(), expected=lambda x: memory(2 * N + 1 - x))


TASK = replace(
    copy.TASK,
    name="reverse",
    summary="Given an array and a pointer to the destination, copy the array there in reversed order.",
    layout="p, A[0..n-1] with p = n+1; A reversed goes to p..p+n-1",
    oracle=oracle,
    sample_traced=sample_traced,
    symbolic=symbolic,
    claim=claim,
)
