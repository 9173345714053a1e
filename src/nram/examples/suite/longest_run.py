"""The length of the longest run of equal values."""

from itertools import groupby, product

from nram.tasks import StepLimit, SymbolicCase, Task


def sample_input(rng, n, memory_size):
    values = [rng.randrange(1, memory_size)]
    again = rng.uniform(0.3, 0.9)
    while len(values) < n:
        values.append(values[-1] if rng.random() < again else rng.randrange(1, memory_size))
    return [0, *values] + [0] * (memory_size - n - 1)


def oracle(memory):
    values = memory[1 : memory.index(0, 1)]
    return [max(len([*run]) for _, run in groupby(values)), *memory[1:]], [0]


def legal_inputs(n, memory_size):
    for values in product(range(1, memory_size), repeat=n):
        yield [0, *values] + [0] * (memory_size - n - 1)


def symbolic(n, memory_size):
    import z3

    values = [z3.Int(f"A{i}") for i in range(n)]
    best = length = z3.IntVal(1)
    for before, value in zip(values, values[1:], strict=False):
        length = z3.If(value == before, length + 1, 1)
        best = z3.If(length > best, length, best)
    yield SymbolicCase(
        shape="",
        cells=((0, 0), *enumerate(values, start=1)),
        assumptions=tuple(z3.And(value >= 1, value < memory_size) for value in values),
        expected=((0, best),),
    )


TASK = Task(
    name="longest_run",
    summary="Given an array, return the length of the longest run of equal values.",
    layout="0, A[0..n-1], 0; the length of the longest run goes to cell 0",
    min_complexity=2,
    step_limit=StepLimit(3, 8),
    least_memory=lambda n: n + 2,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
)
