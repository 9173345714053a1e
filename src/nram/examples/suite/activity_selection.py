"""As many activities as possible that do not overlap."""

from itertools import combinations_with_replacement, product

from nram.tasks import StepLimit, Task


def memory_of(starts, ends, memory_size):
    cells = [0, *(time for pair in zip(starts, ends, strict=True) for time in pair)]
    return cells + [0] * (memory_size - len(cells))


def sample_input(rng, n, memory_size):
    ends = sorted(rng.randrange(2, memory_size) for _ in range(n))
    # Short ones and long ones.
    starts = [end - rng.randint(1, end - 1 if rng.random() < 0.3 else min(3, end - 1)) for end in ends]
    return memory_of(starts, ends, memory_size)


def oracle(memory):
    chosen = free = 0
    end = memory.index(0, 1)
    for i in range(1, end, 2):
        if memory[i] >= free:
            chosen, free = chosen + 1, memory[i + 1]
    return [chosen, *memory[1:]], [0]


def legal_inputs(n, memory_size):
    for ends in combinations_with_replacement(range(2, memory_size), n):
        for starts in product(*(range(1, end) for end in ends)):
            yield memory_of(starts, ends, memory_size)


TASK = Task(
    name="activity_selection",
    summary="Given activities in the order of their ends, return how many can take place without an overlap.",
    layout="0, s[0], e[0], s[1], e[1], ..., 0 with 1 <= s[i] < e[i] <= e[i+1]; the largest number of activities "
    "of which each begins at or after the end of the one before goes to cell 0",
    min_complexity=2,
    step_limit=StepLimit(3, 8),
    least_memory=lambda n: 2 * n + 2,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
)
