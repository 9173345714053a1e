"""The middle of an array: a task that is easy with a module that halves."""

from nram.tasks import StepLimit, SymbolicCase, Task


def sample_input(rng, n, memory_size):
    values = [rng.randrange(1, memory_size) for _ in range(n)]
    return [n, *values] + [0] * (memory_size - n - 1)


def oracle(memory):
    return [memory[1 + memory[0] // 2], *memory[1:]], [0]


def symbolic(n, memory_size):
    import z3

    values = [z3.Int(f"A{i}") for i in range(n)]
    yield SymbolicCase(
        shape="",
        cells=((0, n), *enumerate(values, start=1)),
        assumptions=tuple(z3.And(value >= 1, value < memory_size) for value in values),
        expected=((0, values[n // 2]),),
    )


TASK = Task(
    name="middle",
    summary="Given an array and its length, return the value in its middle.",
    layout="n, A[0..n-1], 0; A[n // 2] goes to cell 0",
    step_limit=StepLimit(0, 6),
    least_memory=lambda n: n + 2,
    sample_input=sample_input,
    oracle=oracle,
    symbolic=symbolic,
)
