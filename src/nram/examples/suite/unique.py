"""The different values of an ascending array."""

from itertools import combinations_with_replacement

from nram.tasks import StepLimit, Task


def sample_input(rng, n, memory_size):
    # About half of the elements repeat the one before.
    some = rng.sample(range(1, memory_size), min(memory_size - 1, n // 2 + 1))
    return sorted(rng.choice(some) for _ in range(n)) + [0] * (memory_size - n)


def oracle(memory):
    kept = sorted(set(memory[: memory.index(0)]))
    end = len(kept) + 1
    return [*kept, 0, *memory[end:]], list(range(end))


def legal_inputs(n, memory_size):
    for values in combinations_with_replacement(range(1, memory_size), n):
        if len(set(values)) <= n // 2 + 1:
            yield [*values] + [0] * (memory_size - n)


TASK = Task(
    name="unique",
    summary="Given an ascending array, keep one of every value and close the gaps.",
    layout="A[0..n-1], 0 with A ascending; each value of A goes once to cells 0, 1, ..., and 0 behind the last",
    min_complexity=2,
    step_limit=StepLimit(3, 8),
    least_memory=lambda n: n + 1,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
)
