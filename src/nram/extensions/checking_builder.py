"""A builder on plain integers that refuses whatever some target could not do: it tests the emitted forms of modules."""

from __future__ import annotations

from typing import Any, NoReturn

ROOM_FOR_LITERALS = 1024
"""Where M is smaller, values may leave -M..2M by as much as if M were this large: literals do not shrink with M."""


class MisuseError(Exception):
    """A builder was used in a way that no target allows. The message ends with the cure."""


class Number:
    """A value while emitting. It has no operators, so that every computation goes through the builder."""

    def __init__(self, value: int):
        self.value = value

    def __bool__(self) -> NoReturn:
        raise MisuseError("a number is used as a condition: compare it by builder.equal or builder.less")


class Condition:
    """A comparison while emitting."""

    def __init__(self, holds: bool):
        self.holds = holds

    def __bool__(self) -> NoReturn:
        raise MisuseError(
            "Python branches on a condition that is not known yet: use builder.choose(condition, yes, no)"
        )


class CheckingBuilder:
    """The primitives on plain integers, for one M."""

    def __init__(self, size: int):
        self.modulus = size
        self.size = Number(size)

    def number(self, literal: Any) -> Number:
        if type(literal) is not int or not 0 <= literal < ROOM_FOR_LITERALS:
            raise MisuseError(f"builder.number({literal!r:.40}): give a literal from 0 to {ROOM_FOR_LITERALS - 1}")
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
            raise MisuseError(
                f"builder.choose is given {_kind(condition)} to choose by: compare by builder.less or builder.equal"
            )
        values = self._value("choose", yes), self._value("choose", no)
        return Number(values[0 if condition.holds else 1])

    def read(self, pointer: Any) -> NoReturn:
        raise MisuseError("it reads the memory, which only READ may do: leave builder.read out")

    def write(self, pointer: Any, value: Any) -> NoReturn:
        raise MisuseError("it writes to the memory, which only WRITE may do: leave builder.write out")

    def within(self, value: Any) -> Any:
        return value

    def _value(self, primitive: str, value: Any) -> int:
        if not isinstance(value, Number):
            raise MisuseError(f"builder.{primitive} is given {_kind(value)}: write literals as builder.number(1)")
        return value.value

    def _natural(self, primitive: str, value: Any) -> int:
        found = self._value(primitive, value)
        if found < 0:
            raise MisuseError(f"builder.{primitive} is given {found}: it takes only numbers from 0 up")
        return found

    def _bounded(self, primitive: str, value: int) -> Number:
        room = max(self.modulus, ROOM_FOR_LITERALS)
        if not -room < value < 2 * room:
            raise MisuseError(
                f"builder.{primitive} gives {value}, outside of -M..2M-1: bring its arguments below M first"
            )
        return Number(value)


def _kind(value: Any) -> str:
    return "a condition" if isinstance(value, Condition) else f"{value!r:.40}"
