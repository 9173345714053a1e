"""One pass of bubble sort."""

from itertools import product

from nram.tasks import StepLimit, SymbolicCase, Task


def sample_input(rng, n, memory_size):
    return [rng.randrange(1, memory_size) for _ in range(n)] + [0] * (memory_size - n)


def oracle(memory):
    n = memory.index(0)
    values = [*memory[:n]]
    for i in range(n - 1):
        if values[i] > values[i + 1]:
            values[i], values[i + 1] = values[i + 1], values[i]
    return [*values, *memory[n:]], list(range(n))


def legal_inputs(n, memory_size):
    for values in product(range(1, memory_size), repeat=n):
        yield [*values] + [0] * (memory_size - n)


def symbolic(n, memory_size):
    import z3

    values = [z3.Int(f"A{i}") for i in range(n)]
    largest, expected = values[0], []
    for value in values[1:]:
        expected.append(z3.If(value < largest, value, largest))
        largest = z3.If(value < largest, largest, value)
    yield SymbolicCase(
        shape="",
        cells=tuple(enumerate(values)),
        assumptions=tuple(z3.And(value >= 1, value < memory_size) for value in values),
        expected=tuple(enumerate((*expected, largest))),
    )


TASK = Task(
    name="bubble_pass",
    summary="Given an array, go through it once and exchange neighbours that are in the wrong order.",
    layout="A[0..n-1], 0; from i = 1 on, A[i-1] and A[i] change places if A[i-1] is larger; in place",
    min_complexity=2,
    step_limit=StepLimit(3, 8),
    least_memory=lambda n: n + 1,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
)
