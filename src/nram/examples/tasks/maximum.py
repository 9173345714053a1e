"""The largest value of an array: a user-defined task in one file.

nram sample examples/tasks/maximum.py
nram search examples/tasks/maximum.py
nram prove examples/programs/maximum.nram --task examples/tasks/maximum.py
"""

from itertools import accumulate, product

from nram.tasks import StepLimit, Task
from nram.tasks.claim import SIZE, Claim, N, always, holds_from, memory, positive_from, zero_from
from nram.terms import call, choose, equal


def sample_input(rng, n, memory_size):
    values = [rng.randrange(1, memory_size) for _ in range(n)]
    return [0, *values] + [0] * (memory_size - n - 1)


def oracle(memory):
    return [max(memory), *memory[1:]], [0]


def legal_inputs(n, memory_size):
    for values in product(range(1, memory_size), repeat=n):
        yield [0, *values] + [0] * (memory_size - n - 1)


def claim():
    """What is asked for at every length. largest(i) is the largest of the first i values: a loop in one line."""

    def largest(i):
        return call("largest", i)

    return Claim(
        assumptions=(
            always(N + 2 <= SIZE),
            always(equal(memory(0), 0)),
            positive_from(1, N),
            zero_from(N + 1),
            always(equal(largest(0), 0)),
            holds_from(
                1,
                N,
                lambda i: equal(largest(i), choose(largest(i - 1) < memory(i), memory(i), largest(i - 1))),
            ),
        ),
        is_output=lambda x: equal(x, 0),
        expected=lambda x: largest(N),
        functions={"largest": lambda memory, n: [0, *accumulate(memory[1 : n + 1], max)]},
    )


TASK = Task(
    name="maximum",
    summary="Given an array, return its largest value.",
    layout="0, A[0..n-1], 0; the largest value of A goes to cell 0",
    step_limit=StepLimit(2, 6),
    least_memory=lambda n: n + 2,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
    claim=claim,
)
