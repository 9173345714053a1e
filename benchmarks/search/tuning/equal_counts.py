"""Are there as many ones as twos?"""

from nram.tasks import StepLimit, Task


def sample_input(rng, n, memory_size):
    values = [rng.randrange(1, 3) for _ in range(n)]
    if rng.random() < 0.5:
        values = [1] * (n // 2) + [2] * (n - n // 2)
        rng.shuffle(values)
    return [0, *values] + [0] * (memory_size - n - 1)


def oracle(memory):
    values = memory[1 : memory.index(0, 1)]
    return [int(values.count(1) == values.count(2)), *memory[1:]], [0]


TASK = Task(
    name="equal_counts",
    summary="Given an array of ones and twos, return 1 if there are as many of both, otherwise 0.",
    layout="0, A[0..n-1], 0 with values 1 and 2; the answer goes to cell 0",
    step_limit=StepLimit(3, 8),
    least_memory=lambda n: n + 2,
    sample_input=sample_input,
    oracle=oracle,
)
