"""The next greater value to the right of every element."""

from itertools import product

from nram.tasks import StepLimit, Task


def memory_of(values, memory_size):
    n = len(values)
    return [n + 3, n + 1, *values] + [0] * (memory_size - n - 2)


def sample_input(rng, n, memory_size):
    return memory_of([rng.randrange(1, memory_size) for _ in range(n)], memory_size)


def oracle(memory):
    end = memory[1] + 1
    answers, larger = [], []
    for value in reversed(memory[2:end]):
        while larger and larger[-1] <= value:
            larger.pop()
        answers.append(larger[-1] if larger else 0)
        larger.append(value)
    return [*memory[:2], *reversed(answers), *memory[end:]], list(range(2, end))


def legal_inputs(n, memory_size):
    for values in product(range(1, memory_size), repeat=n):
        yield memory_of(values, memory_size)


TASK = Task(
    name="next_greater",
    summary="Given an array, replace every element by the next larger value to its right, 0 if there is none.",
    layout="s, e, A[0..n-1], 0, n+1 zeros from address s on for a stack, with e the address of the last element; "
    "in place",
    min_complexity=2,
    trained_up_to=8,
    step_limit=StepLimit(6, 12),
    least_memory=lambda n: 2 * n + 4,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
)
