"""The middle of a linked list."""

from nram.tasks import StepLimit, SymbolicCase, Task


def sample_input(rng, n, memory_size):
    # Nodes have two cells and must not overlap: draw n positions as if nodes had one cell, then shift them apart.
    positions = sorted(rng.sample(range(memory_size - 2 - n), n))
    nodes = [2 + position + before for before, position in enumerate(positions)]
    rng.shuffle(nodes)
    memory = [0] * memory_size
    memory[0] = nodes[0]
    for node, following in zip(nodes, [*nodes[1:], 0], strict=True):
        memory[node : node + 2] = following, rng.randrange(1, memory_size)
    return memory


def oracle(memory):
    slow = fast = memory[0]
    while fast and memory[fast]:
        slow, fast = memory[slow], memory[memory[fast]]
    return [memory[0], memory[slow + 1], *memory[2:]], [1]


def symbolic(n, memory_size):
    import z3

    nodes = [z3.Int(f"node{i}") for i in range(n)]
    values = [z3.Int(f"value{i}") for i in range(n)]
    cells = [(0, nodes[0]), (1, 0)]
    for node, following, value in zip(nodes, [*nodes[1:], 0], values, strict=True):
        cells += [(node, following), (node + 1, value)]
    yield SymbolicCase(
        shape="",
        cells=tuple(cells),
        assumptions=(
            *(z3.And(node >= 2, node + 2 <= memory_size) for node in nodes),
            *(z3.And(value >= 1, value < memory_size) for value in values),
            *(z3.Or(a + 2 <= b, b + 2 <= a) for i, a in enumerate(nodes) for b in nodes[:i]),
        ),
        expected=((1, values[n // 2]),),
    )


TASK = Task(
    name="list_middle",
    summary="Given the head of a linked list, return the value of the node in the middle.",
    layout="head, 0, then n nodes (next, value) at random addresses; "
    "the value of node n // 2, counted from 0, goes to cell 1",
    min_complexity=2,
    step_limit=StepLimit(3, 8),
    least_memory=lambda n: 2 + 2 * n,
    sample_input=sample_input,
    oracle=oracle,
    symbolic=symbolic,
)
