"""The differences between neighbours in an ascending array."""

from itertools import combinations_with_replacement, pairwise

from nram.tasks import StepLimit, SymbolicCase, Task


def sample_input(rng, n, memory_size):
    return sorted(rng.randrange(1, memory_size) for _ in range(n)) + [0] * (memory_size - n)


def oracle(memory):
    n = memory.index(0)
    return [memory[0], *(b - a for a, b in pairwise(memory[:n])), *memory[n:]], list(range(n))


def legal_inputs(n, memory_size):
    for values in combinations_with_replacement(range(1, memory_size), n):
        yield [*values] + [0] * (memory_size - n)


def symbolic(n, memory_size):
    import z3

    values = [z3.Int(f"A{i}") for i in range(n)]
    yield SymbolicCase(
        shape="",
        cells=tuple(enumerate(values)),
        assumptions=(values[0] >= 1, *(a <= b for a, b in pairwise(values)), values[-1] < memory_size),
        expected=tuple(enumerate((values[0], *(b - a for a, b in pairwise(values))))),
    )


TASK = Task(
    name="differences",
    summary="Given an ascending array, replace every element but the first by its distance to the one before.",
    layout="A[0..n-1], 0 with A ascending, equal neighbours included; A[i] - A[i-1] goes to cell i, A[0] stays",
    min_complexity=2,
    step_limit=StepLimit(3, 8),
    least_memory=lambda n: n + 1,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
)
