"""How deep brackets are nested."""

from itertools import accumulate

from nram.tasks import StepLimit, Task


def sample_input(rng, n, memory_size):
    values, depth = [], 0
    for left in range(2 * n, 0, -1):
        opens = depth == 0 or (depth < left and rng.random() < 0.6)
        values.append(1 if opens else 2)
        depth += 1 if opens else -1
    return [0, *values] + [0] * (memory_size - 2 * n - 1)


def oracle(memory):
    values = memory[1 : memory.index(0, 1)]
    return [max(accumulate((3 - 2 * value for value in values), initial=0)), *memory[1:]], [0]


TASK = Task(
    name="greatest_depth",
    summary="Given brackets that match, return the greatest depth.",
    layout="0, A[0..2n-1], 0 with 1 for opening and 2 for closing; the depth goes to cell 0",
    step_limit=StepLimit(6, 8),
    least_memory=lambda n: 2 * n + 2,
    sample_input=sample_input,
    oracle=oracle,
)
