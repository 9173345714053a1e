"""Memories that users give: checked, padded, and turned into arrays of integers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from nram.errors import UsageError, shown

LEAST_SIZE = 3  # so that 0, 1 and 2 exist
LARGEST_SIZE = 2**31 - 1  # addresses are 32-bit integers


def default_max_steps(size: int) -> int:
    """The step limit of a run for which none is given."""
    return 64 * size + 1024


def prepare_memory(memory: Any, memory_size: int | None = None) -> np.ndarray:
    """A new int32 array of one axis, or of two for a batch, padded with zeros; UsageError if it is not a memory.

    Native code relies on the checks. So they look at a copy, which no other thread can change after them.
    """
    array = _copied(memory)
    size = array.shape[-1]
    if memory_size is not None:
        if not isinstance(memory_size, Integral) or isinstance(memory_size, bool):
            raise UsageError(f"memory size is {shown(memory_size)}: give a whole number")
        wanted = int(memory_size)
        if wanted < size:
            raise UsageError(f"the memory has {size} cells, and memory size {shown(wanted)} is smaller: raise it")
        size = wanted
    if size < LEAST_SIZE:
        raise UsageError(f"a memory of {size} cells is too small: it needs at least {LEAST_SIZE} (--memory-size pads)")
    if size > LARGEST_SIZE:
        raise UsageError(f"a memory of {shown(size)} cells is too large: at most {LARGEST_SIZE} can be addressed")
    _check_values(array, size)
    try:
        if array.shape[-1] == size:
            return array.astype(np.int32, copy=False)
        padded = np.zeros((*array.shape[:-1], size), np.int32)
    except MemoryError:
        many = f"{len(array)} memories" if array.ndim == 2 else "a memory"
        raise UsageError(f"this machine cannot hold {many} of {size} cells") from None
    padded[..., : array.shape[-1]] = array
    return padded


def narrow_cells(memory: Any, largest_value: int) -> np.ndarray:
    """The cells of one memory whose values go up to `largest_value`, however few they are: int32, and checked.

    It is the beginning of a memory of `largest_value + 1` cells, which `prepare_memory` makes of it. The rest of that
    takes no room until a program uses it, because the system hands out zeroed pages at their first use.
    """
    if not isinstance(largest_value, Integral) or isinstance(largest_value, bool):
        raise UsageError(f"the largest value is {shown(largest_value)}: give a whole number")
    given, most = _copied(memory), int(largest_value)
    if given.ndim != 1:
        raise UsageError("a largest value is for one memory: run the memories of a batch one by one")
    if not max(given.size, LEAST_SIZE) <= most < LARGEST_SIZE:
        raise UsageError(
            f"the largest value is {shown(most)}: for {given.size} cells give {max(given.size, LEAST_SIZE)} to "
            f"{LARGEST_SIZE - 1}"
        )
    _check_values(given, most + 1)
    return given.astype(np.int32)


def _copied(memory: Any) -> np.ndarray:
    """A new array of whole numbers, with one axis or two."""
    if isinstance(memory, np.ndarray) and memory.dtype == object and memory.ndim:
        memory = memory.tolist()
    if not hasattr(memory, "__array__"):
        memory = check_lists(memory)
    try:
        # Two steps, since an object may keep the array that it gives away.
        array = np.array(np.asarray(memory), order="C")
    except MemoryError:
        raise UsageError("this machine cannot hold a copy of the memory") from None
    except (ValueError, OverflowError) as error:
        raise UsageError(f"this is not a memory of whole numbers: {error}") from None
    if array.dtype == object:
        raise UsageError("the memory holds a number beyond 64 bits: values must lie in 0..M-1")
    if array.dtype.kind not in "iu":
        raise UsageError(f"the memory is of type {array.dtype}: its cells are whole numbers")
    if array.ndim not in (1, 2):
        raise UsageError(f"the memory has {array.ndim} axes: give one memory, or a batch of them")
    return array


def check_lists(memory: Any) -> list[Any]:
    """The cells, or the memories of a batch, each checked: NumPy alone would read True as 1, and mix types."""
    if isinstance(memory, (str, bytes, dict, set, frozenset)) or not isinstance(memory, Iterable):
        raise UsageError(f"the memory is {shown(memory)}: give a list of whole numbers, or a batch of such lists")
    cells = list(memory)
    if not cells:
        raise UsageError("the memory is empty: give its cells")
    if not any(_is_row(cell) for cell in cells):
        _check_cells(cells, "")
        return cells
    for count, row in enumerate(cells, 1):
        if not _is_row(row):
            raise UsageError(f"memory {count} of the batch is {shown(row)}: give a list of whole numbers")
        if len(row) != len(cells[0]):
            raise UsageError(
                f"the memories of a batch must be of one size: the first has {len(cells[0])} cells, memory {count} has "
                f"{len(row)}; pad them with zeros or run them one by one"
            )
        if not len(row):
            raise UsageError(f"memory {count} is empty: give its cells")
        if not isinstance(row, np.ndarray):
            _check_cells(row, f" of memory {count}")
    return cells


def _is_row(cell: Any) -> bool:
    return isinstance(cell, (list, tuple)) or (isinstance(cell, np.ndarray) and cell.ndim > 0)


def _check_cells(cells: Sequence[Any], where: str) -> None:
    for address, cell in enumerate(cells):
        if type(cell) is not int and (isinstance(cell, bool) or not isinstance(cell, Integral)):
            raise UsageError(f"cell {address}{where} is {shown(cell)}: the cells of a memory are whole numbers")


def _check_values(array: np.ndarray, size: int) -> None:
    if array.size == 0 or (array.min() >= 0 and array.max() < size):
        return
    wrong = np.argwhere((array < 0) | (array >= size))
    parts = ", ".join(f"{array[tuple(index)]} in {_cell(index)}" for index in wrong[:5])
    more = f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""
    largest = int(array.max())
    fits = array.min() >= 0 and largest < LARGEST_SIZE
    hint = f"; a memory of {largest + 1} cells could hold them (--memory-size)" if fits else ""
    raise UsageError(f"values must lie in 0..{size - 1} in a memory of {size} cells: {parts}{more}{hint}")


def _cell(index: np.ndarray) -> str:
    return f"cell {index[-1]}" + (f" of memory {index[0] + 1}" if len(index) == 2 else "")
