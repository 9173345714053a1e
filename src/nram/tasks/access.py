"""Access: return A[k]. The paper's text, not its table: k counts from the start of A."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from nram.lazy import jax, jnp, z3
from nram.limits import StepLimit
from nram.tasks import _plain, _symbolic, _traced
from nram.tasks.base import SymbolicCase, Task, Term, TracedInstance
from nram.tasks.claim import SIZE, Claim, N, always, memory, positive_from, zero_from
from nram.terms import between, equal


def sample_input(rng: Random, n: int, memory_size: int) -> list[int]:
    k = rng.randrange(n)
    return _plain.padded([k, *_plain.random_values(rng, n, memory_size - 1)], memory_size)


def oracle(memory: Sequence[int]) -> tuple[list[int], list[int]]:
    k = memory[0]
    return [memory[k + 1], *memory[1:]], [0]


def sample_traced(key: jax.Array, n: Any, memory_size: int) -> TracedInstance:
    k_key, value_key = jax.random.split(key)
    k = _traced.random_below(k_key, n)
    values = _traced.random_values(value_key, memory_size, memory_size - 1)
    start = jnp.where(_traced.between(1, n + 1, memory_size), values, 0).at[0].set(k)
    return _traced.instance(start, cells=_traced.between(0, 1, memory_size), answer=start[k + 1])


def legal_inputs(n: int, memory_size: int) -> Iterator[list[int]]:
    for k in range(n):
        for values in _plain.all_values(n, memory_size - 1):
            yield _plain.padded([k, *values], memory_size)


def symbolic(n: int, memory_size: Term) -> Iterator[SymbolicCase]:
    k, values = z3.Int("k"), _symbolic.variables("A", n)
    yield SymbolicCase(
        shape="",
        cells=((0, k), *enumerate(values, start=1)),
        assumptions=(*_symbolic.within([k], 0, n - 1), *_symbolic.within(values, 1, memory_size - 1)),
        expected=((0, _symbolic.selected(k, values)),),
    )


def claim() -> Claim:
    return Claim(
        assumptions=(
            always(N + 2 <= SIZE),
            always(between(0, memory(0), N - 1)),
            positive_from(1, N),
            zero_from(N + 1),
        ),
        is_output=lambda x: equal(x, 0),
        expected=lambda x: memory(memory(0) + 1),
    )


TASK = Task(
    name="access",
    summary="Given k and an array A, return A[k].",
    layout="k, A[0..n-1], 0 with 0 <= k < n; A[k], the cell at address k+1, goes to cell 0",
    trained_up_to=20,
    step_limit=StepLimit(0, 6),
    least_memory=lambda n: n + 2,
    sample_input=sample_input,
    oracle=oracle,
    sample_traced=sample_traced,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
    claim=claim,
)
