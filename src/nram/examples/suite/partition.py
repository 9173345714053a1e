"""Separate the elements of an array below a limit from the others, in a second array."""

from itertools import product

from nram.tasks import StepLimit, Task


def memory_of(limit, values, memory_size):
    n = len(values)
    return [limit, n + 4, 2 * n + 3, *values] + [0] * (memory_size - n - 3)


def sample_input(rng, n, memory_size):
    limit = rng.randrange(1, memory_size)
    # A quarter of the elements equal the limit, and these are not below it.
    values = [limit if rng.random() < 0.25 else rng.randrange(1, memory_size) for _ in range(n)]
    return memory_of(limit, values, memory_size)


def oracle(memory):
    limit, first, last = memory[:3]
    values = memory[3 : first - 1]
    below = [value for value in values if value < limit]
    others = [value for value in values if value >= limit]
    return [*memory[:first], *below, *reversed(others), *memory[last + 1 :]], list(range(first, last + 1))


def legal_inputs(n, memory_size):
    for limit, *values in product(range(1, memory_size), repeat=n + 1):
        yield memory_of(limit, values, memory_size)


TASK = Task(
    name="partition",
    summary="Given a limit and an array, copy the elements below the limit to the front of a second array, "
    "the others to its back.",
    layout="x, p, q, A[0..n-1], 0, n zeros from address p to q; elements below x go to p, p+1, ..., "
    "the others to q, q-1, ... in the order of A",
    trained_up_to=8,
    step_limit=StepLimit(3, 8),
    least_memory=lambda n: 2 * n + 4,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
)
