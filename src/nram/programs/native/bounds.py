"""How far registers can move: which sums in a group of rows cannot wrap around, and for how many steps.

A *bound* of a value says that it is at most the largest of some registers at the start of the step, plus a number; or
at least the smallest of them, minus a number. Registers whose new values have such bounds in every row move by at most
so much in a step. So the room that they have at the start tells for how many steps no sum leaves 0..M-1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from nram.modules import Module
from nram.programs.ir import CONSTANTS, Conditions, Row, carry_out

Side = Literal["above", "below"]
TRUTHS = ("LESS-THAN", "LESS-OR-EQUAL-THAN", "EQUALITY-TEST")


@dataclass(frozen=True)
class Bound:
    """Above: at most the largest of the registers plus `distance`, and of the numbers. Below: the same downwards."""

    registers: frozenset[int] = frozenset()
    distance: int = 0
    numbers: frozenset[int] = frozenset()

    def joined(self, other: Bound) -> Bound:
        """What holds of two values, each of which may be the one."""
        distances = [bound.distance for bound in (self, other) if bound.registers]
        return Bound(self.registers | other.registers, max(distances, default=0), self.numbers | other.numbers)

    def moved(self, by: int) -> Bound:
        return replace(self, distance=self.distance + by)


class Value(NamedTuple):
    """What is known about a value in a row: its bounds, the number that it cannot exceed, and whether it is not 0."""

    above: Bound | None
    below: Bound | None
    most: int | None = None
    above_zero: bool = False


@dataclass
class Room:
    """What the sums of a group of rows need on one side: these registers keep a distance of `margin` to the end, and
    come closer to it by at most `per_step` in a step."""

    registers: set[int] = field(default_factory=set)
    numbers: set[int] = field(default_factory=set)
    margin: int = 0
    per_step: int = 0


def _number(literal: int) -> Value:
    bound = Bound(numbers=frozenset([literal]))
    return Value(bound, bound, literal)


Need = tuple[Side, Bound] | None
"""That the output of an operation does not wrap around if it is within the memory by this bound."""


def bounds_of(row: Row, flags: Conditions, above: set[int], below: set[int]) -> tuple[list[Value], list[Need]]:
    """The new values of the registers, and what each operation needs for not wrapping around.

    Only the registers in `above` and `below` have bounds. `flags` says which registers are known to be 0, or not.
    """
    needs: list[Need] = []

    def register(index: int) -> Value:
        own = Bound(frozenset([index]))
        return Value(own if index in above else None, own if index in below else None, above_zero=flags[index] is False)

    def apply(module: Module, given: list[Value]) -> Value:
        value, side = _output(module.name, given)
        needs.append(None if side is None else (side, getattr(value, side)))
        return _number(0) if module.memory == "writes" else value

    return carry_out(row, register, apply, _number).registers, needs


def _output(name: str, given: Sequence[Value]) -> tuple[Value, Side | None]:
    if name in CONSTANTS:
        return _number(CONSTANTS[name]), None
    if name in TRUTHS:
        return Value(Bound(numbers=frozenset([1])), Bound(numbers=frozenset([0])), 1), None
    match name, given:
        case "INC", [x]:
            return _raised(x, 1)
        case "DEC", [x]:
            return _lowered(x, 1)
        case "ADD", [x, Value(most=int(by))] | [Value(most=int(by)), x]:
            return _raised(x, by)
        case "SUB", [x, Value(most=int(by))]:
            return _lowered(x, by)
        case "MIN", [x, y]:
            return Value(x.above or y.above, _both(x.below, y.below)), None
        case "MAX", [x, y]:
            return Value(_both(x.above, y.above), x.below or y.below), None
    return Value(None, None), None


def _both(one: Bound | None, other: Bound | None) -> Bound | None:
    return None if one is None or other is None else one.joined(other)


def _raised(x: Value, by: int) -> tuple[Value, Side | None]:
    if x.above is None or not x.above.registers or x.above.numbers:
        return Value(None, None), None
    # Without wrapping around it stays above what was below it.
    return Value(x.above.moved(by), x.below, above_zero=x.above_zero), "above"


def _lowered(x: Value, by: int) -> tuple[Value, Side | None]:
    if by == 1 and x.above_zero:
        return Value(x.above, x.below and x.below.moved(1)), None  # needs no room
    if x.below is None or not x.below.registers or x.below.numbers:
        return Value(None, None), None
    return Value(x.above, x.below.moved(by)), "below"


def room_of(rows: Sequence[tuple[Row, Conditions]], registers: int) -> tuple[Room, Room, list[list[Need]]]:
    """The room that a group of rows needs above and below, and what each operation of each row needs.

    A row comes with what is known about the flags before it. A register that moves both ways has no bound below:
    a depth, say, is often near 0, and there would hardly be room for a step.
    """
    every = set(range(registers))
    above, below, needs = _room_of(rows, every, every)
    moving_both_ways = above.registers & below.registers
    return _room_of(rows, every, every - moving_both_ways) if moving_both_ways else (above, below, needs)


def _room_of(
    rows: Sequence[tuple[Row, Conditions]], above: set[int], below: set[int]
) -> tuple[Room, Room, list[list[Need]]]:
    above, below = {*above}, {*below}
    while True:
        found = [bounds_of(row, flags, above, below) for row, flags in rows]
        lost_above = {r for r in above if any(new[r].above is None for new, _ in found)}
        lost_below = {r for r in below if any(new[r].below is None for new, _ in found)}
        if not lost_above and not lost_below:
            return _room(found, "above"), _room(found, "below"), [needs for _, needs in found]
        above -= lost_above
        below -= lost_below


def _room(found: Sequence[tuple[list[Value], list[Need]]], side: Side) -> Room:
    room = Room()
    for _, needs in found:
        for bound in (need[1] for need in needs if need is not None and need[0] == side):
            room.registers |= bound.registers
            room.margin = max(room.margin, bound.distance)
    waiting = [*room.registers]
    while waiting:
        register = waiting.pop()
        for new, _ in found:
            bound: Bound = getattr(new[register], side)
            room.numbers |= bound.numbers
            if bound.registers:
                room.per_step = max(room.per_step, bound.distance)
            waiting += bound.registers - room.registers
            room.registers |= bound.registers
    return room
