"""The smallest value of an array."""

from itertools import product

from nram.tasks import StepLimit, SymbolicCase, Task


def sample_input(rng, n, memory_size):
    # The smallest of many random values is nearly always 1, so draw the lower limit too.
    least = rng.randrange(1, memory_size)
    values = [rng.randrange(least, memory_size) for _ in range(n)]
    return [0, *values] + [0] * (memory_size - n - 1)


def oracle(memory):
    values = memory[1 : memory.index(0, 1)]
    return [min(values), *memory[1:]], [0]


def legal_inputs(n, memory_size):
    for values in product(range(1, memory_size), repeat=n):
        yield [0, *values] + [0] * (memory_size - n - 1)


def symbolic(n, memory_size):
    import z3

    values = [z3.Int(f"A{i}") for i in range(n)]
    smallest = values[0]
    for value in values[1:]:
        smallest = z3.If(value < smallest, value, smallest)
    yield SymbolicCase(
        shape="",
        cells=((0, 0), *enumerate(values, start=1)),
        assumptions=tuple(z3.And(value >= 1, value < memory_size) for value in values),
        expected=((0, smallest),),
    )


TASK = Task(
    name="minimum",
    summary="Given an array, return its smallest value.",
    layout="0, A[0..n-1], 0; the smallest value of A goes to cell 0",
    step_limit=StepLimit(3, 8),
    least_memory=lambda n: n + 2,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
)
