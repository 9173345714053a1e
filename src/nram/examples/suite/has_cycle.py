"""Whether a chain of pointers ends."""

from itertools import permutations

from nram.tasks import StepLimit, SymbolicCase, Task


def memory_of(addresses, last, memory_size):
    """Cell 0 holds the first address, the cell there the second, and so on; the last cell of the chain holds `last`."""
    memory = [0] * memory_size
    for cell, following in zip([0, *addresses], [*addresses, last], strict=True):
        memory[cell] = following
    return memory


def sample_input(rng, n, memory_size):
    addresses = rng.sample(range(2, memory_size), n)
    return memory_of(addresses, 0 if rng.random() < 0.5 else rng.choice(addresses), memory_size)


def oracle(memory):
    cell, seen = memory[0], set()
    while cell and cell not in seen:
        seen.add(cell)
        cell = memory[cell]
    return [memory[0], int(cell > 0), *memory[2:]], [1]


def legal_inputs(n, memory_size):
    for addresses in permutations(range(2, memory_size), n):
        for last in (0, *addresses):
            yield memory_of(addresses, last, memory_size)


def symbolic(n, memory_size):
    import z3

    chain = [z3.Int(f"p{i}") for i in range(n)]
    last = z3.Int("last")
    yield SymbolicCase(
        shape="",
        cells=((1, 0), *zip([0, *chain], [*chain, last], strict=True)),
        assumptions=(
            z3.Distinct(*chain),
            *(z3.And(cell >= 2, cell < memory_size) for cell in chain),
            z3.Or(last == 0, *(last == cell for cell in chain)),
        ),
        expected=((1, z3.If(last == 0, 0, 1)),),
    )


TASK = Task(
    name="has_cycle",
    summary="Given the start of a chain of pointers, return 1 if it leads in a circle, 0 if it ends.",
    layout="p, 0, then n cells at random addresses, each with the address of the next, the last with 0 or the "
    "address of one of them; 1 or 0 goes to cell 1, and the other cells may change",
    step_limit=StepLimit(6, 12),
    least_memory=lambda n: n + 2,
    sample_input=sample_input,
    oracle=oracle,
    legal_inputs=legal_inputs,
    symbolic=symbolic,
)
