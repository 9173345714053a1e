"""Sort the pairs of two arrays."""

from nram.tasks import StepLimit, Task


def sample_input(rng, n, memory_size):
    values = [rng.randrange(1, memory_size) for _ in range(2 * n)]
    return [n + 2, *values[:n], 0, *values[n:]] + [0] * (memory_size - 2 * n - 2)


def oracle(memory):
    b = memory[0]
    pairs = list(zip(memory[1 : b - 1], memory[b : 2 * b - 2], strict=True))
    after = [b, *map(min, pairs), 0, *map(max, pairs), *memory[2 * b - 2 :]]
    return after, [*range(1, b - 1), *range(b, 2 * b - 2)]


TASK = Task(
    name="lesser_greater",
    summary="Given two arrays, exchange the elements at the same place where the first is larger.",
    layout="b, A[0..n-1], 0, B[0..n-1], 0 with B at address b; A gets the smaller of each pair, B the larger",
    step_limit=StepLimit(4, 8),
    least_memory=lambda n: 2 * n + 3,
    sample_input=sample_input,
    oracle=oracle,
)
