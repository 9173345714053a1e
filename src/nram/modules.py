"""The modules of the machine: one table, a row each.

A row gives a module's name, the names of its arguments, what it does to integers and what it does
to distributions. The fuzzy meaning is equation 2 of the paper, exactly:

    P(m(A, B) = c) = sum over a, b of P(A = a) P(B = b) [m(a, b) = c]

written in closed form wherever one is cheaper than the M x M table of all pairs. A fuzzy meaning
takes the array namespace `xp` (NumPy or jax.numpy) first, so that this file needs neither, and
distributions as vectors of length M. An integer meaning is plain arithmetic, so that it serves Python
integers, whole arrays of them and traced ones alike; only WRITE changes a memory in place.
"""

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from nram.errors import UsageError

Array = Any  # a NumPy or a JAX array


@dataclass(frozen=True)
class Module:
    """One row of the table. The meanings' signatures depend on what the module does to the memory:

    nothing: `integer(M, *args) -> int`           `fuzzy(xp, M, *args) -> [M]`
    reads:   `integer(memory, pointer) -> int`    `fuzzy(xp, memory, pointer) -> [M]`
    writes:  `integer(memory, pointer, value)`    `fuzzy(xp, memory, pointer, value) -> memory`
             in place; the module's output is 0   the new memory; the module's output is 0
    """

    name: str
    arguments: tuple[str, ...]  # letters as in the paper's pictures
    integer: Callable[..., Any]
    fuzzy: Callable[..., Array]
    memory: Literal["nothing", "reads", "writes"] = "nothing"

    @property
    def arity(self) -> int:
        return len(self.arguments)


def _constant(value: int) -> Callable[..., Array]:
    return lambda xp, size: xp.eye(size)[value]


def _negate(xp, a: Array) -> Array:
    """The distribution of -A mod M."""
    return xp.roll(xp.flip(a, -1), 1, -1)


def _subtract(xp, size: int, a: Array, b: Array) -> Array:
    # A - B = c means A = b + c. Row b of this matrix is `a` rotated left by b: copies of `a` laid
    # out in rows of M + 1 slip by one place a row, so no gather is needed.
    rotations = xp.tile(a, size + 1).reshape(size, size + 1)[:, :size]
    return b @ rotations


def _boolean(xp, size: int, probability: Array) -> Array:
    """The distribution of a truth value: 1 with this probability, else 0."""
    pair = xp.stack([1 - probability, probability])
    return xp.concatenate([pair, xp.zeros(size - 2, pair.dtype)])


def _less(xp, size: int, a: Array, b: Array) -> Array:
    return _boolean(xp, size, xp.sum((xp.cumsum(a, -1) - a) * b, -1))


def _less_or_equal(xp, size: int, a: Array, b: Array) -> Array:
    return _boolean(xp, size, xp.sum(xp.cumsum(a, -1) * b, -1))


def _equal(xp, size: int, a: Array, b: Array) -> Array:
    return _boolean(xp, size, xp.sum(a * b, -1))


def _minimum(xp, size: int, a: Array, b: Array) -> Array:
    # The smaller is c: A = c and B >= c, or B = c and A > c.
    at_least_b = xp.sum(b, -1, keepdims=True) - xp.cumsum(b, -1) + b
    above_a = xp.sum(a, -1, keepdims=True) - xp.cumsum(a, -1)
    return a * at_least_b + b * above_a


def _maximum(xp, size: int, a: Array, b: Array) -> Array:
    # The larger is c: A = c and B <= c, or B = c and A < c.
    return a * xp.cumsum(b, -1) + b * (xp.cumsum(a, -1) - a)


def _write_integer(memory, pointer: int, value: int) -> None:
    memory[pointer] = value


def _write_fuzzy(xp, memory: Array, pointer: Array, value: Array) -> Array:
    return (1 - pointer)[:, None] * memory + pointer[:, None] * value[None, :]


PAPER_MODULES: tuple[Module, ...] = (
    Module("READ", ("p",), lambda memory, p: memory[p], lambda xp, memory, p: p @ memory, "reads"),
    Module("ZERO", (), lambda size: 0, _constant(0)),
    Module("ONE", (), lambda size: 1, _constant(1)),
    Module("TWO", (), lambda size: 2, _constant(2)),
    Module("INC", ("a",), lambda size, a: (a + 1) % size, lambda xp, size, a: xp.roll(a, 1, -1)),
    Module(
        "ADD",
        ("a", "b"),
        lambda size, a, b: (a + b) % size,
        lambda xp, size, a, b: _subtract(xp, size, a, _negate(xp, b)),
    ),
    Module("SUB", ("a", "b"), lambda size, a, b: (a - b) % size, _subtract),
    Module("DEC", ("a",), lambda size, a: (a - 1) % size, lambda xp, size, a: xp.roll(a, -1, -1)),
    Module("LESS-THAN", ("x", "y"), lambda size, x, y: 1 * (x < y), _less),
    Module("LESS-OR-EQUAL-THAN", ("x", "y"), lambda size, x, y: 1 * (x <= y), _less_or_equal),
    Module("EQUALITY-TEST", ("a", "b"), lambda size, a, b: 1 * (a == b), _equal),
    Module("MIN", ("a", "b"), lambda size, a, b: a + (b - a) * (b < a), _minimum),
    Module("MAX", ("a", "b"), lambda size, a, b: a + (b - a) * (b > a), _maximum),
    Module("WRITE", ("p", "a"), _write_integer, _write_fuzzy, "writes"),
)

MODULE_NAMES: tuple[str, ...] = tuple(module.name for module in PAPER_MODULES)


def select_modules(names: Iterable[str], repeats: int = 1) -> tuple[Module, ...]:
    """The modules of these names in this order, the whole sequence repeated."""
    table = {module.name: module for module in PAPER_MODULES}
    chosen = []
    for name in names:
        if name not in table:
            near = difflib.get_close_matches(name.upper(), table, n=3, cutoff=0.4)
            hint = f"; did you mean {' or '.join(near)}?" if near else f"; the modules are {', '.join(table)}"
            raise UsageError(f"unknown module '{name}'{hint}")
        chosen.append(table[name])
    if not chosen:
        raise UsageError("the machine needs at least one module")
    if repeats < 1:
        raise UsageError(f"repeats is {repeats}: the module sequence must appear at least once")
    return tuple(chosen) * repeats
