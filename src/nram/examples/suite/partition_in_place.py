"""Separate the elements of an array below a limit from the others, in place."""

from itertools import product

from nram.tasks import StepLimit, Task


def sample_input(rng, n, memory_size):
    limit = rng.randrange(1, memory_size)
    # A quarter of the elements equal the limit, and these are not below it.
    values = [limit if rng.random() < 0.25 else rng.randrange(1, memory_size) for _ in range(n)]
    return [limit, *values] + [0] * (memory_size - n - 1)


def oracle(memory):
    memory = [*memory]
    limit, end = memory[0], memory.index(0)
    place = 1
    for i in range(1, end):
        if memory[i] < limit:
            memory[place], memory[i] = memory[i], memory[place]
            place += 1
    return memory, list(range(1, end))


def legal_inputs(n, memory_size):
    for values in product(range(1, memory_size), repeat=n + 1):
        yield [*values] + [0] * (memory_size - n - 1)


TASK = Task(
    name="partition_in_place",
    summary="Given a limit and an array, exchange elements until those below the limit come first.",
    layout="x, A[0..n-1], 0; from left to right, every element below x changes places with the first that is not "
    "(as in quicksort); in place",
    min_complexity=2,
    step_limit=StepLimit(4, 8),
    least_memory=lambda n: n + 2,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
)
