"""Sort an array of ones and twos."""

from itertools import product

from nram.tasks import StepLimit, SymbolicCase, Task


def sample_input(rng, n, memory_size):
    ones = rng.random()
    return [1 if rng.random() < ones else 2 for _ in range(n)] + [0] * (memory_size - n)


def oracle(memory):
    n = memory.index(0)
    return [*sorted(memory[:n]), *memory[n:]], list(range(n))


def legal_inputs(n, memory_size):
    for values in product((1, 2), repeat=n):
        yield [*values] + [0] * (memory_size - n)


def symbolic(n, memory_size):
    import z3

    values = [z3.Int(f"A{i}") for i in range(n)]
    ones = sum(2 - value for value in values)
    yield SymbolicCase(
        shape="",
        cells=tuple(enumerate(values)),
        assumptions=tuple(z3.And(value >= 1, value <= 2) for value in values),
        expected=tuple((i, z3.If(i < ones, 1, 2)) for i in range(n)),
    )


TASK = Task(
    name="sort_two_values",
    summary="Given an array of ones and twos, sort it in place.",
    layout="A[0..n-1], 0 with values 1 and 2; A sorted goes to cells 0 to n-1",
    min_complexity=2,
    step_limit=StepLimit(4, 8),
    least_memory=lambda n: n + 1,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
)
