"""An algebra of distributions: what the fuzzy meanings of modules are written in.

A formula says once what a module does to distributions over 0..M-1, each a row of M probabilities:

    MIN     lambda d, a, b: a * d.at_least(b) + b * d.above(a)

The smaller of both is c if A = c and B >= c, or if B = c and A > c; `*` and `+` work on each c alone. `Arrays` computes
a formula with NumPy or jax.numpy. The kernels for CPUs and GPUs read it as a graph of terms.

Every operation is linear in each of its operands, so its gradient is again an operation of the algebra: an operation
passes a gradient back by its transpose. `Formula.gradients` applies these rules, and no gradient is written by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

Array = Any  # of NumPy or JAX
Row = Any  # a distribution: an array or a `Term`


@dataclass(frozen=True)
class Arrays:
    """The operations on arrays of NumPy or jax.numpy. `Terms` has the same, and so have the kernels."""

    xp: Any
    size: int  # M

    def certain(self, number: int) -> Array:
        """Always this number."""
        return self.xp.eye(self.size)[number]

    def rotate(self, x: Array, by: int) -> Array:
        """X + by mod M"""
        return self.xp.roll(x, by, -1)

    def plus(self, x: Array, y: Array) -> Array:
        """X + Y mod M"""
        return self.minus(x, self.xp.roll(self.xp.flip(y, -1), 1, -1))

    def minus(self, x: Array, y: Array) -> Array:
        """X - Y mod M"""
        # X - Y = c means X = y + c. Row y of this matrix is `x` rotated left by y: copies of `x` laid out in rows of
        # M + 1 slip by one column a row, so no gather is needed.
        rotations = self.xp.tile(x, self.size + 1).reshape(self.size, self.size + 1)[:, : self.size]
        return y @ rotations

    def at_most(self, x: Array) -> Array:
        """P(X <= c) for every c"""
        return self.xp.cumsum(x, -1)

    def below(self, x: Array) -> Array:
        """P(X < c) for every c"""
        return self.xp.cumsum(x, -1) - x

    def at_least(self, x: Array) -> Array:
        """P(X >= c) for every c"""
        return self.above(x) + x

    def above(self, x: Array) -> Array:
        """P(X > c) for every c"""
        return self.xp.sum(x, -1, keepdims=True) - self.xp.cumsum(x, -1)

    def truth(self, x: Array, y: Array) -> Array:
        """A truth value: 1 with the probability sum over c of x[c] y[c], otherwise 0."""
        probability = self.xp.sum(x * y, -1)
        pair = self.xp.stack([1 - probability, probability])
        return self.xp.concatenate([pair, self.xp.zeros(self.size - 2, pair.dtype)])


@dataclass(frozen=True)
class Term:
    """An operation of the algebra, applied to terms. Kernels also meet some that no formula names:

    argument        the module's argument of this number; the gradient of the output follows the last argument
    multiply        x y at each c
    multiply_add    x y + z at each c, one instruction; every sum must have a product in it
    slope, scale    how the loss changes with the probability that a truth value is 1; a row times such a number
    """

    operation: str
    operands: tuple[Term, ...] = ()
    number: int = 0  # of `certain`, `rotate` and `argument`

    def __mul__(self, other: Term) -> Term:
        return Term("multiply", (self, other))

    def __add__(self, other: Term) -> Term:
        product, rest = (self, other) if self.operation == "multiply" else (other, self)
        assert product.operation == "multiply"
        return Term("multiply_add", (*product.operands, rest))

    @cached_property
    def parts(self) -> tuple[Term, ...]:
        """All terms in this one and itself, once each; what a term is made of comes before it."""
        return tuple(dict.fromkeys([*(part for operand in self.operands for part in operand.parts), self]))


class Terms:
    """The operations of `Arrays` on terms."""

    def certain(self, number: int) -> Term:
        return Term("certain", number=number)

    def rotate(self, x: Term, by: int) -> Term:
        return Term("rotate", (x,), by)

    def __getattr__(self, operation: str) -> Callable[..., Term]:
        return lambda *operands: Term(operation, operands)


def transposed(term: Term, gradient: Term) -> tuple[Term, ...]:
    """The gradients with respect to a term's operands, from that with respect to the term."""
    d, g = Terms(), gradient
    match term.operation, term.operands:
        case "rotate", _:
            return (d.rotate(g, -term.number),)
        case "plus", [x, y]:
            return d.minus(g, y), d.minus(g, x)
        case "minus", [x, y]:
            return d.plus(g, y), d.minus(x, g)
        case ("at_most" | "below" | "at_least" | "above") as sums, _:
            across = {"at_most": d.at_least, "below": d.above, "at_least": d.at_most, "above": d.below}
            return (across[sums](g),)
        case (("multiply" | "multiply_add"), [x, y, *rest]):
            return g * y, g * x, *(g for _ in rest)
        case "truth", [x, y]:
            return d.scale(d.slope(g), y), d.scale(d.slope(g), x)
    return ()


@dataclass(frozen=True)
class Formula:
    """A fuzzy meaning in the algebra: `formula(d, *arguments)`, where `d` has the operations."""

    formula: Callable[..., Row]

    def __call__(self, xp: Any, size: int, *arguments: Array) -> Array:
        return self.formula(Arrays(xp, size), *arguments)

    def output(self, arity: int) -> Term:
        """The output, from arguments 0 to arity - 1."""
        return self.formula(Terms(), *(Term("argument", number=number) for number in range(arity)))

    def gradients(self, arity: int) -> list[Term]:
        """The gradients with respect to the arguments; that with respect to the output counts as one argument more."""
        output = self.output(arity)
        received = {output: Term("argument", number=arity)}
        for term in reversed(output.parts):
            for operand, gradient in zip(term.operands, transposed(term, received[term]), strict=True):
                received[operand] = gradient + received[operand] if operand in received else gradient
        return [received[Term("argument", number=number)] for number in range(arity)]
