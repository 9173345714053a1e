"""Find the first of the largest elements."""

from nram.tasks import StepLimit, Task


def sample_input(rng, n, memory_size):
    values = [rng.randrange(1, memory_size) for _ in range(n)]
    return [0, *values] + [0] * (memory_size - n - 1)


def oracle(memory):
    values = memory[1 : memory.index(0, 1)]
    return [1 + values.index(max(values)), *memory[1:]], [0]


TASK = Task(
    name="largest_position",
    summary="Given an array, return the address of the first of its largest elements.",
    layout="0, A[0..n-1], 0; the address goes to cell 0",
    step_limit=StepLimit(3, 8),
    least_memory=lambda n: n + 2,
    sample_input=sample_input,
    oracle=oracle,
)
