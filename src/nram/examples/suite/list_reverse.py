"""Reverse a linked list by its pointers."""

from nram.tasks import StepLimit, SymbolicCase, Task


def sample_input(rng, n, memory_size):
    # Nodes have two cells and must not overlap: draw n positions as if nodes had one cell, then shift them apart.
    positions = sorted(rng.sample(range(memory_size - 1 - n), n))
    nodes = rng.sample([1 + position + before for before, position in enumerate(positions)], n)
    memory = [0] * memory_size
    memory[0] = nodes[0]
    for node, following in zip(nodes, [*nodes[1:], 0], strict=True):
        memory[node : node + 2] = following, rng.randrange(1, memory_size)
    return memory


def oracle(memory):
    memory = [*memory]
    nodes = []
    node = memory[0]
    while node:
        nodes.append(node)
        node = memory[node]
    for node, following in zip([0, *reversed(nodes)], [*reversed(nodes), 0], strict=True):
        memory[node] = following
    return memory, [0, *nodes]


def symbolic(n, memory_size):
    import z3

    nodes = [z3.Int(f"node{i}") for i in range(n)]
    values = [z3.Int(f"value{i}") for i in range(n)]
    cells = [(0, nodes[0])]
    for node, following, value in zip(nodes, [*nodes[1:], 0], values, strict=True):
        cells += [(node, following), (node + 1, value)]
    yield SymbolicCase(
        shape="",
        cells=tuple(cells),
        assumptions=(
            *(z3.And(node >= 1, node + 2 <= memory_size) for node in nodes),
            *(z3.And(value >= 1, value < memory_size) for value in values),
            *(z3.Or(a + 2 <= b, b + 2 <= a) for i, a in enumerate(nodes) for b in nodes[:i]),
        ),
        expected=tuple(zip([0, *reversed(nodes)], [*reversed(nodes), 0], strict=True)),
    )


TASK = Task(
    name="list_reverse",
    summary="Given the head of a linked list, reverse the list by changing its pointers.",
    layout="head, then n nodes (next, value) at random addresses; head and the n pointers change",
    min_complexity=2,
    step_limit=StepLimit(3, 8),
    least_memory=lambda n: 2 * n + 1,
    sample_input=sample_input,
    oracle=oracle,
    symbolic=symbolic,
)
