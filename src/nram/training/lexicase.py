"""Lexicase selection: single examples decide who stays and who is cloned, not the mean error.

A member is chosen by examples in random order: of the candidates that are left, only the best at the next example stay,
until one is left. A member that alone solves a rare example is chosen now and then, however bad it is at the others; a
mean error would lose it.

Numba compiles the loops: a check of 512 members looks at an example tens of thousands of times.
"""

from typing import Any

import numpy as np
from numba import njit

from nram.numba_cache import cached_on_disk

TOLERANCE = 0.02  # errors that exceed the least by no more than this are equally good


def choose_by_examples(errors: np.ndarray, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The rows of errors [members, examples] to be replaced, `count` of them, and a parent for each.

    The first row always stays.
    """
    examples = np.where(np.isfinite(errors), errors, np.inf).T.astype(np.float64, order="C")
    number, members = examples.shape
    orders = rng.permuted(np.tile(np.arange(number), (members - 1, 1)), axis=1)  # of the examples, for each choice
    ties = rng.random(members - 1)
    rows, parents, candidates = np.arange(members), np.zeros(count, np.int64), np.zeros(members, np.int64)
    _choose_all(examples, orders, ties, rows, parents, candidates)
    return np.sort(rows[members - count :]), parents


def _compiled(function: Any) -> Any:
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}  # no array is made in it
    return cached_on_disk(njit(**options)(function), ("training/lexicase.py",))


@_compiled
def _choose_all(examples, orders, ties, rows, parents, candidates):
    """Bring the rows that stay to the front of `rows`, one after another, then choose a parent for each of the rest.

    Row 0 stays. `orders` and `ties` hold the random numbers, for one choice each; `candidates` is room to work in.
    """
    members, staying = len(rows), len(rows) - len(parents)
    for choice in range(members - 1):
        chooses_parent = choice >= staying - 1
        first, last = (0, staying) if chooses_parent else (choice + 1, members)
        left = last - first
        for place in range(left):
            candidates[place] = first + place
        for example in orders[choice]:
            least = np.inf
            for place in range(left):
                least = min(least, examples[example, rows[candidates[place]]])
            kept = 0
            for place in range(left):
                if examples[example, rows[candidates[place]]] <= least + TOLERANCE:
                    candidates[kept] = candidates[place]
                    kept += 1
            left = kept
            if left == 1:
                break
        chosen = candidates[int(ties[choice] * left)]
        if chooses_parent:
            parents[choice - staying + 1] = rows[chosen]
        else:
            rows[first], rows[chosen] = rows[chosen], rows[first]
