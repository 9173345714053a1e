"""Replace one value by another everywhere in an array."""

from itertools import product

from nram.tasks import StepLimit, SymbolicCase, Task


def sample_input(rng, n, memory_size):
    old, new = (rng.randrange(1, memory_size) for _ in range(2))
    # Half of the elements are to be replaced. Some arrays already contain the new value.
    values = [rng.choice((old, old, new, rng.randrange(1, memory_size))) for _ in range(n)]
    return [old, new, *values] + [0] * (memory_size - n - 2)


def oracle(memory):
    old, new, *rest = memory
    cells = list(range(2, memory.index(0)))
    return [old, new, *(new if value == old else value for value in rest)], cells


def legal_inputs(n, memory_size):
    for values in product(range(1, memory_size), repeat=n + 2):
        yield [*values] + [0] * (memory_size - n - 2)


def symbolic(n, memory_size):
    import z3

    old, new, *values = (z3.Int(f"A{i}") for i in range(n + 2))
    yield SymbolicCase(
        shape="",
        cells=tuple(enumerate((old, new, *values))),
        assumptions=tuple(z3.And(value >= 1, value < memory_size) for value in (old, new, *values)),
        expected=tuple((i, z3.If(value == old, new, value)) for i, value in enumerate(values, start=2)),
    )


TASK = Task(
    name="replace",
    summary="Given two values x and y and an array, replace every x in the array by y.",
    layout="x, y, A[0..n-1], 0; y goes to every cell of A that holds x",
    step_limit=StepLimit(3, 8),
    least_memory=lambda n: n + 3,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
)
