"""When does a walk first go below the ground?"""

from itertools import accumulate, product

from nram.tasks import StepLimit, SymbolicCase, Task


def sample_input(rng, n, memory_size):
    ups = rng.uniform(0.45, 0.8)
    return [0, *(1 if rng.random() < ups else 2 for _ in range(n))] + [0] * (memory_size - n - 1)


def oracle(memory):
    values = memory[1 : memory.index(0, 1)]
    heights = accumulate(1 if value == 1 else -1 for value in values)
    return [next((i for i, height in enumerate(heights, 1) if height < 0), 0), *memory[1:]], [0]


def legal_inputs(n, memory_size):
    for values in product((1, 2), repeat=n):
        yield [0, *values] + [0] * (memory_size - n - 1)


def symbolic(n, memory_size):
    import z3

    values = [z3.Int(f"A{i}") for i in range(n)]
    found = z3.IntVal(0)
    for i in reversed(range(n)):
        found = z3.If(sum(3 - 2 * value for value in values[: i + 1]) < 0, i + 1, found)
    yield SymbolicCase(
        shape="",
        cells=((0, 0), *enumerate(values, start=1)),
        assumptions=tuple(z3.And(value >= 1, value <= 2) for value in values),
        expected=((0, found),),
    )


TASK = Task(
    name="basement",
    summary="Given a walk of steps up (1) and down (2), return the number of the first step that ends below the "
    "ground, 0 if none does.",
    layout="0, A[0..n-1], 0 with values 1 and 2; the first i with more twos than ones among A[0..i-1], or 0, "
    "goes to cell 0",
    step_limit=StepLimit(3, 8),
    least_memory=lambda n: n + 2,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
)
