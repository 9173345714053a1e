"""Take the elements of two arrays in turn."""

from itertools import product

from nram.tasks import StepLimit, SymbolicCase, Task


def memory_of(a, b, memory_size):
    n = len(a)
    return [n + 3, 2 * n + 4, *a, 0, *b] + [0] * (memory_size - 2 * n - 3)


def sample_input(rng, n, memory_size):
    a, b = ([rng.randrange(1, memory_size) for _ in range(n)] for _ in range(2))
    return memory_of(a, b, memory_size)


def oracle(memory):
    start, out = memory[:2]
    n = start - 3
    end = out + 2 * n
    pairs = zip(memory[2 : n + 2], memory[start : start + n], strict=True)
    return [*memory[:out], *(value for pair in pairs for value in pair), *memory[end:]], list(range(out, end))


def legal_inputs(n, memory_size):
    for values in product(range(1, memory_size), repeat=2 * n):
        yield memory_of(values[:n], values[n:], memory_size)


def symbolic(n, memory_size):
    import z3

    a, b = ([z3.Int(f"{name}{i}") for i in range(n)] for name in "AB")
    out = 2 * n + 4
    in_turn = [value for pair in zip(a, b, strict=True) for value in pair]
    yield SymbolicCase(
        shape="",
        cells=tuple(enumerate((n + 3, out, *a, 0, *b))),
        assumptions=tuple(z3.And(value >= 1, value < memory_size) for value in (*a, *b)),
        expected=tuple(enumerate(in_turn, start=out)),
    )


TASK = Task(
    name="alternate",
    summary="Given two arrays of the same length, write their elements in turn: A[0], B[0], A[1], B[1] and so on.",
    layout="b, o, A[0..n-1], 0, B[0..n-1], 0, where b is the address of B[0]; the 2n elements go to o..o+2n-1",
    trained_up_to=6,
    step_limit=StepLimit(4, 8),
    least_memory=lambda n: 4 * n + 4,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
)
