"""The nodes of a graph that can be reached from one of them."""

from nram.tasks import StepLimit, Task


def sample_input(rng, n, memory_size):
    nodes = rng.sample(range(2, 4 * n + 2, 4), n)
    memory = [0] * memory_size
    memory[:2] = nodes[0], n
    for node in nodes:
        for cell in (node + 2, node + 3):
            memory[cell] = rng.choice(nodes) if rng.random() < 0.6 else 0
    return memory


def oracle(memory):
    memory = [*memory]
    left = [memory[0]]
    while left:
        node = left.pop()
        if not memory[node]:
            memory[node] = 1
            left += [other for other in memory[node + 2 : node + 4] if other]
    return memory, list(range(2, 4 * memory[1] + 2, 4))


TASK = Task(
    name="reachable",
    summary="Given a graph with up to two arrows from every node, mark the nodes that can be reached from the start.",
    layout="s, n, then n nodes (mark, free, first, second) from cell 2 on, with mark and free 0 and first and second "
    "the address of a node or 0; 1 goes to the marks of s and of all nodes that arrows lead to from there, "
    "the others stay 0; the free cells may change",
    trained_up_to=8,
    step_limit=StepLimit(10, 20),
    least_memory=lambda n: 4 * n + 2,
    sample_input=sample_input,
    oracle=oracle,
)
