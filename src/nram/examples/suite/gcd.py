"""The greatest common divisor of two numbers."""

from math import gcd

from nram.tasks import StepLimit, Task


def sample_input(rng, n, memory_size):
    most = 4 * n
    common = rng.randint(1, rng.randint(1, most))
    return [common * rng.randint(1, most // common) for _ in range(2)] + [0] * (memory_size - 2)


def oracle(memory):
    return [gcd(memory[0], memory[1]), *memory[1:]], [0]


def legal_inputs(n, memory_size):
    for a in range(1, 4 * n + 1):
        for b in range(1, 4 * n + 1):
            yield [a, b] + [0] * (memory_size - 2)


TASK = Task(
    name="gcd",
    summary="Given two numbers, return their greatest common divisor.",
    layout="a, b, 0 with a and b from 1 to 4n; their greatest common divisor goes to cell 0",
    step_limit=StepLimit(9, 10),
    least_memory=lambda n: 4 * n + 2,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
)
