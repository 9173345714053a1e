"""The sum of two arrays, element by element."""

from itertools import product

from nram.tasks import StepLimit, SymbolicCase, Task


def sample_input(rng, n, memory_size):
    # Every sum fits into a cell.
    a, b = ([rng.randint(1, (memory_size - 1) // 2) for _ in range(n)] for _ in range(2))
    return [n + 2, *a, 0, *b] + [0] * (memory_size - 2 * n - 2)


def oracle(memory):
    start = memory[0]
    n = start - 2
    sums = [x + y for x, y in zip(memory[1 : n + 1], memory[start : start + n], strict=True)]
    return [start, *sums, *memory[n + 1 :]], list(range(1, n + 1))


def legal_inputs(n, memory_size):
    for values in product(range(1, (memory_size - 1) // 2 + 1), repeat=2 * n):
        yield [n + 2, *values[:n], 0, *values[n:]] + [0] * (memory_size - 2 * n - 2)


def symbolic(n, memory_size):
    import z3

    a, b = ([z3.Int(f"{name}{i}") for i in range(n)] for name in "AB")
    yield SymbolicCase(
        shape="",
        cells=tuple(enumerate((n + 2, *a, 0, *b))),
        assumptions=tuple(z3.And(value >= 1, 2 * value < memory_size) for value in (*a, *b)),
        expected=tuple((i, x + y) for i, (x, y) in enumerate(zip(a, b, strict=True), start=1)),
    )


TASK = Task(
    name="add_arrays",
    summary="Given two arrays of the same length, add each element of the second to that of the first.",
    layout="b, A[0..n-1], 0, B[0..n-1], 0, where b is the address of B[0]; A[i] + B[i], below M, goes to A[i]",
    trained_up_to=8,
    step_limit=StepLimit(3, 8),
    least_memory=lambda n: 2 * n + 3,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
)
