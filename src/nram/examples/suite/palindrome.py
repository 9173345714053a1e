"""Whether an array reads the same in both directions."""

from itertools import product

from nram.tasks import StepLimit, SymbolicCase, Task


def sample_input(rng, n, memory_size):
    values = [rng.randrange(1, memory_size) for _ in range(n)]
    if rng.random() < 0.8:  # a random array is nearly never one
        values = [values[min(i, n - 1 - i)] for i in range(n)]
        if rng.random() < 0.4:  # nearly one
            values[rng.randrange(n)] = rng.randrange(1, memory_size)
    return [n, *values] + [0] * (memory_size - n - 1)


def oracle(memory):
    end = memory[0]
    values = memory[1 : end + 1]
    return [int(values == values[::-1]), *memory[1:]], [0]


def legal_inputs(n, memory_size):
    for values in product(range(1, memory_size), repeat=n):
        yield [n, *values] + [0] * (memory_size - n - 1)


def symbolic(n, memory_size):
    import z3

    values = [z3.Int(f"A{i}") for i in range(n)]
    same = z3.And(*(values[i] == values[n - 1 - i] for i in range(n // 2)))
    yield SymbolicCase(
        shape="",
        cells=tuple(enumerate((n, *values))),
        assumptions=tuple(z3.And(value >= 1, value < memory_size) for value in values),
        expected=((0, z3.If(same, 1, 0)),),
    )


TASK = Task(
    name="palindrome",
    summary="Given an array and the address of its last element, return 1 if it reads the same backwards, otherwise 0.",
    layout="e, A[0..n-1], 0 with e the address of the last element; 1 or 0 goes to cell 0",
    min_complexity=2,
    step_limit=StepLimit(3, 8),
    least_memory=lambda n: n + 2,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
)
