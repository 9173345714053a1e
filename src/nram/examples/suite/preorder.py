"""The values of a binary tree in depth-first order."""

from nram.tasks import StepLimit, Task


def sample_input(rng, n, memory_size):
    # Nodes have three cells and must not overlap: draw positions as if nodes had one cell, then shift them apart.
    first = 2 * n + 3
    positions = sorted(rng.sample(range(memory_size - first - 2 * n), n))
    nodes = rng.sample([first + position + 2 * before for before, position in enumerate(positions)], n)
    memory = [0] * memory_size
    memory[:2] = nodes[0], n + 2
    free = [0]  # cells for children
    for node in nodes:
        # Half of the time the place is the newest: long paths too.
        i = len(free) - 1 if rng.random() < 0.5 else rng.randrange(len(free))
        free[i], free[-1] = free[-1], free[i]
        memory[free.pop()] = node
        memory[node] = rng.randrange(1, memory_size)
        free += rng.sample((node + 1, node + 2), 2)
    return memory


def oracle(memory):
    values, left = [], [memory[0]]
    while left:
        node = left.pop()
        if node:
            values.append(memory[node])
            left += [memory[node + 2], memory[node + 1]]
    end = len(values) + 2
    return [*memory[:2], *values, *memory[end:]], list(range(2, end))


TASK = Task(
    name="preorder",
    summary="Given the root of a binary tree, write the values in depth-first order: a node, then all to its left, "
    "then all to its right.",
    layout="root, s, n zeros for the answer, n+1 zeros from address s on for a stack, then n nodes "
    "(value, left, right) at random addresses; the values go to cells 2 to n+1",
    trained_up_to=7,
    step_limit=StepLimit(6, 12),
    least_memory=lambda n: 5 * n + 3,
    sample_input=sample_input,
    oracle=oracle,
)
