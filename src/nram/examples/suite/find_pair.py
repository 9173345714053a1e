"""Two elements of an ascending array with a given sum."""

from itertools import combinations

from nram.tasks import StepLimit, SymbolicCase, Task


def memory_of(wanted, values, memory_size):
    n = len(values)
    return [wanted, n + 1, *values] + [0] * (memory_size - n - 2)


def sample_input(rng, n, memory_size):
    values = sorted(rng.sample(range(1, (memory_size - 1) // 2 + 1), n))
    wanted = sum(rng.sample(values, 2)) if rng.random() < 0.5 else rng.randrange(1, memory_size)
    return memory_of(wanted, values, memory_size)


def oracle(memory):
    wanted, end = memory[:2]
    values = memory[2 : end + 1]
    known = set(values)
    found = next((value for value in values if 2 * value < wanted and wanted - value in known), 0)
    return [found, *memory[1:]], [0]


def legal_inputs(n, memory_size):
    for values in combinations(range(1, (memory_size - 1) // 2 + 1), n):
        for wanted in range(1, memory_size):
            yield memory_of(wanted, values, memory_size)


def symbolic(n, memory_size):
    import z3

    wanted, *values = (z3.Int(f"A{i}") for i in range(n + 1))
    found = z3.IntVal(0)
    for i in reversed(range(n - 1)):
        found = z3.If(z3.Or(*(values[i] + other == wanted for other in values[i + 1 :])), values[i], found)
    yield SymbolicCase(
        shape="",
        cells=tuple(enumerate((wanted, n + 1, *values))),
        assumptions=(
            z3.And(wanted >= 1, wanted < memory_size),
            values[0] >= 1,
            *(a < b for a, b in zip(values, values[1:], strict=False)),
            2 * values[-1] < memory_size,
        ),
        expected=((0, found),),
    )


TASK = Task(
    name="find_pair",
    summary="Given a sum and an ascending array, return the smaller element of a pair with this sum, "
    "0 if there is none.",
    layout="x, e, A[0..n-1], 0 with A strictly ascending and e the address of the last element; "
    "the smallest A[i] with A[i] + A[j] = x and i < j, or 0, goes to cell 0",
    min_complexity=2,
    step_limit=StepLimit(3, 8),
    least_memory=lambda n: 2 * n + 3,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
)
