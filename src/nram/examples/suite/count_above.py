"""How many elements of an array are above a limit."""

from itertools import product

from nram.tasks import StepLimit, SymbolicCase, Task


def sample_input(rng, n, memory_size):
    limit = rng.randrange(1, memory_size)
    # A quarter of the elements equal the limit, and these do not count.
    values = [limit if rng.random() < 0.25 else rng.randrange(1, memory_size) for _ in range(n)]
    return [limit, *values] + [0] * (memory_size - n - 1)


def oracle(memory):
    limit, *rest = memory
    return [sum(value > limit for value in rest), *rest], [0]


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
        expected=((0, sum((z3.If(value > limit, 1, 0) for value in values), z3.IntVal(0))),),
    )


TASK = Task(
    name="count_above",
    summary="Given a limit and an array, count the elements that are larger than the limit.",
    layout="x, A[0..n-1], 0; the number of elements above x goes to cell 0",
    step_limit=StepLimit(3, 8),
    least_memory=lambda n: n + 2,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
)
