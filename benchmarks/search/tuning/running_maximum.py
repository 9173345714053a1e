"""Replace each element by the largest so far."""

from itertools import accumulate

from nram.tasks import StepLimit, Task


def sample_input(rng, n, memory_size):
    values = [rng.randrange(1, memory_size) for _ in range(n)]
    return [*values] + [0] * (memory_size - n)


def oracle(memory):
    end = memory.index(0)
    return [*accumulate(memory[:end], max), *memory[end:]], list(range(end))


TASK = Task(
    name="running_maximum",
    summary="Given an array, replace each element by the largest one up to it.",
    layout="A[0..n-1], 0; in place",
    step_limit=StepLimit(3, 8),
    least_memory=lambda n: max(n + 1, 3),
    sample_input=sample_input,
    oracle=oracle,
)
