"""Tables for modules without an emitted form: their outputs for all arguments, for every M of a pool.

A store is one array of 32-bit numbers. The number at index M is the index where the table for that M begins. Compiled
code contains the address of the array, so it never moves, and tables are put in before they are used.
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
        self.numbers = np.zeros(ROOM, np.int32)  # the operating system provides only the pages that are used
        self.free = LARGEST_SIZE + 1

    @property
    def address(self) -> int:
        return self.numbers.ctypes.data

    def put(self, size: int) -> None:
        """Put in the table for one M, unless it is there."""
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
    """Put in every table that these modules need on memories of these sizes."""
    without_form = [module for module in modules if not module.emits]
    for size in sorted(set(sizes)) if without_form else ():
        for module in without_form:
            store_of(module).put(size)
