"""Write the numbers from 1 to n."""

from nram.tasks import StepLimit, SymbolicCase, Task


def sample_input(rng, n, memory_size):
    return [n] + [0] * (memory_size - 1)


def oracle(memory):
    n = memory[0]
    # The cell behind the last number counts too: it must stay 0.
    return [n, *range(1, n + 1), *memory[n + 1 :]], list(range(1, n + 2))


def legal_inputs(n, memory_size):
    yield [n] + [0] * (memory_size - 1)


def symbolic(n, memory_size):
    yield SymbolicCase(
        shape="",
        cells=((0, n),),
        assumptions=(),
        expected=(*((i, i) for i in range(1, n + 1)), (n + 1, 0)),
    )


TASK = Task(
    name="fill",
    summary="Given a number n, write the numbers from 1 to n.",
    layout="n, then zeros; 1, 2, .., n go to cells 1 to n, and cell n+1 stays 0",
    step_limit=StepLimit(3, 8),
    least_memory=lambda n: n + 2,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
)
