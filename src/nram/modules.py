"""The modules of the machine: one table, a row each.

A row gives a module's name, the names of its arguments, what it does to integers, what it does to
distributions, and how it is emitted as code. The fuzzy meaning is equation 2 of the paper, exactly:

    P(m(A, B) = c) = sum over a, b of P(A = a) P(B = b) [m(a, b) = c]

written in closed form wherever one is cheaper than the M x M table of all pairs. A fuzzy meaning
takes the array namespace `xp` (NumPy or jax.numpy) first, so that this file needs neither, and
distributions as vectors of length M. An integer meaning is plain arithmetic, so that it serves Python
integers, whole arrays of them and traced ones alike; only WRITE changes a memory in place. An emitted
meaning is the same in the few primitives of a `Builder`: machine code, C and logic formulas are
builders of the same thing.

A user-defined module needs only an integer meaning, on single integers: the rest follows from it
(`nram.module_tables`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, Protocol, TypeAlias, cast

from nram.algebra import Array, Formula
from nram.display import Fixed
from nram.errors import UsageError
from nram.module_tables import EquationTwo

MemoryUse: TypeAlias = Literal["nothing", "reads", "writes"]


class Builder(Protocol):
    """What a target must offer: values below 2 M and above -M, conditions, and the memory. Literals are ints."""

    @property
    def size(self) -> Any: ...  # M

    def number(self, literal: int) -> Any: ...

    def add(self, a: Any, b: Any) -> Any: ...

    def sub(self, a: Any, b: Any) -> Any: ...

    def multiply(self, a: Any, b: Any) -> Any: ...  # a b mod M; both arguments lie in 0..2M-1

    def divide(self, a: Any, b: Any) -> Any: ...  # the whole part, 0 if b is 0; both arguments lie in 0..2M-1

    def less(self, a: Any, b: Any) -> Any: ...  # a condition; both arguments lie in 0..2M-1

    def equal(self, a: Any, b: Any) -> Any: ...  # a condition

    def choose(self, condition: Any, yes: Any, no: Any) -> Any: ...

    def read(self, pointer: Any) -> Any: ...

    def write(self, pointer: Any, value: Any) -> None: ...

    def within(self, value: Any) -> Any: ...  # where code must not trust it: 0 unless it lies in 0..M-1


@dataclass(frozen=True)
class NotEmitted:
    """Placeholder for a missing emit function: it says so where one is needed."""

    module: str
    arguments: tuple[str, ...]

    def __call__(self, to: Builder, *arguments: Any) -> NoReturn:
        words = ", ".join(("builder", *self.arguments))
        raise UsageError(
            f"the module {self.module} has no emitted form, which machine code, C, Python source and proofs are made "
            f"from: add emit=lambda {words}: ... to its Module, in the primitives of nram.modules.Builder"
        )


@dataclass(frozen=True, repr=False)
class Module(Fixed):
    """One row of the table. The meanings' signatures depend on what the module does to the memory:

    nothing: `integer(M, *args) -> int`           `fuzzy(xp, M, *args) -> [M]`
    reads:   `integer(memory, pointer) -> int`    `fuzzy(xp, memory, pointer) -> [M]`
    writes:  `integer(memory, pointer, value)`    `fuzzy(xp, memory, pointer, value) -> memory`
             in place; the module's output is 0   the new memory; the module's output is 0
    """

    name: str
    arguments: tuple[str, ...]  # letters as in the paper's pictures
    integer: Callable[..., Any]
    fuzzy: Callable[..., Array] = cast(Any, None)
    """Left out: equation 2 by a table of all arguments."""
    emit: Callable[..., Any] = cast(Any, None)
    """(builder, *args) -> the output; WRITE's is ignored. Left out: no machine code, C, Python source or proofs."""
    memory: MemoryUse = "nothing"
    meaning: str = ""
    """In words, for people."""

    def __post_init__(self) -> None:
        if self.fuzzy is None:
            object.__setattr__(self, "fuzzy", EquationTwo(self.name, self.integer, self.arity))
        if self.emit is None:
            object.__setattr__(self, "emit", NotEmitted(self.name, self.arguments))

    def _brief(self) -> str:
        return f"{self.name}({', '.join(self.arguments)}): {self.meaning or 'user-defined'}"

    @property
    def arity(self) -> int:
        return len(self.arguments)

    @property
    def emits(self) -> bool:
        """Whether it has an emitted form."""
        return not isinstance(self.emit, NotEmitted)

    @property
    def built_in(self) -> bool:
        return _PAPER.get(self.name) is self


def _minimum(d, x, y):
    # X = c and Y >= c, or Y = c and X > c. Both sums come before the products because JAX adds up gradients in the
    # reverse order, and earlier releases had it so.
    y_at_least, x_above = d.at_least(y), d.above(x)
    return x * y_at_least + y * x_above


