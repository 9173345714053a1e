"""The largest value of an array: a user-defined task in one file.

nram sample examples/tasks/maximum.py
nram search examples/tasks/maximum.py
"""

from itertools import product

from nram.tasks import StepLimit, Task


def sample_input(rng, n, memory_size):
    values = [rng.randrange(1, memory_size) for _ in range(n)]
    return [0, *values] + [0] * (memory_size - n - 1)


def oracle(memory):
    return [max(memory), *memory[1:]], [0]


def legal_inputs(n, memory_size):
    for values in product(range(1, memory_size), repeat=n):
        yield [0, *values] + [0] * (memory_size - n - 1)


TASK = Task(
    name="maximum",
    summary="Given an array, return its largest value.",
    layout="0, A[0..n-1], 0; the largest value of A goes to cell 0",
    step_limit=StepLimit(2, 6),
    least_memory=lambda n: n + 2,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
)
