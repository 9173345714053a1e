"""Remove a value from an array."""

from itertools import product

from nram.tasks import StepLimit, Task


def sample_input(rng, n, memory_size):
    wanted = rng.randrange(1, memory_size)
    values = [wanted if rng.random() < 0.4 else rng.randrange(1, memory_size) for _ in range(n)]
    return [wanted, *values] + [0] * (memory_size - n - 1)


def oracle(memory):
    wanted = memory[0]
    kept = [value for value in memory[1 : memory.index(0)] if value != wanted]
    end = len(kept) + 2
    return [wanted, *kept, 0, *memory[end:]], list(range(1, end))


def legal_inputs(n, memory_size):
    for values in product(range(1, memory_size), repeat=n + 1):
        yield [*values] + [0] * (memory_size - n - 1)


TASK = Task(
    name="remove_value",
    summary="Given a value and an array, remove the value from the array and close the gaps.",
    layout="x, A[0..n-1], 0; the elements that are not x go to cells 1, 2, ... in their order, and 0 behind the last",
    step_limit=StepLimit(3, 8),
    least_memory=lambda n: n + 2,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
)
