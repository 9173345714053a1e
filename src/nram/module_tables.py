"""What follows from a module's integer meaning alone: tables of all arguments for one M, and meanings made from them.

The integer meaning of a user-defined module takes single Python integers. Distributions, traced numbers and whole
arrays go by tables, which are built once for each M.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any

from nram.errors import UsageError
from nram.lazy import np

if TYPE_CHECKING:
    from nram.modules import Module

Array = Any  # a NumPy or a JAX array
LARGEST_TABLE = 1 << 22  # entries: a few seconds of calls into Python
LARGEST_MATRIX = 1 << 24  # entries: 64 MB
LARGEST_PRODUCT = 46340  # the largest M whose products fit into JAX's 32-bit integers


@dataclass(frozen=True)
class EquationTwo:
    """The fuzzy meaning by equation 2 of the paper: the sum over all arguments, as one product of matrices.

    A product gives the same bits every time; adding up by index would not on a GPU.
    """

    module: str
    integer: Callable[..., Any]
    arity: int

    def __call__(self, xp: Any, size: int, *distributions: Array) -> Array:
        if not distributions:
            return xp.eye(size)[int(self.integer(size))]
        if size ** (self.arity + 1) > LARGEST_MATRIX:
            raise UsageError(
                f"the module {self.module} has no fuzzy form, and by equation 2 it needs "
                f"{size}^{self.arity + 1} numbers for M = {size}: add fuzzy=lambda xp, M, ...: ... to its Module, or "
                "use smaller memories"
            )
        together = distributions[0]
        for distribution in distributions[1:]:
            together = (together[:, None] * distribution[None, :]).reshape(-1)
        return together @ xp.asarray(_indicator(self.integer, self.arity, size), together.dtype)


@lru_cache(maxsize=64)
def _indicator(integer: Callable[..., Any], arity: int, size: int) -> np.ndarray:
    """[M^arity, M]: 1 where the module gives the column's number for the row's arguments."""
    return np.eye(size, dtype=np.float32)[_table(integer, arity, size).reshape(-1)]


@lru_cache(maxsize=64)
def _table(integer: Callable[..., Any], arity: int, size: int) -> np.ndarray:
    outputs = (integer(size, *arguments) for arguments in product(range(size), repeat=arity))
    return np.fromiter(outputs, np.int32, size**arity).reshape((size,) * arity)


def table_of(module: Module, size: int) -> np.ndarray:
    """int32, an axis for each argument: what the module gives for all arguments of one M."""
    if size**module.arity > LARGEST_TABLE:
        raise UsageError(
            f"the module {module.name} has no emitted form, and a table of all its arguments is too large for "
            f"M = {size}: use smaller memories, or add emit=lambda builder, {', '.join(module.arguments)}: ... to it"
        )
    return _table(module.integer, module.arity, size)


def on_arrays(module: Module, xp: Any, size: int, *arguments: Array) -> Array:
    """The integer meaning on arrays of NumPy or JAX, traced ones included, for one M."""
    if module.built_in:
        return module.integer(size, *arguments)
    if module.emits:
        return module.emit(ArrayBuilder(xp, size), *arguments)
    return xp.asarray(table_of(module, size))[arguments]


@dataclass(frozen=True)
class ArrayBuilder:
    """The primitives of `nram.modules.Builder` on integer arrays of NumPy or JAX, traced ones included."""

    xp: Any
    size: int

    def number(self, literal: int) -> Array:
        return self.xp.int32(literal)

    def add(self, a: Array, b: Array) -> Array:
        return a + b

    def sub(self, a: Array, b: Array) -> Array:
        return a - b

    def multiply(self, a: Array, b: Array) -> Array:
        if self.size > LARGEST_PRODUCT:
            raise UsageError(f"products for M = {self.size} do not fit into 32 bits: run the extracted program instead")
        return a * b % self.size

    def divide(self, a: Array, b: Array) -> Array:
        return self.xp.where(b == 0, 0, a // self.xp.where(b == 0, 1, b))

    def less(self, a: Array, b: Array) -> Array:
        return a < b

    def equal(self, a: Array, b: Array) -> Array:
        return a == b

    def choose(self, condition: Array, yes: Array, no: Array) -> Array:
        return self.xp.where(condition, yes, no)

    def within(self, value: Array) -> Array:
        return value
