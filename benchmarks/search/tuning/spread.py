"""The distance between the largest and the smallest element."""

from nram.tasks import StepLimit, Task


def sample_input(rng, n, memory_size):
    values = [rng.randrange(1, memory_size) for _ in range(n)]
    return [0, *values] + [0] * (memory_size - n - 1)


def oracle(memory):
    values = memory[1 : memory.index(0, 1)]
    return [max(values) - min(values), *memory[1:]], [0]


TASK = Task(
    name="spread",
    summary="Given an array, return its largest element minus its smallest.",
    layout="0, A[0..n-1], 0; the difference goes to cell 0",
    step_limit=StepLimit(3, 8),
    least_memory=lambda n: n + 2,
    sample_input=sample_input,
    oracle=oracle,
)
