"""Whether an array is in ascending order."""

from itertools import pairwise, product

from nram.tasks import StepLimit, SymbolicCase, Task


def sample_input(rng, n, memory_size):
    largest = rng.randrange(1, memory_size)  # a small one gives equal neighbours
    values = [rng.randrange(1, largest + 1) for _ in range(n)]
    # Long random arrays are hardly ever in order: sort most of them, and exchange two elements in some of these.
    if rng.random() < 0.7:
        values.sort()
        if rng.random() < 0.3:
            i, j = rng.sample(range(n), 2)
            values[i], values[j] = values[j], values[i]
    return [0, *values] + [0] * (memory_size - n - 1)


def oracle(memory):
    values = memory[1 : memory.index(0, 1)]
    return [int(all(a <= b for a, b in pairwise(values))), *memory[1:]], [0]


def legal_inputs(n, memory_size):
    for values in product(range(1, memory_size), repeat=n):
        yield [0, *values] + [0] * (memory_size - n - 1)


def symbolic(n, memory_size):
    import z3

    values = [z3.Int(f"A{i}") for i in range(n)]
    yield SymbolicCase(
        shape="",
        cells=((0, 0), *enumerate(values, start=1)),
        assumptions=tuple(z3.And(value >= 1, value < memory_size) for value in values),
        expected=((0, z3.If(z3.And(*(a <= b for a, b in pairwise(values))), 1, 0)),),
    )


TASK = Task(
    name="is_sorted",
    summary="Given an array, return 1 if no element is smaller than the one before it, otherwise 0.",
    layout="0, A[0..n-1], 0; the answer goes to cell 0",
    min_complexity=2,
    step_limit=StepLimit(3, 8),
    least_memory=lambda n: n + 2,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
)
