"""Exchange the contents of two arrays."""

from itertools import product

from nram.tasks import StepLimit, SymbolicCase, Task


def sample_input(rng, n, memory_size):
    a, b = ([rng.randrange(1, memory_size) for _ in range(n)] for _ in range(2))
    return [n + 2, *a, 0, *b] + [0] * (memory_size - 2 * n - 2)


def oracle(memory):
    start = memory[0]
    n = start - 2
    a, b, rest = memory[1 : n + 1], memory[start : start + n], memory[start + n :]
    return [start, *b, 0, *a, *rest], [*range(1, n + 1), *range(start, start + n)]


def legal_inputs(n, memory_size):
    for values in product(range(1, memory_size), repeat=2 * n):
        yield [n + 2, *values[:n], 0, *values[n:]] + [0] * (memory_size - 2 * n - 2)


def symbolic(n, memory_size):
    import z3

    a, b = ([z3.Int(f"{name}{i}") for i in range(n)] for name in "AB")
    yield SymbolicCase(
        shape="",
        cells=tuple(enumerate((n + 2, *a, 0, *b))),
        assumptions=tuple(z3.And(value >= 1, value < memory_size) for value in (*a, *b)),
        expected=(*enumerate(b, start=1), *enumerate(a, start=n + 2)),
    )


TASK = Task(
    name="exchange",
    summary="Given two arrays of the same length, exchange their contents.",
    layout="b, A[0..n-1], 0, B[0..n-1], 0, where b is the address of B[0]; B goes to the cells of A, A to those of B",
    trained_up_to=8,
    step_limit=StepLimit(4, 8),
    least_memory=lambda n: 2 * n + 3,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
)
