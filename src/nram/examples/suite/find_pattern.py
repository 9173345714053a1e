"""The first occurrence of a pattern in a text."""

from itertools import product

from nram.tasks import StepLimit, Task

LONGEST = 3  # so that the naive way takes time in proportion to n


def memory_of(pattern, text, memory_size):
    cells = [len(pattern) + 2, *pattern, 0, *text]
    return cells + [0] * (memory_size - len(cells))


def sample_input(rng, n, memory_size):
    text = [rng.randint(1, 3) for _ in range(n)]
    length = rng.randint(1, min(LONGEST, n))
    start = rng.randint(0, n - length)
    found = rng.random() < 0.5
    return memory_of(text[start : start + length] if found else rng.choices((1, 2, 3), k=length), text, memory_size)


def oracle(memory):
    start = memory[0]
    length, end = start - 2, memory.index(0, start)
    places = (i for i in range(start, end - length + 1) if memory[i : i + length] == memory[1 : length + 1])
    return [next(places, 0), *memory[1:]], [0]


def legal_inputs(n, memory_size):
    for length in range(1, min(LONGEST, n) + 1):
        for values in product((1, 2, 3), repeat=length + n):
            yield memory_of(values[:length], values[length:], memory_size)


TASK = Task(
    name="find_pattern",
    summary="Given a pattern and a text, return the address of the first occurrence, 0 if there is none.",
    layout="t, P[0..k-1], 0, A[0..n-1], 0 with 1 <= k <= 3, k <= n, values 1 to 3 and t the address of A[0]; "
    "the first address from which on A continues as P, or 0, goes to cell 0",
    min_complexity=2,
    step_limit=StepLimit(8, 16),
    least_memory=lambda n: n + 6,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
)
