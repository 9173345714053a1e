"""Reverse an array in its place."""

from itertools import product

from nram.tasks import StepLimit, SymbolicCase, Task


def sample_input(rng, n, memory_size):
    return [n, *(rng.randrange(1, memory_size) for _ in range(n))] + [0] * (memory_size - n - 1)


def oracle(memory):
    end = memory[0]
    return [end, *memory[end:0:-1], *memory[end + 1 :]], list(range(1, end + 1))


def legal_inputs(n, memory_size):
    for values in product(range(1, memory_size), repeat=n):
        yield [n, *values] + [0] * (memory_size - n - 1)


def symbolic(n, memory_size):
    import z3

    values = [z3.Int(f"A{i}") for i in range(n)]
    yield SymbolicCase(
        shape="",
        cells=tuple(enumerate((n, *values))),
        assumptions=tuple(z3.And(value >= 1, value < memory_size) for value in values),
        expected=tuple(enumerate(reversed(values), start=1)),
    )


TASK = Task(
    name="reverse_in_place",
    summary="Given an array and the address of its last element, reverse the array in its place.",
    layout="e, A[0..n-1], 0 with e the address of the last element; A reversed goes to cells 1 to n",
    min_complexity=2,
    step_limit=StepLimit(3, 8),
    least_memory=lambda n: n + 2,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
)
