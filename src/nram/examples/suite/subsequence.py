"""Whether an array is a subsequence of another."""

from itertools import product

from nram.tasks import StepLimit, Task


def memory_of(part, whole, memory_size):
    cells = [len(part) + 2, *part, 0, *whole]
    return cells + [0] * (memory_size - len(cells))


def sample_input(rng, n, memory_size):
    whole = [rng.randint(1, 3) for _ in range(n)]
    part = [whole[i] for i in sorted(rng.sample(range(n), rng.randint(1, n)))]
    if rng.random() < 0.85:  # nearly a subsequence
        part[rng.randrange(len(part))] = rng.randint(1, 3)
        part[rng.randrange(len(part))] = rng.randint(1, 3)
    return memory_of(part, whole, memory_size)


def oracle(memory):
    start = memory[0]
    whole = iter(memory[start : memory.index(0, start)])
    return [int(all(value in whole for value in memory[1 : start - 1])), *memory[1:]], [0]


def legal_inputs(n, memory_size):
    for whole in product((1, 2, 3), repeat=n):
        for length in range(1, n + 1):
            for part in product((1, 2, 3), repeat=length):
                yield memory_of(part, whole, memory_size)


TASK = Task(
    name="subsequence",
    summary="Given two arrays, return 1 if the elements of the first occur in the second in the same order, "
    "otherwise 0.",
    layout="b, A[0..k-1], 0, B[0..n-1], 0 with 1 <= k <= n, values 1 to 3 and b the address of B[0]; "
    "1 or 0 goes to cell 0",
    trained_up_to=8,
    step_limit=StepLimit(4, 8),
    least_memory=lambda n: 2 * n + 3,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
)
