"""Merge: two sorted arrays into one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement
from random import Random
from typing import Any

from nram.lazy import jax, jnp, z3
from nram.limits import StepLimit
from nram.tasks import _plain, _symbolic, _traced
from nram.tasks.base import SymbolicCase, Task, Term, TracedInstance
from nram.tasks.claim import SIZE, Claim, N, always, holds_from, memory, zero_from
from nram.terms import between, both, call, choose, equal, implies, variable


def sample_input(rng: Random, n: int, memory_size: int) -> list[int]:
    split = rng.randrange(n + 1)
    guardian = memory_size - 1  # larger than every value, so a finished array loses each comparison
    values = _plain.random_values(rng, n, guardian - 1)
    arrays = [*sorted(values[:split]), guardian, *sorted(values[split:]), guardian]
    return _plain.padded([3, 3 + split + 1, 3 + len(arrays), *arrays], memory_size)


def oracle(memory: Sequence[int]) -> tuple[list[int], list[int]]:
    guardian = len(memory) - 1
    merged = []
    left, right, out = memory[:3]
    while memory[left] != guardian or memory[right] != guardian:
        if memory[left] <= memory[right]:
            merged.append(memory[left])
            left += 1
        else:
            merged.append(memory[right])
            right += 1
    end = out + len(merged)
    return [*memory[:out], *merged, *memory[end:]], list(range(out, end))


def sample_traced(key: jax.Array, n: Any, memory_size: int) -> TracedInstance:
    most = (memory_size - 5) // 2
    guardian = memory_size - 1
    split_key, value_key = jax.random.split(key)
    split = _traced.random_below(split_key, n + 1)
    values = _traced.random_values(value_key, most, guardian - 1)
    position = _traced.addresses(most)
    used = position < n

    # One sort for both arrays: values of B, and then unused ones, count as larger.
    rank = jnp.where(position < split, 0, jnp.where(used, 1, 2)).astype(jnp.int32)
    in_arrays = jnp.sort(rank * memory_size + values) % memory_size
    in_order = jnp.sort(jnp.where(used, values, memory_size))

    a, b, out = 3, 3 + split + 1, 3 + n + 2
    start = jnp.zeros(memory_size, jnp.int32).at[0].set(a).at[1].set(b).at[2].set(out)
    start = _traced.write(start, jnp.where(position < split, a, a + 1) + position, in_arrays, used)
    start = start.at[b - 1].set(guardian).at[out - 1].set(guardian)
    merged = _traced.write(start, out + position, in_order, used)
    return _traced.instance(start, cells=_traced.between(out, out + n, memory_size), answer=merged)


def legal_inputs(n: int, memory_size: int) -> Iterator[list[int]]:
    guardian = memory_size - 1
    for split in range(n + 1):
        for first in combinations_with_replacement(range(1, guardian), split):
            for second in combinations_with_replacement(range(1, guardian), n - split):
                arrays = [*first, guardian, *second, guardian]
                yield _plain.padded([3, 3 + split + 1, 3 + len(arrays), *arrays], memory_size)


def symbolic(n: int, memory_size: Term) -> Iterator[SymbolicCase]:
    guardian = memory_size - 1
    for split in range(n + 1):
        first, second = _symbolic.variables("A", split), _symbolic.variables("B", n - split)
        arrays = [*first, guardian, *second, guardian]
        pointers = [3, 3 + split + 1, 3 + len(arrays)]
        yield SymbolicCase(
            shape=f"{split} values in A, {n - split} in B",
            cells=tuple(enumerate([*pointers, *arrays])),
            assumptions=(
                *_symbolic.within([*first, *second], 1, guardian - 1),
                *_symbolic.ascending(first),
                *_symbolic.ascending(second),
            ),
            expected=tuple((pointers[2] + rank, _ranked(first, second, rank)) for rank in range(n)),
        )


def _ranked(first: Sequence[Term], second: Sequence[Term], rank: int) -> Term:
    """The value of this rank in two sorted arrays together.

    Take rank + 1 values from the two beginnings: of all ways to do so, the right one has the smallest maximum.
    """
    count = rank + 1
    maxima = []
    for taken in range(max(0, count - len(second)), min(count, len(first)) + 1):
        last = [*first[taken - 1 : taken], *second[count - taken - 1 : count - taken]]
        maxima.append(last[0] if len(last) == 1 else z3.If(last[0] < last[1], last[1], last[0]))
    smallest = maxima[0]
    for maximum in maxima[1:]:
        smallest = z3.If(maximum < smallest, maximum, smallest)
    return smallest


def claim() -> Claim:
    length = variable("length")  # of A
    guardian = SIZE - 1

    def first(i: Term) -> Term:
        return memory(3 + i)

    def second(j: Term) -> Term:
        return memory(4 + length + j)

    def ranked(i: Term, j: Term) -> Term:
        """If i values of A and j of B are not larger than those that follow, the next in order is the smaller head."""
        sizes = both(between(0, i, length), between(0, j, N - length), i + j < N)
        below = both(equal(i, 0) | (first(i - 1) <= second(j)), equal(j, 0) | (second(j - 1) <= first(i)))
        head = choose(first(i) <= second(j), first(i), second(j))
        return implies(sizes & below, equal(call("value", i + j), head))

    return Claim(
        assumptions=(
            always(2 * N + 5 <= SIZE),
            always(between(0, length, N)),
            always(both(equal(memory(0), 3), equal(memory(1), 4 + length), equal(memory(2), 5 + N))),
            holds_from(0, length - 1, lambda i: between(1, first(i), SIZE - 2)),
            holds_from(0, N - length - 1, lambda i: between(1, second(i), SIZE - 2)),
            always(equal(first(length), guardian) & equal(second(N - length), guardian)),
            holds_from(0, length - 1, lambda i: first(i) <= first(i + 1)),
            holds_from(0, N - length - 1, lambda i: second(i) <= second(i + 1)),
            zero_from(5 + N),
            holds_from(0, N - 1, lambda i: between(1, call("value", i), SIZE - 2)),
            always(ranked, triggers=lambda i, j: (first(i), second(j))),
        ),
        is_output=lambda x: between(5 + N, x, 4 + 2 * N),
        expected=lambda x: call("value", x - 5 - N),
        numbers={"length": lambda memory, n: memory[1] - 4},
        functions={"value": lambda memory, n: sorted([*memory[3 : memory[1] - 1], *memory[memory[1] : 4 + n]])},
    )


TASK = Task(
    name="merge",
    summary="Given pointers to two sorted arrays and to the output, merge the arrays into one sorted array.",
    layout="a, b, o, A, G, B, G with A and B sorted (either may be empty, n values 1..M-2 in all) and the "
    "guardian G = M-1; the n values in order go to o..o+n-1",
    trained_up_to=10,
    step_limit=StepLimit(4, 8),
    least_memory=lambda n: 5 + 2 * n,
    sample_input=sample_input,
    oracle=oracle,
    sample_traced=sample_traced,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
    claim=claim,
)
