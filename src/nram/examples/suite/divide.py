"""Division with a remainder."""

from nram.tasks import StepLimit, Task


def sample_input(rng, n, memory_size):
    most = 4 * n
    return [rng.randint(1, most), rng.randint(1, rng.randint(1, most)), 0, 0] + [0] * (memory_size - 4)


def oracle(memory):
    quotient, remainder = divmod(memory[0], memory[1])
    return [*memory[:2], quotient, remainder, *memory[4:]], [2, 3]


def legal_inputs(n, memory_size):
    for a in range(1, 4 * n + 1):
        for b in range(1, 4 * n + 1):
            yield [a, b] + [0] * (memory_size - 2)


TASK = Task(
    name="divide",
    summary="Given two numbers, divide the first by the second, and return quotient and remainder.",
    layout="a, b, 0, 0 with a and b from 1 to 4n; the quotient goes to cell 2, the remainder to cell 3",
    step_limit=StepLimit(9, 10),
    least_memory=lambda n: 4 * n + 2,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
)
