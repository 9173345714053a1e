"""Memories that people hand in: checked, padded, and made into arrays of integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from nram.errors import UsageError

LEAST_SIZE = 3  # so that 0, 1 and 2 exist
LARGEST_SIZE = 2**31 - 1  # addresses are 32-bit integers


def default_max_steps(size: int) -> int:
    """How long a program may run that was given no limit."""
    return 64 * size + 1024


def prepare_memory(memory: Any, memory_size: int | None = None) -> np.ndarray:
    """A fresh int32 array of one axis, or of two for a batch, padded with zeros; a refusal if it cannot be one."""
    array = _as_array(memory)
    size = array.shape[-1]
    if memory_size is not None:
        if memory_size < size:
            raise UsageError(f"the memory has {size} cells, and memory size {memory_size} is smaller: raise it")
        size = memory_size
    if size < LEAST_SIZE:
        raise UsageError(f"a memory of {size} cells is too small: it needs at least {LEAST_SIZE} (--memory-size pads)")
    if size > LARGEST_SIZE:
        raise UsageError(f"a memory of {size} cells is too large: at most {LARGEST_SIZE} can be addressed")
    _check_values(array, size)
    padded = np.zeros((*array.shape[:-1], size), np.int32)
    padded[..., : array.shape[-1]] = array
    return padded


def _as_array(memory: Any) -> np.ndarray:
    if not isinstance(memory, np.ndarray):
        memory = list(memory)
        if any(isinstance(row, (list, tuple, np.ndarray)) for row in memory):
            lengths = [len(row) if isinstance(row, (list, tuple, np.ndarray)) else None for row in memory]
            if len(set(lengths)) > 1:
                odd = next(i for i, length in enumerate(lengths) if length != lengths[0])
                raise UsageError(
                    f"the memories of a batch must be of one size: the first has {lengths[0]} cells, number "
                    f"{odd + 1} has {lengths[odd]}; pad them with zeros or run them one by one"
                )
    if not isinstance(memory, np.ndarray) and not memory:
        raise UsageError("the memory is empty: give its cells")
    try:
        array = np.asarray(memory)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"this is no memory of whole numbers: {error}") from None
    if array.dtype == object:  # integers beyond 64 bits, or something that is no number
        cells = [cell for cell in array.ravel() if not isinstance(cell, int)]
        if not cells:
            raise UsageError("the memory holds a number beyond 64 bits: values must lie in 0..M-1")
        raise UsageError(f"the memory holds {cells[0]!r:.40}: its cells are whole numbers")
    if array.dtype.kind not in "iu":
        raise UsageError(f"the memory is of type {array.dtype}: its cells are whole numbers")
    if array.ndim not in (1, 2):
        raise UsageError(f"the memory has {array.ndim} axes: give one memory, or a batch of them")
    return array


def _check_values(array: np.ndarray, size: int) -> None:
    if array.size == 0 or (array.min() >= 0 and array.max() < size):
        return
    wrong = np.argwhere((array < 0) | (array >= size))
    shown = ", ".join(f"{array[tuple(place)]} in {_cell(place)}" for place in wrong[:5])
    more = f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""
    largest = int(array.max())
    hint = f"; a memory of {largest + 1} cells could hold them (--memory-size)" if array.min() >= 0 else ""
    raise UsageError(f"values must lie in 0..{size - 1} in a memory of {size} cells: {shown}{more}{hint}")


def _cell(place: np.ndarray) -> str:
    return f"cell {place[-1]}" + (f" of memory {place[0] + 1}" if len(place) == 2 else "")
