"""The first position of a value in an array."""

from itertools import product

from nram.tasks import StepLimit, SymbolicCase, Task


def sample_input(rng, n, memory_size):
    wanted = rng.randrange(1, memory_size)
    values = [rng.randrange(1, memory_size) for _ in range(n)]
    # Put the wanted value in no, one or two places: it may be absent, and it may occur twice.
    for place in rng.choices(range(n), k=rng.randrange(3)):
        values[place] = wanted
    return [wanted, *values] + [0] * (memory_size - n - 1)


def oracle(memory):
    wanted, *rest = memory
    position = rest.index(wanted) + 1 if wanted in rest else 0
    return [position, *rest], [0]


def legal_inputs(n, memory_size):
    for values in product(range(1, memory_size), repeat=n + 1):
        yield [*values] + [0] * (memory_size - n - 1)


def symbolic(n, memory_size):
    import z3

    wanted, *values = (z3.Int(f"A{i}") for i in range(n + 1))
    position = z3.IntVal(0)
    for i in range(n, 0, -1):
        position = z3.If(values[i - 1] == wanted, i, position)
    yield SymbolicCase(
        shape="",
        cells=tuple(enumerate((wanted, *values))),
        assumptions=tuple(z3.And(value >= 1, value < memory_size) for value in (wanted, *values)),
        expected=((0, position),),
    )


TASK = Task(
    name="first_position",
    summary="Given a value and an array, return the first position of the value, or 0 if it does not occur.",
    layout="x, A[0..n-1], 0; the position of the first x in A, counted from 1, goes to cell 0",
    step_limit=StepLimit(3, 8),
    least_memory=lambda n: n + 2,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
)
