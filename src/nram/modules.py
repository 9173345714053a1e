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
from typing import Any, Literal, NoReturn, Protocol, cast

from nram.algebra import Array, Formula
from nram.errors import UsageError
from nram.module_tables import EquationTwo


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
    """In the place of an emitted meaning that nobody wrote: it says so where one is needed."""

    module: str
    arguments: tuple[str, ...]

    def __call__(self, to: Builder, *arguments: Any) -> NoReturn:
        words = ", ".join(("builder", *self.arguments))
        raise UsageError(
            f"the module {self.module} has no emitted form, which machine code, C and proofs are made from: add "
            f"emit=lambda {words}: ... to its Module, in the primitives of nram.modules.Builder"
        )


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
    fuzzy: Callable[..., Array] = cast(Any, None)
    """Left out: equation 2 by a table of all arguments."""
    emit: Callable[..., Any] = cast(Any, None)
    """(builder, *args) -> the output; WRITE's is ignored. Left out: no machine code, C or proofs."""
    memory: Literal["nothing", "reads", "writes"] = "nothing"
    meaning: str = ""
    """In words, for people."""

    def __post_init__(self) -> None:
        if self.fuzzy is None:
            object.__setattr__(self, "fuzzy", EquationTwo(self.name, self.integer, self.arity))
        if self.emit is None:
            object.__setattr__(self, "emit", NotEmitted(self.name, self.arguments))

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


def _minimum(d, a, b):
    # A = c and B >= c, or B = c and A > c. Both sums come before the products because JAX adds up gradients in the
    # reverse order, and earlier releases had it so.
    at_least_b, above_a = d.at_least(b), d.above(a)
    return a * at_least_b + b * above_a


def _write_integer(memory, pointer: int, value: int) -> None:
    memory[pointer] = value


def _write_fuzzy(xp, memory: Array, pointer: Array, value: Array) -> Array:
    return (1 - pointer)[:, None] * memory + pointer[:, None] * value[None, :]


def _emit_inc(to: Builder, a):
    following = to.add(a, to.number(1))
    return to.choose(to.equal(following, to.size), to.number(0), following)


def _emit_add(to: Builder, a, b):
    total = to.add(a, b)
    return to.choose(to.less(total, to.size), total, to.sub(total, to.size))


def _emit_sub(to: Builder, a, b):
    difference = to.sub(a, b)
    return to.choose(to.less(a, b), to.add(difference, to.size), difference)


def _emit_dec(to: Builder, a):
    one = to.number(1)
    return to.choose(to.equal(a, to.number(0)), to.sub(to.size, one), to.sub(a, one))


def _emit_truth(to: Builder, condition):
    return to.choose(condition, to.number(1), to.number(0))


PAPER_MODULES: tuple[Module, ...] = (
    Module(
        "READ",
        ("p",),
        lambda memory, p: memory[p],
        lambda xp, memory, p: p @ memory,
        lambda to, p: to.read(p),
        "reads",
        meaning="the cell at p",
    ),
    Module("ZERO", (), lambda size: 0, Formula(lambda d: d.certain(0)), lambda to: to.number(0), meaning="0"),
    Module("ONE", (), lambda size: 1, Formula(lambda d: d.certain(1)), lambda to: to.number(1), meaning="1"),
    Module("TWO", (), lambda size: 2, Formula(lambda d: d.certain(2)), lambda to: to.number(2), meaning="2"),
    Module(
        "INC",
        ("a",),
        lambda size, a: (a + 1) % size,
        Formula(lambda d, a: d.rotate(a, 1)),
        _emit_inc,
        meaning="a + 1 mod M",
    ),
    Module(
        "ADD",
        ("a", "b"),
        lambda size, a, b: (a + b) % size,
        Formula(lambda d, a, b: d.plus(a, b)),
        _emit_add,
        meaning="a + b mod M",
    ),
    Module(
        "SUB",
        ("a", "b"),
        lambda size, a, b: (a - b) % size,
        Formula(lambda d, a, b: d.minus(a, b)),
        _emit_sub,
        meaning="a - b mod M",
    ),
    Module(
        "DEC",
        ("a",),
        lambda size, a: (a - 1) % size,
        Formula(lambda d, a: d.rotate(a, -1)),
        _emit_dec,
        meaning="a - 1 mod M",
    ),
    Module(
        "LESS-THAN",
        ("x", "y"),
        lambda size, x, y: 1 * (x < y),
        Formula(lambda d, x, y: d.truth(d.below(x) * y)),
        lambda to, x, y: _emit_truth(to, to.less(x, y)),
        meaning="1 if x < y, otherwise 0",
    ),
    Module(
        "LESS-OR-EQUAL-THAN",
        ("x", "y"),
        lambda size, x, y: 1 * (x <= y),
        Formula(lambda d, x, y: d.truth(d.at_most(x) * y)),
        lambda to, x, y: to.choose(to.less(y, x), to.number(0), to.number(1)),
        meaning="1 if x <= y, otherwise 0",
    ),
    Module(
        "EQUALITY-TEST",
        ("a", "b"),
        lambda size, a, b: 1 * (a == b),
        Formula(lambda d, a, b: d.truth(a * b)),
        lambda to, a, b: _emit_truth(to, to.equal(a, b)),
        meaning="1 if a = b, otherwise 0",
    ),
    Module(
        "MIN",
        ("a", "b"),
        lambda size, a, b: a + (b - a) * (b < a),
        Formula(_minimum),
        lambda to, a, b: to.choose(to.less(b, a), b, a),
        meaning="the smaller of both",
    ),
    Module(
        "MAX",
        ("a", "b"),
        lambda size, a, b: a + (b - a) * (b > a),
        Formula(lambda d, a, b: a * d.at_most(b) + b * d.below(a)),  # A = c and B <= c, or B = c and A < c
        lambda to, a, b: to.choose(to.less(a, b), b, a),
        meaning="the larger of both",
    ),
    Module(
        "WRITE",
        ("p", "a"),
        _write_integer,
        _write_fuzzy,
        lambda to, p, a: to.write(p, a),
        "writes",
        meaning="puts a into the cell at p; gives 0",
    ),
)

MODULE_NAMES: tuple[str, ...] = tuple(module.name for module in PAPER_MODULES)


_PAPER: dict[str, Module] = {module.name: module for module in PAPER_MODULES}

MODULES: dict[str, Module] = dict(_PAPER)
"""The modules that this process knows by name: the paper's, and user-defined ones once they are loaded."""
