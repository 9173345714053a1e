"""Insert a node into an ascending linked list."""

from nram.tasks import StepLimit, Task


def sample_input(rng, n, memory_size):
    # Nodes have two cells and must not overlap: draw n + 1 positions as if nodes had one cell, then shift them apart.
    positions = sorted(rng.sample(range(memory_size - 3 - n), n + 1))
    new, *nodes = rng.sample([2 + position + before for before, position in enumerate(positions)], n + 1)
    values = sorted(rng.randrange(1, memory_size) for _ in range(n))
    memory = [0] * memory_size
    memory[:2] = nodes[0], new
    for node, following, value in zip(nodes, [*nodes[1:], 0], values, strict=True):
        memory[node : node + 2] = following, value
    memory[new + 1] = rng.choice(values) if rng.random() < 0.25 else rng.randrange(1, memory_size)
    return memory


def oracle(memory):
    memory = [*memory]
    new = memory[1]
    cells = [0]
    while memory[cells[-1]]:
        cells.append(memory[cells[-1]])
    before = 0
    while memory[before] and memory[memory[before] + 1] < memory[new + 1]:
        before = memory[before]
    memory[before], memory[new] = new, memory[before]
    return memory, [*cells, new]


TASK = Task(
    name="list_insert",
    summary="Given an ascending linked list and a new node, insert the node at its place.",
    layout="head, p, then n nodes (next, value) of an ascending list and a new node (0, value) at address p, "
    "at random addresses; the new node goes before the first whose value is not smaller",
    trained_up_to=8,
    step_limit=StepLimit(4, 8),
    least_memory=lambda n: 2 * n + 4,
    sample_input=sample_input,
    oracle=oracle,
)
