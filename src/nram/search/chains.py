"""Chains as the rest of the search calls them: tables of a structure, a pool of instances, the kernel's settings.

This module imports Numba and LLVM.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nram.modules import Module
from nram.search.instances import Pool
from nram.search.kernel import (
    LANES,
    LARGEST_OF_BYTES,
    Annealing,
    Blocks,
    ChainEnd,
    Holes,
    Shape,
    costs_of,
    random_genes,
    run_chain,
)
from nram.search.lanes import run_block_address
from nram.search.structure import Structure
from nram.search.template import WISHES, Slot


def shape_of(structure: Structure, blocks: Blocks | None = None) -> Shape:
    """A structure in the form of the kernel, with the code that runs these blocks; without them, any blocks."""
    of_bytes = blocks is not None and blocks.sizes.max() <= LARGEST_OF_BYTES
    indices = {module.name: index for index, module in enumerate(structure.kinds)}
    template = structure.template
    modules = structure.operations if template is None else [slot.modules[0] for slot in template.slots[0]]
    operations = [_operation(indices, module) for module in modules]
    return Shape(
        run_block_address(structure.kinds, structure.registers, template is not None, of_bytes),
        4 if of_bytes else 1,
        np.array(operations, np.int64),
        structure.registers,
        structure.states,
    )


def _operation(indices: dict[str, int], module: Module) -> tuple[int, int, bool]:
    return indices[module.name], module.arity, module.memory == "writes"


def holes_of(structure: Structure, genes: np.ndarray) -> Holes | None:
    """What a chain may change in this table of a sketch, which shares the genes; None: there is no sketch."""
    template = structure.template
    if template is None:
        return None
    rows, count = len(template.slots), template.count
    indices = {module.name: index for index, module in enumerate(structure.kinds)}
    kinds: list[tuple[int, int, bool]] = []
    choices = np.zeros((rows, count, 2), np.int64)
    first: dict[tuple[Module, ...], int] = {}
    for row, slots in enumerate(template.slots):
        for k, slot in enumerate(slots):
            if len(slot.modules) > 1:
                if slot.modules not in first:
                    first[slot.modules] = len(kinds)
                    kinds += [_operation(indices, module) for module in slot.modules]
                choices[row, k] = first[slot.modules], len(slot.modules)
    operations = [[_operation(indices, slot.modules[0]) for slot in slots] for slots in template.slots]
    free = template.free[:rows]
    wholly = [template.rows[index].row.anything for index in template.row_of_genes]
    layouts: dict[tuple[Slot, ...], int] = {}
    places = [np.flatnonzero(line) for line in free]
    conditions = genes[rows:]
    wishes = [
        (row, register, int(wishes))
        for row, index in enumerate(template.open)
        for register, wishes in enumerate(template.open_conditions(index))
        if wishes
    ]
    open_rows = np.full(len(template.rows), -1, np.int64)
    open_rows[template.open] = np.arange(len(template.open))
    written = np.zeros((len(template.rows), structure.registers), np.int16)
    for index in range(len(template.rows)):
        if open_rows[index] < 0:
            written[index] = [WISHES.index(wish) for wish in template.conditions(genes, index)]
    return Holes(
        operations=np.array(operations, np.int64),
        free=free,
        alike=np.array(
            [
                layouts.setdefault(slots, len(layouts)) if one else -1
                for slots, one in zip(template.slots, wholly, strict=True)
            ]
        ),
        may_change=np.array([sum(1 << row for row in range(rows) if len(places[row]))], np.uint64),
        places=np.concatenate(places),
        first_place=np.cumsum([0, *map(len, places)]),
        choices=choices,
        kinds=np.array(kinds or [(0, 0, False)], np.int64),
        conditions=conditions,
        old_conditions=np.zeros((max(1, len(conditions)), structure.width), np.int16),
        best_conditions=conditions.copy(),
        wishes=np.array(wishes, np.int64).reshape(len(wishes), 3),
        written=written,
        open_row=open_rows,
        state_of=np.array([one.state for one in template.rows], np.int64),
        targets=template.targets,
        row_of=np.full(structure.states << structure.registers, -1, np.int32),
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
    if structure.template is None:
        genes = np.zeros((structure.rows, structure.width), np.int16)
        random_genes(seed, shape_of(structure), genes)
    else:
        genes = structure.template.written.copy()
        random_genes(seed, shape_of(structure), _rows(structure, genes), holes_of(structure, genes))
    return genes


def _rows(structure: Structure, genes: np.ndarray) -> np.ndarray:
    """The part of a table that the kernel takes: without the conditions of a sketch, which are among its holes."""
    return genes if structure.template is None else genes[: len(structure.template.slots)]


def table_costs(structure: Structure, genes: np.ndarray, blocks: Blocks, instances: int) -> np.ndarray:
    """The cost of a table on every instance."""
    costs = np.zeros(instances)
    costs_of(shape_of(structure, blocks), _rows(structure, genes), blocks, costs, holes_of(structure, genes))
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
        shape_of(structure, blocks),
        _rows(structure, genes),
        blocks,
        instances,
        settings,
        new_monitor() if monitor is None else monitor,
        holes_of(structure, genes),
    )
