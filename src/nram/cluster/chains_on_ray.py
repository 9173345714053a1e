"""The chains of a search on a Ray cluster. Each is a task of Ray, and a thread of the search waits for it.

What a chain finds depends on what it is given alone. So a chain that is lost with its worker or its machine is run
again, and nobody can tell. Pool and tables come from the search, which keeps its state where it runs: workers keep
nothing. A worker's chain ends when it is cancelled, and also when the process of the search ends, however it ends.
"""

from __future__ import annotations

import contextlib
import pickle
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait

import numpy as np
import ray
from ray.exceptions import RayError, RayTaskError, TaskCancelledError

from nram.cluster.connection import connected, require_room
from nram.errors import NramError, UsageError
from nram.search.chains import new_monitor
from nram.search.engine import RunChain, run_here
from nram.search.instances import Pool
from nram.search.kernel import CANDIDATES, STOP, ChainEnd
from nram.search.look_up import have_tables
from nram.search.schedule import Chain

LOOK = 0.05  # seconds between two looks at whether to stop
MOST_CHAINS = 50  # of a round
MOST_LOSSES = 20  # of one chain, with workers that were killed or with machines
STOPPED = ChainEnd(False, 0, 0, float("inf"), 0)


@contextlib.contextmanager
def chains_on_ray(address: str) -> Iterator[RunChain]:
    """Join the cluster at this address. Inside the context, the function runs chains there."""
    with connected(address, "search"):
        require_room({"CPU": 1}, "a chain of the search")
        # Workers import the search while this process compiles it.
        for _ in range(min(MOST_CHAINS, int(ray.cluster_resources().get("CPU", 0)))):
            ray.remote(_nothing).options(num_cpus=1).remote()
        yield _Chains().run


class _Chains:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.shared: tuple[Pool, ray.ObjectRef] | None = None
        self.remote = ray.remote(_run_on_worker).options(num_cpus=1, max_retries=MOST_LOSSES, name="nram chain")

    def run(self, chain: Chain, genes: np.ndarray, pool: Pool, monitor: np.ndarray) -> ChainEnd:
        """Have a chain run on the cluster, and take over what came out."""
        if monitor[STOP]:
            return STOPPED
        try:
            task = self.remote.remote(_pickled_modules(chain), chain, genes, self._shared(pool))
            while not ray.wait([task], timeout=LOOK)[0]:
                if monitor[STOP]:
                    ray.cancel(task)
                    return STOPPED
            end, reached = ray.get(task)
        except TaskCancelledError:
            return STOPPED
        except RayError as error:
            raise _as_ours(error) from None
        genes[:] = reached
        monitor[CANDIDATES] = end.candidates
        return end

    def _shared(self, pool: Pool) -> ray.ObjectRef:
        """The pool as an object that every machine of the cluster fetches once."""
        with self.lock:
            if self.shared is None or self.shared[0] is not pool:
                self.shared = pool, ray.put(pool)
            return self.shared[1]


def _pickled_modules(chain: Chain) -> bytes:
    """The user-defined modules of a chain, by their files or packages: a structure has only their names."""
    try:
        return pickle.dumps([module for module in chain.structure.kinds if not module.built_in])
    except pickle.PicklingError as error:
        raise UsageError(str(error)) from None


def _as_ours(error: RayError) -> NramError:
    """The error of a chain in words for the user."""
    cause = error.cause if isinstance(error, RayTaskError) else error
    if isinstance(cause, NramError):
        return cause
    words = " ".join(str(cause).split())[:300]
    return NramError(f"the cluster lost a chain: {type(cause).__name__}: {words}; go on with --resume")


# ---- on a worker


def _nothing() -> None:
    """Do nothing. To call it, a worker imports this module."""


def _run_on_worker(modules: bytes, chain: Chain, genes: np.ndarray, pool: Pool) -> tuple[ChainEnd, np.ndarray]:
    """Run a chain in this process."""
    pickle.loads(modules)  # they are known by their names now
    have_tables(chain.structure.kinds, (len(instance.input) for instance in pool.instances))
    reached, monitor = genes.copy(), new_monitor()
    with ThreadPoolExecutor(1) as executor:
        end = executor.submit(run_here, chain, reached, pool, monitor)
        try:
            while not end.done():  # Ray cancels by an interrupt, which the main thread notices between two waits
                wait([end], LOOK)
        finally:
            monitor[STOP] = 1
    return end.result(), reached
