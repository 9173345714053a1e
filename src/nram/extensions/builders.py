"""Builders for what is at hand: plain integers under suspicion, and whole arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from nram.errors import UsageError
from nram.modules import Array

ROOM_FOR_LITERALS = 1024
"""Where M is smaller, values may leave -M..2M by as much as if it were this large: literals do not shrink with M."""


LARGEST_PRODUCT = 46340  # the largest M whose products fit into JAX's integers


class MisuseError(Exception):
    """A builder was used as no target would allow. The message ends with the cure."""


class Number:
    """A value amidst emitting. It has no operators, so that nobody computes past the builder."""

    def __init__(self, value: int):
        self.value = value

    def __bool__(self) -> NoReturn:
        raise MisuseError("a number is used as a condition: compare it by to.equal or to.less")


class Condition:
    """A comparison amidst emitting."""

    def __init__(self, holds: bool):
        self.holds = holds

    def __bool__(self) -> NoReturn:
        raise MisuseError("code branches on a condition that nobody knows yet: use to.choose(condition, yes, no)")


class Suspicious:
    """The primitives on plain integers, for one M, with everything refused that some target could not do."""

    def __init__(self, size: int):
        self.modulus = size
        self.size = Number(size)

    def number(self, literal: Any) -> Number:
        if type(literal) is not int or not 0 <= literal < ROOM_FOR_LITERALS:
            raise MisuseError(f"to.number({literal!r:.40}): give a literal from 0 to {ROOM_FOR_LITERALS - 1}")
        return Number(literal)

    def add(self, a: Any, b: Any) -> Number:
        return self._bounded("add", self._value("add", a) + self._value("add", b))

    def sub(self, a: Any, b: Any) -> Number:
        return self._bounded("sub", self._value("sub", a) - self._value("sub", b))

    def multiply(self, a: Any, b: Any) -> Number:
        return Number(self._natural("multiply", a) * self._natural("multiply", b) % self.modulus)

    def divide(self, a: Any, b: Any) -> Number:
        dividend, divisor = self._natural("divide", a), self._natural("divide", b)
        return Number(dividend // divisor if divisor else 0)

    def less(self, a: Any, b: Any) -> Condition:
        return Condition(self._natural("less", a) < self._natural("less", b))

    def equal(self, a: Any, b: Any) -> Condition:
        return Condition(self._value("equal", a) == self._value("equal", b))

    def choose(self, condition: Any, yes: Any, no: Any) -> Number:
        if not isinstance(condition, Condition):
            raise MisuseError(f"to.choose is given {_kind(condition)} to choose by: compare by to.less or to.equal")
        values = self._value("choose", yes), self._value("choose", no)
        return Number(values[0 if condition.holds else 1])

    def read(self, pointer: Any) -> NoReturn:
        raise MisuseError("it reads the memory, which only READ may do: leave to.read out")

    def write(self, pointer: Any, value: Any) -> NoReturn:
        raise MisuseError("it writes to the memory, which only WRITE may do: leave to.write out")

    def within(self, value: Any) -> Any:
        return value

    def _value(self, primitive: str, value: Any) -> int:
        if not isinstance(value, Number):
            raise MisuseError(f"to.{primitive} is given {_kind(value)}: literals are written to.number(1)")
        return value.value

    def _natural(self, primitive: str, value: Any) -> int:
        found = self._value(primitive, value)
        if found < 0:
            raise MisuseError(f"to.{primitive} is given {found}, and can do with numbers from 0 up alone")
        return found

    def _bounded(self, primitive: str, value: int) -> Number:
        room = max(self.modulus, ROOM_FOR_LITERALS)
        if not -room < value < 2 * room:
            raise MisuseError(
                f"to.{primitive} gives {value}, outside of -M..2M-1: bring what it is given below M first"
            )
        return Number(value)


def _kind(value: Any) -> str:
    return "a condition" if isinstance(value, Condition) else f"{value!r:.40}"


@dataclass(frozen=True)
class Arrays:
    """The primitives on integer arrays of NumPy or JAX, traced ones included."""

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
