"""Insert a node into a binary search tree."""

from nram.tasks import StepLimit, Task


def place_of(memory, key):
    """The address of the empty cell in which a node with this key belongs."""
    cell = 0
    while memory[cell]:
        node = memory[cell]
        cell = node + 1 if key < memory[node] else node + 2
    return cell


def sample_input(rng, n, memory_size):
    # Nodes have three cells and must not overlap: draw positions as if nodes had one cell, then shift them apart.
    positions = sorted(rng.sample(range(memory_size - 2 - 2 * (n + 1)), n + 1))
    nodes = rng.sample([2 + position + 2 * before for before, position in enumerate(positions)], n + 1)
    keys = rng.sample(range(1, memory_size), n + 1)
    new = keys.pop()
    if rng.random() < 0.25:  # nearly sorted: long paths, but for large n not too long to sample
        keys = [key for i in range(0, n, 40) for key in sorted(keys[i : i + 40])]
    memory = [0] * memory_size
    for node, key in zip(nodes, keys, strict=False):
        memory[place_of(memory, key)] = node
        memory[node] = key
    memory[1] = nodes[-1]
    memory[nodes[-1]] = new
    return memory


def oracle(memory):
    memory = [*memory]
    new = memory[1]
    cells, left = [], [memory[0]]
    while left:
        node = left.pop()
        cells += [node + 1, node + 2]
        left += [child for child in memory[node + 1 : node + 3] if child]
    memory[place_of(memory, memory[new])] = new
    return memory, sorted(cells)


TASK = Task(
    name="tree_insert",
    summary="Given the root of a binary search tree and a new node, insert the node as a leaf.",
    layout="root, p, then n nodes (value, left, right) of a search tree with distinct values and a new node "
    "(value, 0, 0) at address p, at random addresses; p goes to the cell for a left or right child where it belongs",
    trained_up_to=8,
    step_limit=StepLimit(4, 8),
    least_memory=lambda n: 3 * n + 5,
    sample_input=sample_input,
    oracle=oracle,
)
