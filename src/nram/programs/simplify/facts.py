"""Facts about the registers in one situation: the kinds of values each may hold, and which registers are equal.

A value is of one of four kinds: 0, 1, 2 or larger. A set of kinds is a mask of four bits. This abstraction holds for
every M, and it is enough for flags, constants and truth values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product

from nram.modules import MODULES

ANY = 0b1111
ZERO = 0b0001
NOT_ZERO = 0b1110
LARGE = 3  # the kind of all values from 3 up
# These sizes show every combination of kinds that any M can give: the tests prove it for all M.
TELLING_SIZES = range(3, 10)


def kinds(mask: int) -> Iterator[int]:
    return (kind for kind in range(4) if mask >> kind & 1)


def constant_of(mask: int) -> int | None:
    """The only value that the mask admits, or None if there are several or if it depends on M."""
    return {0b0001: 0, 0b0010: 1, 0b0100: 2}.get(mask)


@cache
def output_mask(module: str, arguments: tuple[int, ...]) -> int:
    """The kinds that a module's output may have, given the kinds of its arguments."""
    if MODULES[module].memory == "reads":
        return ANY
    if MODULES[module].memory == "writes":
        return ZERO
    if not MODULES[module].built_in:
        return ANY  # for user-defined modules there is no proof that a few sizes suffice
    mask = 0
    for combination in product(*map(kinds, arguments)):
        mask |= _output_kinds(module, combination)
    return mask


@cache
def _output_kinds(module: str, arguments: tuple[int, ...]) -> int:
    mask = 0
    for size in TELLING_SIZES:
        for values in product(*(_values(kind, size) for kind in arguments)):
            mask |= 1 << min(int(MODULES[module].integer(size, *values)), LARGE)
    return mask


def _values(kind: int, size: int) -> range:
    return range(LARGE, size) if kind == LARGE else range(kind, kind + 1)


@dataclass(frozen=True, slots=True)
class Facts:
    """`masks`: the kinds of each register. `same`: for each register, the first that is certainly equal to it."""

    masks: tuple[int, ...]
    same: tuple[int, ...]

    def joined(self, other: Facts) -> Facts:
        """What holds if one of the two holds."""
        if self == other:
            return self
        masks = tuple(a | b for a, b in zip(self.masks, other.masks, strict=True))
        pairs = list(zip(self.same, other.same, strict=True))
        return Facts(masks, tuple(pairs.index(pair) for pair in pairs))


def at_start(registers: int) -> Facts:
    """The facts at the start of a run: all registers are 0, and so they are equal."""
    return Facts((ZERO,) * registers, (0,) * registers)


def join(facts: list[Facts]) -> Facts:
    result = facts[0]
    for other in facts[1:]:
        result = result.joined(other)
    return result
