"""Run-length encoding."""

from itertools import groupby, product

from nram.tasks import StepLimit, Task


def sample_input(rng, n, memory_size):
    values = [rng.randrange(1, memory_size)]
    while len(values) < n:
        values.append(values[-1] if rng.random() < 0.5 else rng.randrange(1, memory_size))
    return [n + 2, *values] + [0] * (memory_size - n - 1)


def oracle(memory):
    out = memory[0]
    pairs = [number for value, run in groupby(memory[1 : out - 1]) for number in (value, len([*run]))]
    end = out + len(pairs) + 1
    return [*memory[:out], *pairs, 0, *memory[end:]], list(range(out, end))


def legal_inputs(n, memory_size):
    for values in product(range(1, memory_size), repeat=n):
        yield [n + 2, *values] + [0] * (memory_size - n - 1)


TASK = Task(
    name="run_lengths",
    summary="Given an array, write every run of equal values as the value and its length.",
    layout="o, A[0..n-1], 0, zeros from address o on; value, length, value, length, ... and a 0 go to o, o+1, ...",
    trained_up_to=8,
    step_limit=StepLimit(4, 10),
    least_memory=lambda n: 3 * n + 3,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
)
