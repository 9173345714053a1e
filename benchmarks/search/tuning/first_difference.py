"""Where two arrays first differ."""

from nram.tasks import StepLimit, Task


def sample_input(rng, n, memory_size):
    first = [rng.randrange(1, memory_size) for _ in range(n)]
    same = n if rng.random() < 0.3 else rng.randrange(n)
    second = [*first[:same], *(rng.randrange(1, memory_size) for _ in range(n - same))]
    return [n + 2, *first, 0, *second] + [0] * (memory_size - 2 * n - 2)


def oracle(memory):
    b = memory[0]
    pairs = zip(memory[1 : b - 1], memory[b : 2 * b - 2], strict=True)
    return [next((i for i, (x, y) in enumerate(pairs, 1) if x != y), 0), *memory[1:]], [0]


TASK = Task(
    name="first_difference",
    summary="Given two arrays, return the address of the first element of A that differs from B's, 0 if none does.",
    layout="b, A[0..n-1], 0, B[0..n-1], 0 with B at address b; the answer goes to cell 0",
    step_limit=StepLimit(4, 8),
    least_memory=lambda n: 2 * n + 3,
    sample_input=sample_input,
    oracle=oracle,
)
