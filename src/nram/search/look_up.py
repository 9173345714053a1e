"""Modules without an emitted form in the kernel of the search: tables of all arguments for the few M of a pool.

A store is one array of 32-bit numbers: at place M where the table for that M begins, and there the table. Code knows
its address, so it never moves; what is asked of it must be put in before.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from nram.errors import UsageError
from nram.module_tables import table_of
from nram.modules import Module

ROOM = 1 << 22
LARGEST_SIZE = 4096


class TableStore:
    """The tables of one module."""

    def __init__(self, module: Module):
        self.module = module
        self.numbers = np.zeros(ROOM, np.int32)  # memory that is not used is not taken
        self.free = LARGEST_SIZE + 1

    @property
    def address(self) -> int:
        return self.numbers.ctypes.data

    def put(self, size: int) -> None:
        """Have the table for one M."""
        if size <= LARGEST_SIZE and self.numbers[size]:
            return
        entries = size**self.module.arity
        if size > LARGEST_SIZE or self.free + entries > ROOM:
            raise UsageError(
                f"the module {self.module.name} has no emitted form, and its tables for memories up to M = {size} are "
                "too large for the search: add emit=lambda to, "
                f"{', '.join(self.module.arguments)}: ... to its Module, or use smaller examples"
            )
        self.numbers[self.free : self.free + entries] = table_of(self.module, size).reshape(-1)
        self.numbers[size] = self.free
        self.free += entries


_stores: dict[Module, TableStore] = {}


def store_of(module: Module) -> TableStore:
    """The store of a module, which lives as long as the process."""
    if module not in _stores:
        _stores[module] = TableStore(module)
    return _stores[module]


def have_tables(modules: Iterable[Module], sizes: Iterable[int]) -> None:
    """Put in what code for these modules will look up on memories of these sizes."""
    wanting = [module for module in modules if not module.emits]
    for size in sorted(set(sizes)) if wanting else ():
        for module in wanting:
            store_of(module).put(size)
