"""The sum of an array: a user-defined task. Its sampler keeps the sum small enough for a cell.

nram sample examples/tasks/sum.py
nram search examples/tasks/sum.py
"""

from itertools import combinations, pairwise

from nram.tasks import StepLimit, SymbolicCase, Task


def memory_of(cuts, memory_size):
    """The memory whose values are the distances between the cuts: numbers from 1 up whose sum is the last cut."""
    values = [b - a for a, b in pairwise((0, *cuts))]
    return [0, *values] + [0] * (memory_size - len(values) - 1)


def sample_input(rng, n, memory_size):
    total = rng.randrange(n, memory_size)
    return memory_of([*sorted(rng.sample(range(1, total), n - 1)), total], memory_size)


def oracle(memory):
    return [sum(memory[1:]), *memory[1:]], [0]


def legal_inputs(n, memory_size):
    for total in range(n, memory_size):
        for cuts in combinations(range(1, total), n - 1):
            yield memory_of([*cuts, total], memory_size)


def symbolic(n, memory_size):
    import z3

    values = [z3.Int(f"A{i}") for i in range(n)]
    yield SymbolicCase(
        shape="",
        cells=((0, 0), *enumerate(values, start=1)),
        assumptions=(*(value >= 1 for value in values), sum(values) < memory_size),
        expected=((0, sum(values)),),
    )


TASK = Task(
    name="sum",
    summary="Given an array, return the sum of its values.",
    layout="0, A[0..n-1], 0, with a sum of A below M; it goes to cell 0",
    step_limit=StepLimit(2, 6),
    least_memory=lambda n: n + 2,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
)
