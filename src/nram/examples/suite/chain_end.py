"""The end of a chain of pointers."""

from itertools import permutations

from nram.tasks import StepLimit, SymbolicCase, Task


def memory_of(addresses, memory_size):
    """Cell 0 holds the first address, the cell there the second, and so on; the last cell of the chain holds 0."""
    memory = [0] * memory_size
    for cell, following in zip([0, *addresses], [*addresses, 0], strict=True):
        memory[cell] = following
    return memory


def sample_input(rng, n, memory_size):
    return memory_of(rng.sample(range(2, memory_size), n), memory_size)


def oracle(memory):
    cell = memory[0]
    while memory[cell]:
        cell = memory[cell]
    return [memory[0], cell, *memory[2:]], [1]


def legal_inputs(n, memory_size):
    for addresses in permutations(range(2, memory_size), n):
        yield memory_of(addresses, memory_size)


def symbolic(n, memory_size):
    import z3

    chain = [z3.Int(f"p{i}") for i in range(n)]
    yield SymbolicCase(
        shape="",
        cells=((1, 0), *zip([0, *chain], [*chain, 0], strict=True)),
        assumptions=(z3.Distinct(*chain), *(z3.And(cell >= 2, cell < memory_size) for cell in chain)),
        expected=((1, chain[-1]),),
    )


TASK = Task(
    name="chain_end",
    summary="Given the start of a chain of pointers, follow it to the cell that holds 0 and return its address.",
    layout="p, 0, then n cells at random addresses, each with the address of the next, the last with 0; "
    "the address of the last goes to cell 1",
    step_limit=StepLimit(3, 8),
    least_memory=lambda n: n + 2,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
)
