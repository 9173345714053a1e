"""A Ray cluster of several nodes on this machine, in a process of its own.

    python -m support.ray_cluster NODES

It prints the address when it is ready. Then a line `kill` ends a node as if its power were cut, and another node takes
its place; the answer is a line. It ends with its standard input. The head runs no trials, so it can stay.
"""

from __future__ import annotations

import random
import sys
from typing import Any

STORE = 80 << 20  # bytes: the least that Ray takes


def main() -> None:
    from ray.cluster_utils import Cluster

    def node() -> Any:
        return cluster.add_node(num_cpus=1, object_store_memory=STORE)

    arguments = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": STORE}
    cluster = Cluster(initialize_head=True, head_node_args=arguments)
    nodes = [node() for _ in range(int(sys.argv[1]))]
    print(cluster.address, flush=True)
    for line in sys.stdin:
        if line.strip() == "kill":
            lost = random.choice(nodes)
            nodes.remove(lost)
            cluster.remove_node(lost, allow_graceful=False)
            nodes.append(node())
            print("killed", flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main()
