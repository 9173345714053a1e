"""A Ray cluster of several nodes on this machine, in a process of its own that `RayCluster` starts.

    python -m support.ray_cluster NODES GPUS

Each node has a core and so many GPUs, which need not exist. It prints the address when it is ready. Then a line `kill`
ends a node as if its power were cut, and another node takes its place; the answer is a line. It ends with its standard
input. The head runs no trials, so it can stay.
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

STORE = 80 << 20  # bytes: the least that Ray takes


class RayCluster:
    """A cluster, and what can happen to it."""

    def __init__(self, nodes: int, gpus: int = 0):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "support.ray_cluster", str(nodes), str(gpus)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONPATH": _paths(), "RAY_USAGE_STATS_ENABLED": "0", "JAX_PLATFORMS": "cpu"},
        )
        self.address = self._answer()

    def _answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def lose_node(self) -> None:
        """Cut the power of a node. Another takes its place."""
        assert self.process.stdin is not None
        self.process.stdin.write("kill\n")
        self.process.stdin.flush()
        assert self._answer() == "killed"

    def close(self) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.communicate(timeout=30)
        self.process.kill()
        self.process.communicate()


def _paths() -> str:
    return os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])


def main() -> None:
    from ray.cluster_utils import Cluster

    def node() -> Any:
        return cluster.add_node(num_cpus=1, num_gpus=int(sys.argv[2]), object_store_memory=STORE)

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
