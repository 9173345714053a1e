"""The place of a value in an ascending array, in a number of steps that hardly grows."""

from bisect import bisect_left
from itertools import combinations_with_replacement

from nram.tasks import StepLimit, SymbolicCase, Task


def memory_of(wanted, values, memory_size):
    n = len(values)
    halves = [i // 2 for i in range(n + 1)]
    return [wanted, 0, n, n + 4, *values, *halves] + [0] * (memory_size - 2 * n - 5)


def sample_input(rng, n, memory_size):
    values = sorted(rng.randrange(1, memory_size) for _ in range(n))
    wanted = rng.choice(values) if rng.random() < 0.5 else rng.randrange(1, memory_size)
    return memory_of(wanted, values, memory_size)


def oracle(memory):
    wanted, _, n, _ = memory[:4]
    return [wanted, bisect_left(memory, wanted, 4, n + 4) - 4, *memory[2:]], [1]


def legal_inputs(n, memory_size):
    for values in combinations_with_replacement(range(1, memory_size), n):
        for wanted in range(1, memory_size):
            yield memory_of(wanted, values, memory_size)


def symbolic(n, memory_size):
    import z3

    wanted, *values = (z3.Int(f"A{i}") for i in range(n + 1))
    yield SymbolicCase(
        shape="",
        cells=tuple(enumerate((wanted, 0, n, n + 4, *values, *(i // 2 for i in range(n + 1))))),
        assumptions=(
            z3.And(wanted >= 1, wanted < memory_size),
            values[0] >= 1,
            *(a <= b for a, b in zip(values, values[1:], strict=False)),
            values[-1] < memory_size,
        ),
        expected=((1, sum((z3.If(value < wanted, 1, 0) for value in values), z3.IntVal(0))),),
    )


TASK = Task(
    name="binary_search",
    summary="Given a value and an ascending array, return the number of elements below the value, in at most 40 steps.",
    layout="x, 0, n, h, A[0..n-1], H[0..n] with A ascending, h the address of H[0] and H[i] = i // 2; "
    "the number of elements below x goes to cell 1",
    trained_up_to=8,
    step_limit=StepLimit(0, 40),
    least_memory=lambda n: 2 * n + 5,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
)
