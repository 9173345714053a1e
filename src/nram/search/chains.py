"""Chains as the rest of the search calls them: tables of a structure, a pool of instances, the kernel's settings.

This module imports Numba and LLVM.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nram.search.instances import Pool
from nram.search.kernel import LANES, Annealing, Blocks, ChainEnd, Shape, costs_of, random_genes, run_chain
from nram.search.lanes import run_block_address
from nram.search.structure import Structure


def shape_of(structure: Structure) -> Shape:
    """A structure in the form of the kernel, with the code that runs its blocks."""
    indices = {module.name: index for index, module in enumerate(structure.kinds)}
    operations = [(indices[module.name], module.arity, module.memory == "writes") for module in structure.operations]
    return Shape(
        run_block_address(structure.kinds), np.array(operations, np.int64), structure.registers, structure.states
    )


def blocks_of(pool: Pool, order: Sequence[int] | None = None) -> Blocks:
    """The instances of a pool in this order: a new copy, which a chain may rearrange."""
    chosen = np.arange(len(pool)) if order is None else np.array(order)
    return Blocks(*(_in_lanes(array[chosen]) for array in pool.arrays))


def _in_lanes(array: np.ndarray) -> np.ndarray:
    blocks = -(-len(array) // LANES)
    padded = np.zeros((blocks * LANES, *array.shape[1:]), np.int32)
    padded[: len(array)] = array
    return np.ascontiguousarray(np.moveaxis(padded.reshape(blocks, LANES, *array.shape[1:]), 1, -1))


def new_monitor() -> np.ndarray:
    """What a chain and the thread that waits for it share; the kernel names its places."""
    return np.zeros(4)


def random_table(structure: Structure, seed: int) -> np.ndarray:
    genes = np.zeros((structure.rows, structure.width), np.int16)
    random_genes(seed, shape_of(structure), genes)
    return genes


def table_costs(structure: Structure, genes: np.ndarray, blocks: Blocks, instances: int) -> np.ndarray:
    """The cost of a table on every instance."""
    costs = np.zeros(instances)
    costs_of(shape_of(structure), genes, blocks, costs)
    return costs


def anneal(
    structure: Structure,
    genes: np.ndarray,
    blocks: Blocks,
    instances: int,
    settings: Annealing,
    monitor: np.ndarray | None = None,
) -> ChainEnd:
    """Run a chain. It changes `genes`, and the order of the instances in `blocks`."""
    return run_chain(
        shape_of(structure), genes, blocks, instances, settings, new_monitor() if monitor is None else monitor
    )
