"""The distances of the nodes of a graph from one of them."""

from nram.tasks import StepLimit, Task


def sample_input(rng, n, memory_size):
    nodes = rng.sample(range(2, 4 * n + 2, 4), n)
    memory = [0] * memory_size
    memory[:2] = nodes[0], n
    for node in nodes:
        for cell in (node + 2, node + 3):
            memory[cell] = rng.choice(nodes) if rng.random() < 0.75 else 0
    return memory


def oracle(memory):
    memory = [*memory]
    distance, level = 1, [memory[0]]
    while level:
        for node in level:
            memory[node] = distance
        found = (other for node in level for other in memory[node + 2 : node + 4] if other)
        distance, level = distance + 1, [*dict.fromkeys(other for other in found if not memory[other])]
    return memory, list(range(2, 4 * memory[1] + 2, 4))


TASK = Task(
    name="distances",
    summary="Given a graph in which every node has up to two arrows, write how far every node is from the start.",
    layout="s, n, then n nodes (mark, free, first, second) from cell 2 on, with mark and free 0 and first and second "
    "the address of a node or 0; the mark becomes 1 for s, 2 for the nodes that s has an arrow to, and so on, "
    "and stays 0 for nodes that cannot be reached; the free cells may change",
    trained_up_to=8,
    step_limit=StepLimit(10, 20),
    least_memory=lambda n: 4 * n + 2,
    sample_input=sample_input,
    oracle=oracle,
)
