"""How often a value occurs in an array: a user-defined task for which the search needs a hint.

nram sample examples/tasks/occurrences.py
nram search examples/tasks/occurrences.py --modules READ,INC,READ,EQUALITY-TEST,ADD,WRITE --registers 3
"""

from itertools import product

from nram.tasks import StepLimit, SymbolicCase, Task


def sample_input(rng, n, memory_size):
    wanted = rng.randrange(1, memory_size)
    # Half of the elements equal the wanted value. Among random values of a large memory it would hardly occur.
    values = [wanted if rng.random() < 0.5 else rng.randrange(1, memory_size) for _ in range(n)]
    return [wanted, *values] + [0] * (memory_size - n - 1)


def oracle(memory):
    return [memory[1:].count(memory[0]), *memory[1:]], [0]


def legal_inputs(n, memory_size):
    for values in product(range(1, memory_size), repeat=n + 1):
        yield [*values] + [0] * (memory_size - n - 1)


def symbolic(n, memory_size):
    import z3

    wanted, *values = (z3.Int(f"A{i}") for i in range(n + 1))
    count = sum((z3.If(value == wanted, 1, 0) for value in values), z3.IntVal(0))
    yield SymbolicCase(
        shape="",
        cells=tuple(enumerate((wanted, *values))),
        assumptions=tuple(z3.And(value >= 1, value < memory_size) for value in (wanted, *values)),
        expected=((0, count),),
    )


TASK = Task(
    name="occurrences",
    summary="Given a value and an array, count how often the value occurs in it.",
    layout="v, A[0..n-1], 0; the number of elements that equal v goes to cell 0",
    step_limit=StepLimit(2, 6),
    least_memory=lambda n: n + 2,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
)
