"""Count how often neighbours differ."""

from nram.tasks import StepLimit, Task


def sample_input(rng, n, memory_size):
    values = [rng.randrange(1, memory_size) for _ in range(n)]
    for i in range(1, n):
        if rng.random() < 0.5:
            values[i] = values[i - 1]
    return [0, *values] + [0] * (memory_size - n - 1)


def oracle(memory):
    values = memory[1 : memory.index(0, 1)]
    return [sum(a != b for a, b in zip(values, values[1:], strict=False)), *memory[1:]], [0]


TASK = Task(
    name="changes",
    summary="Given an array, count the elements that differ from the one before.",
    layout="0, A[0..n-1], 0; the count goes to cell 0",
    step_limit=StepLimit(3, 8),
    least_memory=lambda n: n + 2,
    sample_input=sample_input,
    oracle=oracle,
)