def _write_integer(memory, pointer: int, value: int) -> None:
    memory[pointer] = value


def _write_fuzzy(xp, memory: Array, pointer: Array, value: Array) -> Array:
    return (1 - pointer)[:, None] * memory + pointer[:, None] * value[None, :]


def _emit_inc(b: Builder, x):
    following = b.add(x, b.number(1))
    return b.choose(b.equal(following, b.size), b.number(0), following)


def _emit_add(b: Builder, x, y):
    total = b.add(x, y)
    return b.choose(b.less(total, b.size), total, b.sub(total, b.size))


def _emit_sub(b: Builder, x, y):
    difference = b.sub(x, y)
    return b.choose(b.less(x, y), b.add(difference, b.size), difference)


def _emit_dec(b: Builder, x):
    one = b.number(1)
    return b.choose(b.equal(x, b.number(0)), b.sub(b.size, one), b.sub(x, one))


def _emit_truth(b: Builder, condition):
    return b.choose(condition, b.number(1), b.number(0))


PAPER_MODULES: tuple[Module, ...] = (
    Module(
        "READ",
        ("p",),
        lambda memory, p: memory[p],
        lambda xp, memory, p: p @ memory,
        lambda b, p: b.read(p),
        "reads",
        meaning="the cell at p",
    ),
    Module("ZERO", (), lambda size: 0, Formula(lambda d: d.certain(0)), lambda b: b.number(0), meaning="0"),
    Module("ONE", (), lambda size: 1, Formula(lambda d: d.certain(1)), lambda b: b.number(1), meaning="1"),
    Module("TWO", (), lambda size: 2, Formula(lambda d: d.certain(2)), lambda b: b.number(2), meaning="2"),
    Module(
        "INC",
        ("a",),
        lambda size, x: (x + 1) % size,
        Formula(lambda d, x: d.rotate(x, 1)),
        _emit_inc,
        meaning="a + 1 mod M",
    ),
    Module(
        "ADD",
        ("a", "b"),
        lambda size, x, y: (x + y) % size,
        Formula(lambda d, x, y: d.plus(x, y)),
        _emit_add,
        meaning="a + b mod M",
    ),
    Module(
        "SUB",
        ("a", "b"),
        lambda size, x, y: (x - y) % size,
        Formula(lambda d, x, y: d.minus(x, y)),
        _emit_sub,
        meaning="a - b mod M",
    ),
    Module(
        "DEC",
        ("a",),
        lambda size, x: (x - 1) % size,
        Formula(lambda d, x: d.rotate(x, -1)),
        _emit_dec,
        meaning="a - 1 mod M",
    ),
    Module(
        "LESS-THAN",
        ("x", "y"),
        lambda size, x, y: 1 * (x < y),
        Formula(lambda d, x, y: d.truth(d.below(x) * y)),
        lambda b, x, y: _emit_truth(b, b.less(x, y)),
        meaning="1 if x < y, otherwise 0",
    ),
    Module(
        "LESS-OR-EQUAL-THAN",
        ("x", "y"),
        lambda size, x, y: 1 * (x <= y),
        Formula(lambda d, x, y: d.truth(d.at_most(x) * y)),
        lambda b, x, y: b.choose(b.less(y, x), b.number(0), b.number(1)),
        meaning="1 if x <= y, otherwise 0",
    ),
    Module(
        "EQUALITY-TEST",
        ("a", "b"),
        lambda size, x, y: 1 * (x == y),
        Formula(lambda d, x, y: d.truth(x * y)),
        lambda b, x, y: _emit_truth(b, b.equal(x, y)),
        meaning="1 if a = b, otherwise 0",
    ),
    Module(
        "MIN",
        ("a", "b"),
        lambda size, x, y: x + (y - x) * (y < x),
        Formula(_minimum),
        lambda b, x, y: b.choose(b.less(y, x), y, x),
        meaning="the smaller of both",
    ),
    Module(
        "MAX",
        ("a", "b"),
        lambda size, x, y: x + (y - x) * (y > x),
        Formula(lambda d, x, y: x * d.at_most(y) + y * d.below(x)),  # X = c and Y <= c, or Y = c and X < c
        lambda b, x, y: b.choose(b.less(x, y), y, x),
        meaning="the larger of both",
    ),
    Module(
        "WRITE",
        ("p", "a"),
        _write_integer,
        _write_fuzzy,
        lambda b, p, x: b.write(p, x),
        "writes",
        meaning="puts a into the cell at p; gives 0",
    ),
)

MODULE_NAMES: tuple[str, ...] = tuple(module.name for module in PAPER_MODULES)


_PAPER: dict[str, Module] = {module.name: module for module in PAPER_MODULES}

MODULES: dict[str, Module] = dict(_PAPER)
"""The modules that this process knows by name: the paper's, and user-defined ones once they are loaded."""
