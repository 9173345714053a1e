"""An algebra of distributions: what the fuzzy meanings of modules are written in.

A formula says once what a module does to distributions over 0..M-1, each a row of M probabilities:

    MIN     lambda d, a, b: a * d.at_least(b) + b * d.above(a)

In words: the smaller of both is c if A = c and B >= c, or if B = c and A > c. The operators `*` and `+` work on each c
alone. `Arrays` computes a formula with NumPy or jax.numpy. The kernels for CPUs and GPUs read it as a graph of terms.

Every operation is linear in each of its operands, so its gradient is again an operation of the algebra: an operation
passes a gradient back by its transpose. `Formula.gradients` applies these rules, and no gradient is written by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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

    def truth(self, x: Array) -> Array:
        """A truth value: 1 with the probability sum over c of x[c], otherwise 0."""
        probability = self.xp.sum(x, -1)
        pair = self.xp.stack([1 - probability, probability])
        return self.xp.concatenate([pair, self.xp.zeros(self.size - 2, pair.dtype)])


@dataclass(frozen=True)
class Term:
    """An operation of the algebra, applied to terms and integers. Some of them no formula names:

    argument        the module's argument of this index; the gradient of the output follows the last argument
    multiply        x y at each c
    multiply_add    x y + z at each c, one instruction; every sum has a product in it
    slope           at each c the same: how the loss changes with the probability of a truth value, from its gradient
    """

    operation: str
    operands: tuple[Any, ...]

    def __mul__(self, other: Term) -> Term:
        return Term("multiply", (self, other))

    def __add__(self, other: Term) -> Term:
        product, rest = (self, other) if self.operation == "multiply" else (other, self)
        assert product.operation == "multiply"
        return Term("multiply_add", (*product.operands, rest))

    @property
    def terms(self) -> list[Term]:
        """The operands without integers."""
        return [operand for operand in self.operands if isinstance(operand, Term)]

    @property
    def parts(self) -> list[Term]:
        """All terms in this one, then itself, once each: what a term is made of comes before it."""
        return list(dict.fromkeys([part for operand in self.terms for part in operand.parts] + [self]))


class Terms:
    """The operations of `Arrays` and a few more on terms."""

    def __getattr__(self, operation: str) -> Callable[..., Term]:
        return lambda *operands: Term(operation, operands)


d = Terms()

TRANSPOSED: dict[str, Callable[..., tuple[Term, ...]]] = {
    "rotate": lambda g, x, by: (d.rotate(g, -by),),
    "plus": lambda g, x, y: (d.minus(g, y), d.minus(g, x)),
    "minus": lambda g, x, y: (d.plus(g, y), d.minus(x, g)),
    "at_most": lambda g, x: (d.at_least(g),),
    "below": lambda g, x: (d.above(g),),
    "at_least": lambda g, x: (d.at_most(g),),
    "above": lambda g, x: (d.below(g),),
    "truth": lambda g, x: (d.slope(g),),
    "multiply": lambda g, x, y: (g * y, g * x),
    "multiply_add": lambda g, x, y, z: (g * y, g * x, g),
}
"""The gradients with respect to an operation's operands, from that with respect to its result."""


@dataclass(frozen=True)
class Formula:
    """A fuzzy meaning in the algebra: `formula(d, *arguments)`, where `d` has the operations."""

    formula: Callable[..., Row]

    def __call__(self, xp: Any, size: int, *arguments: Array) -> Array:
        return self.formula(Arrays(xp, size), *arguments)

    def output(self, arity: int) -> Term:
        """The output, from arguments 0 to arity - 1."""
        return self.formula(d, *map(d.argument, range(arity)))

    def gradients(self, arity: int) -> list[Term]:
        """The gradients with respect to the arguments; that with respect to the output counts as one argument more."""
        output = self.output(arity)
        received = {output: d.argument(arity)}
        for term in reversed(output.parts):
            if term.terms:
                gradients = TRANSPOSED[term.operation](received[term], *term.operands)
                for operand, gradient in zip(term.terms, gradients, strict=True):
                    received[operand] = gradient + received[operand] if operand in received else gradient
        return [received[d.argument(index)] for index in range(arity)]


def evaluate(term: Term, operations: dict[str, Callable[..., Any]], known: dict[Term, Any]) -> Any:
    """The value of a term by these operations; `known` has its arguments, and keeps the values of all its parts."""
    for part in term.parts:
        if part not in known:
            operands = (known[operand] if isinstance(operand, Term) else operand for operand in part.operands)
            known[part] = operations[part.operation](*operands)
    return known[term]
