"""Copy the values of a linked list into an array."""

from nram.tasks import StepLimit, SymbolicCase, Task


def sample_input(rng, n, memory_size):
    # Nodes have two cells and must not overlap: draw n positions as if nodes had one cell, then shift them apart.
    positions = sorted(rng.sample(range(memory_size - 1 - 2 * n), n))
    nodes = [1 + n + position + before for before, position in enumerate(positions)]
    rng.shuffle(nodes)
    memory = [0] * memory_size
    memory[0] = nodes[0]
    for node, following in zip(nodes, [*nodes[1:], 0], strict=True):
        memory[node : node + 2] = following, rng.randrange(1, memory_size)
    return memory


def oracle(memory):
    values = []
    node = memory[0]
    while node:
        values.append(memory[node + 1])
        node = memory[node]
    n = len(values)
    return [memory[0], *values, *memory[n + 1 :]], list(range(1, n + 1))


def symbolic(n, memory_size):
    import z3

    nodes = [z3.Int(f"node{i}") for i in range(n)]
    values = [z3.Int(f"value{i}") for i in range(n)]
    cells = [(0, nodes[0]), *((i, 0) for i in range(1, n + 1))]
    for node, following, value in zip(nodes, [*nodes[1:], 0], values, strict=True):
        cells += [(node, following), (node + 1, value)]
    yield SymbolicCase(
        shape="",
        cells=tuple(cells),
        assumptions=(
            *(z3.And(node > n, node + 2 <= memory_size) for node in nodes),
            *(z3.And(value >= 1, value < memory_size) for value in values),
            *(z3.Or(a + 2 <= b, b + 2 <= a) for i, a in enumerate(nodes) for b in nodes[:i]),
        ),
        expected=tuple(enumerate(values, start=1)),
    )


TASK = Task(
    name="list_to_array",
    summary="Given the head of a linked list, copy the values of its nodes into an array.",
    layout="head, n zeros, then n nodes (next, value) at random addresses; the values go to cells 1 to n in list order",
    trained_up_to=8,
    step_limit=StepLimit(3, 8),
    least_memory=lambda n: 3 * n + 1,
    sample_input=sample_input,
    oracle=oracle,
    symbolic=symbolic,
)
