"""The best part of a sequence of gains and losses."""

from itertools import product

from nram.tasks import StepLimit, SymbolicCase, Task

MOST = 2  # the largest gain or loss


def sample_input(rng, n, memory_size):
    middle = rng.randint(1, n)
    values = [rng.randint(max(1, middle - MOST), middle + MOST) for _ in range(n)]
    return [middle, *values] + [0] * (memory_size - n - 1)


def oracle(memory):
    middle = memory[0]
    best = ending_here = 0
    for value in memory[1 : memory.index(0)]:
        ending_here = max(0, ending_here + value - middle)
        best = max(best, ending_here)
    return [best, *memory[1:]], [0]


def legal_inputs(n, memory_size):
    for middle in range(1, n + 1):
        for values in product(range(max(1, middle - MOST), middle + MOST + 1), repeat=n):
            yield [middle, *values] + [0] * (memory_size - n - 1)


def symbolic(n, memory_size):
    import z3

    middle, *values = (z3.Int(f"A{i}") for i in range(n + 1))
    best = ending_here = z3.IntVal(0)
    for value in values:
        ending_here = z3.If(ending_here + value > middle, ending_here + value - middle, 0)
        best = z3.If(ending_here > best, ending_here, best)
    yield SymbolicCase(
        shape="",
        cells=tuple(enumerate((middle, *values))),
        assumptions=(
            z3.And(middle >= 1, middle <= n),
            *(z3.And(value >= 1, value >= middle - MOST, value <= middle + MOST) for value in values),
        ),
        expected=((0, best),),
    )


TASK = Task(
    name="maximum_subarray",
    summary="Given an array of gains and losses around a middle, return the largest sum of neighbours.",
    layout="m, A[0..n-1], 0 with 1 <= m <= n; A[i] means the gain A[i] - m, from -2 to 2; "
    "the largest sum of the gains of neighbours, or 0, goes to cell 0",
    step_limit=StepLimit(3, 8),
    least_memory=lambda n: 3 * n + 4,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
)
