"""Whether brackets of two kinds match."""

from itertools import product

from nram.tasks import StepLimit, Task


def memory_of(brackets, memory_size):
    return [len(brackets) + 2, *brackets] + [0] * (memory_size - len(brackets) - 1)


def matching(rng, n):
    """n pairs of matching brackets."""
    brackets, opened = [], []
    for left in range(2 * n, 0, -1):
        if not opened or (len(opened) < left and rng.random() < 0.5):
            opened.append(rng.randint(1, 2))
            brackets.append(opened[-1])
        else:
            brackets.append(opened.pop() + 2)
    return brackets


def sample_input(rng, n, memory_size):
    brackets = matching(rng, n)
    kind = rng.random()
    if kind < 0.1:
        brackets = [rng.randint(1, 4) for _ in range(2 * n)]
    elif kind < 0.2:
        rng.shuffle(brackets)
    elif kind < 0.5:  # nearly right: often a closing bracket of the other kind
        i = rng.randrange(2 * n)
        brackets[i] = rng.choice((brackets[i] + 1 if brackets[i] in (1, 3) else brackets[i] - 1, rng.randint(1, 4)))
    return memory_of(brackets, memory_size)


def oracle(memory):
    opened = []
    for value in memory[1 : memory[0] - 1]:
        if value <= 2:
            opened.append(value)
        elif not opened or opened.pop() != value - 2:
            return [0, *memory[1:]], [0]
    return [int(not opened), *memory[1:]], [0]


def legal_inputs(n, memory_size):
    for values in product((1, 2, 3, 4), repeat=2 * n):
        yield memory_of(values, memory_size)


TASK = Task(
    name="brackets_two_kinds",
    summary="Given brackets of two kinds, 1 and 2 opening, 3 and 4 closing, return 1 if they match, otherwise 0.",
    layout="s, A[0..2n-1], 0, 2n+1 zeros from address s on for a stack, with values 1 to 4, where 3 closes 1 and "
    "4 closes 2; 1 or 0 goes to cell 0",
    trained_up_to=7,
    step_limit=StepLimit(8, 12),
    least_memory=lambda n: 4 * n + 3,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
)
