"""Sort an array of three different values."""

from itertools import product

from nram.tasks import StepLimit, SymbolicCase, Task


def sample_input(rng, n, memory_size):
    return [n, *(rng.randint(1, 3) for _ in range(n))] + [0] * (memory_size - n - 1)


def oracle(memory):
    end = memory[0] + 1
    return [memory[0], *sorted(memory[1:end]), *memory[end:]], list(range(1, end))


def legal_inputs(n, memory_size):
    for values in product((1, 2, 3), repeat=n):
        yield [n, *values] + [0] * (memory_size - n - 1)


def symbolic(n, memory_size):
    import z3

    values = [z3.Int(f"A{i}") for i in range(n)]
    ones, not_threes = (sum((z3.If(value <= most, 1, 0) for value in values), z3.IntVal(0)) for most in (1, 2))
    yield SymbolicCase(
        shape="",
        cells=tuple(enumerate((n, *values))),
        assumptions=tuple(z3.And(value >= 1, value <= 3) for value in values),
        expected=tuple((i + 1, z3.If(i < ones, 1, z3.If(i < not_threes, 2, 3))) for i in range(n)),
    )


TASK = Task(
    name="dutch_flag",
    summary="Given an array of the values 1, 2 and 3, sort it in place.",
    layout="e, A[0..n-1], 0 with values 1 to 3 and e the address of the last element; A sorted goes to cells 1 to n",
    min_complexity=2,
    step_limit=StepLimit(6, 12),
    least_memory=lambda n: n + 2,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
)
