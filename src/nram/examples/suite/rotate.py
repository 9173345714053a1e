"""Rotate an array by one place to the left."""

from itertools import product

from nram.tasks import StepLimit, SymbolicCase, Task


def sample_input(rng, n, memory_size):
    return [rng.randrange(1, memory_size) for _ in range(n)] + [0] * (memory_size - n)


def oracle(memory):
    n = memory.index(0)
    return [*memory[1:n], memory[0], *memory[n:]], list(range(n))


def legal_inputs(n, memory_size):
    for values in product(range(1, memory_size), repeat=n):
        yield [*values] + [0] * (memory_size - n)


def symbolic(n, memory_size):
    import z3

    values = [z3.Int(f"A{i}") for i in range(n)]
    yield SymbolicCase(
        shape="",
        cells=tuple(enumerate(values)),
        assumptions=tuple(z3.And(value >= 1, value < memory_size) for value in values),
        expected=tuple(enumerate((*values[1:], values[0]))),
    )


TASK = Task(
    name="rotate",
    summary="Given an array, move every element one place to the left, and the first element to the end.",
    layout="A[0..n-1], 0; A[1..n-1], A[0] go to cells 0 to n-1",
    min_complexity=2,
    step_limit=StepLimit(3, 8),
    least_memory=lambda n: n + 1,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
)
