"""Copy the elements below a limit."""

from nram.tasks import StepLimit, Task


def sample_input(rng, n, memory_size):
    values = [rng.randrange(1, memory_size) for _ in range(n)]
    return [rng.randrange(1, memory_size), n + 3, *values] + [0] * (memory_size - n - 2)


def oracle(memory):
    limit, to = memory[:2]
    kept = [value for value in memory[2 : to - 1] if value < limit]
    count = to - 3
    return [*memory[:to], *kept, *[0] * (count - len(kept)), *memory[to + count :]], list(range(to, to + count))


TASK = Task(
    name="keep_below",
    summary="Given a limit and an array, write the elements below the limit one after another.",
    layout="x, o, A[0..n-1], 0, zeros from o on; the elements below x go to o, o+1, ... in their order",
    step_limit=StepLimit(3, 8),
    least_memory=lambda n: 2 * n + 3,
    sample_input=sample_input,
    oracle=oracle,
)
