"""Limit the values of an array."""

from itertools import product

from nram.tasks import StepLimit, SymbolicCase, Task


def sample_input(rng, n, memory_size):
    limit, *values = (rng.randrange(1, memory_size) for _ in range(n + 1))
    return [limit, *values] + [0] * (memory_size - n - 1)


def oracle(memory):
    limit, *rest = memory
    cells = list(range(1, memory.index(0)))
    return [limit, *(min(value, limit) for value in rest)], cells


def legal_inputs(n, memory_size):
    for values in product(range(1, memory_size), repeat=n + 1):
        yield [*values] + [0] * (memory_size - n - 1)


def symbolic(n, memory_size):
    import z3

    limit, *values = (z3.Int(f"A{i}") for i in range(n + 1))
    yield SymbolicCase(
        shape="",
        cells=tuple(enumerate((limit, *values))),
        assumptions=tuple(z3.And(value >= 1, value < memory_size) for value in (limit, *values)),
        expected=tuple((i, z3.If(value > limit, limit, value)) for i, value in enumerate(values, start=1)),
    )


TASK = Task(
    name="clamp",
    summary="Given a limit and an array, replace every element above the limit by the limit.",
    layout="x, A[0..n-1], 0; the smaller of A[i] and x goes to A[i]",
    step_limit=StepLimit(3, 8),
    least_memory=lambda n: n + 2,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
)
