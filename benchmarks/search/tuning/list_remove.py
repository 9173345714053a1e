"""Remove a node from a list."""

from nram.tasks import StepLimit, Task


def sample_input(rng, n, memory_size):
    places = sorted(rng.sample(range(2, memory_size - n), n))
    nodes = [place + i for i, place in enumerate(places)]
    rng.shuffle(nodes)
    memory = [0] * memory_size
    for node, following in zip(nodes, [*nodes[1:], 0], strict=True):
        memory[node], memory[node + 1] = following, rng.randrange(1, memory_size)
    memory[0], memory[1] = nodes[0], rng.choice(nodes)
    return memory


def oracle(memory):
    after, node = list(memory), 0
    pointers = [0]
    while memory[node] != 0:
        if memory[node] == memory[1]:
            after[node] = memory[memory[1]]
        node = memory[node]
        pointers.append(node)
    return after, sorted(place for place in pointers if place != memory[1])


TASK = Task(
    name="list_remove",
    summary="Given a linked list and the address of one of its nodes, remove the node.",
    layout="head, p, n nodes (next, value) at random addresses, p one of them; the pointer to p gets p's next",
    step_limit=StepLimit(3, 8),
    least_memory=lambda n: 2 * n + 3,
    sample_input=sample_input,
    oracle=oracle,
)
