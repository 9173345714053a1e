"""Whether brackets match."""

from itertools import accumulate, product

from nram.tasks import StepLimit, SymbolicCase, Task


def matching(rng, n):
    """n pairs of matching brackets."""
    brackets, opened = [], 0
    for left in range(2 * n, 0, -1):
        opens = opened == 0 or (opened < left and rng.random() < 0.5)
        brackets.append(1 if opens else 2)
        opened += 1 if opens else -1
    return brackets


def sample_input(rng, n, memory_size):
    brackets = matching(rng, n)
    kind = rng.random()
    if kind < 0.1:
        brackets = [rng.randint(1, 2) for _ in range(2 * n)]
    elif kind < 0.4:  # as many of each
        rng.shuffle(brackets)
    elif kind < 0.6:  # nearly right
        brackets[rng.randrange(2 * n)] = rng.randint(1, 2)
    return [0, *brackets] + [0] * (memory_size - 2 * n - 1)


def oracle(memory):
    heights = [*accumulate(3 - 2 * value for value in memory[1 : memory.index(0, 1)])]
    return [int(min(heights) == 0 == heights[-1]), *memory[1:]], [0]


def legal_inputs(n, memory_size):
    for values in product((1, 2), repeat=2 * n):
        yield [0, *values] + [0] * (memory_size - 2 * n - 1)


def symbolic(n, memory_size):
    import z3

    values = [z3.Int(f"A{i}") for i in range(2 * n)]
    heights = [*accumulate(3 - 2 * value for value in values)]
    yield SymbolicCase(
        shape="",
        cells=((0, 0), *enumerate(values, start=1)),
        assumptions=tuple(z3.And(value >= 1, value <= 2) for value in values),
        expected=((0, z3.If(z3.And(heights[-1] == 0, *(height >= 0 for height in heights)), 1, 0)),),
    )


TASK = Task(
    name="brackets",
    summary="Given brackets, opening (1) and closing (2), return 1 if they match, otherwise 0.",
    layout="0, A[0..2n-1], 0 with values 1 and 2; 1 or 0 goes to cell 0",
    trained_up_to=8,
    step_limit=StepLimit(6, 8),
    least_memory=lambda n: 2 * n + 2,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
)
