"""Insert a value into an ascending array."""

from nram.tasks import StepLimit, Task


def sample_input(rng, n, memory_size):
    values = sorted(rng.randrange(1, memory_size) for _ in range(n))
    return [rng.randrange(1, memory_size), *values] + [0] * (memory_size - n - 1)


def oracle(memory):
    end = memory.index(0)
    return [memory[0], *sorted(memory[:end]), *memory[end + 1 :]], list(range(1, end + 1))


TASK = Task(
    name="insert_sorted",
    summary="Given a value and an ascending array, insert the value where it belongs.",
    layout="x, A[0..n-1], 0, 0 with A ascending; x and A, ascending, go to cells 1 to n+1",
    step_limit=StepLimit(3, 8),
    least_memory=lambda n: n + 3,
    sample_input=sample_input,
    oracle=oracle,
)
