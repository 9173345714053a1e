"""Sort an array into a second array."""

from itertools import product

from nram.tasks import StepLimit, SymbolicCase, Task

FARTHEST = 8  # places: so a sort that moves elements one by one takes time in proportion to n


def sample_input(rng, n, memory_size):
    left = sorted(rng.randrange(1, memory_size) for _ in range(n))
    # From the last element to the first: how many larger ones stand before it. Up to n = 9 every order is as likely.
    values = [left.pop(i - rng.randint(0, min(i, FARTHEST))) for i in reversed(range(n))]
    return [n + 2, *reversed(values)] + [0] * (memory_size - n - 1)


def oracle(memory):
    out = memory[0]
    end = 2 * out - 2
    return [*memory[:out], *sorted(memory[1 : out - 1]), *memory[end:]], list(range(out, end))


def legal_inputs(n, memory_size):
    for values in product(range(1, memory_size), repeat=n):
        if n <= FARTHEST or all(
            sum(other > value for other in values[:i]) <= FARTHEST for i, value in enumerate(values)
        ):
            yield [n + 2, *values] + [0] * (memory_size - n - 1)


def symbolic(n, memory_size):
    import z3

    values = [z3.Int(f"A{i}") for i in range(n)]
    in_order = []
    for value in values:
        for i, other in enumerate(in_order):
            in_order[i], value = z3.If(value < other, value, other), z3.If(value < other, other, value)
        in_order.append(value)
    larger = [sum((z3.If(other > value, 1, 0) for other in values[:i]), z3.IntVal(0)) for i, value in enumerate(values)]
    yield SymbolicCase(
        shape="",
        cells=tuple(enumerate((n + 2, *values))),
        assumptions=(
            *(z3.And(value >= 1, value < memory_size) for value in values),
            *(count <= FARTHEST for count in larger[FARTHEST + 1 :]),
        ),
        expected=tuple(enumerate(in_order, start=n + 2)),
    )


TASK = Task(
    name="sort_into",
    summary="Given an array, write its elements in ascending order into a second array.",
    layout="o, A[0..n-1], 0, n zeros from address o on, where no element has more than 8 larger ones before it; "
    "A sorted goes to o..o+n-1, and the cells of A may change",
    trained_up_to=8,
    min_complexity=2,
    step_limit=StepLimit(24, 24),
    least_memory=lambda n: 2 * n + 2,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
)
