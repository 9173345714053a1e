"""Code on warps of numbers: 32 lanes that do the same, and exchange what they hold.

The mathematics of the GPU kernels is written in these operations alone. `device.py` implements them as the code of one
thread of a GPU's warp. Tests implement them as vectors of a CPU, which therefore can run the same kernels. What both
share is here: lanes, and sums over lanes made of the one exchange there is, `permuted`.

A *uniform* value is an LLVM scalar that is the same for the whole warp. Offsets count numbers, not bytes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property

from llvmlite import ir

from nram.llvm import I32, Value
from nram.machine.kernels.common import vector_math
from nram.machine.kernels.common.code import Code
from nram.machine.kernels.gpu.shape import LANES, QUAD

Columns = list[Value]
"""A distribution, or a gradient with respect to one: one warp of numbers for every 32 values."""


class Warps(Code, ABC):
    """Appends instructions to one function, on warps of numbers."""

    index_type = I32
    quad_alignment: int  # bytes

    # What an implementation provides

    @property
    @abstractmethod
    def lane(self) -> Value:
        """The index of each lane, 0..31."""

    @abstractmethod
    def uniform(self, warp: Value) -> Value:
        """The value of a warp that holds the same in every lane."""

    @abstractmethod
    def permuted(self, columns: Columns, index: Value) -> Value:
        """In every lane the number at its own index of the columns. An index beyond them gives any of their numbers, or
        the number at the index modulo 32 if there is one column."""

    @abstractmethod
    def sync(self) -> None:
        """From here on all lanes see what the others have stored."""

    @abstractmethod
    def load(self, pointer: Value, offset: Value | int = 0) -> Value:
        """32 numbers, one after the other."""

    @abstractmethod
    def store(self, value: Value, pointer: Value, offset: Value | int = 0) -> None: ...

    @abstractmethod
    def load_whole(self, pointer: Value, offset: Value | int = 0) -> Value:
        """32 integers, one after the other."""

    @abstractmethod
    def load_each(self, pointer: Value, index: Value, where: Value | None = None, whole: bool = False) -> Value:
        """The number at each lane's own index; 0 in lanes where `where` is false."""

    @abstractmethod
    def store_each(
        self, value: Value, pointer: Value, index: Value, where: Value | None = None, whole: bool = False
    ) -> None: ...

    @abstractmethod
    def load_some(self, count: int, pointer: Value, index: Value) -> list[Value]:
        """One, two or four numbers from each lane's own index on, which is a multiple of their count."""

    @abstractmethod
    def store_some(self, values: list[Value], pointer: Value, index: Value, where: Value | None = None) -> None: ...

    # Functions

    def exponential(self, x: Value) -> Value:
        return vector_math.exponential(self, x)

    def logarithm(self, x: Value) -> Value:
        """Right to the last bits."""
        return vector_math.logarithm(self, x)

    def rough_log(self, x: Value) -> Value:
        """The logarithm, with an error of at most 2e-7 where it is near 0."""
        return self.logarithm(x)

    @cached_property
    def nothing(self) -> Value:
        return self.number(0.0)

    # Lanes

    def before(self, count: int | Value, column: int = 0) -> Value:
        """Which lanes of a column hold a value below `count`."""
        bound = self.whole(count - column * LANES) if isinstance(count, int) else self.spread(count)
        return self.at.icmp_signed("<", self.lane, bound)

    def only(self, lane: int) -> Value:
        return self.at.icmp_signed("==", self.lane, self.whole(lane))

    def part(self, value: Value, count: int, column: int = 0) -> Value:
        """The same, with 0 for all values from `count` on."""
        if count >= (column + 1) * LANES:
            return value
        return self.choose(self.before(count, column), value, self.number(0.0))

    def certain(self, place: int, columns: int) -> Columns:
        """Certainly this value: 1 there, 0 elsewhere."""
        one, nothing = self.number(1.0), self.number(0.0)
        return [
            self.choose(self.only(place % LANES), one, nothing) if place // LANES == column else nothing
            for column in range(columns)
        ]

    # Exchanges between lanes

    def swapped(self, value: Value, distance: int) -> Value:
        """The value of the lane whose index differs in this bit."""
        return self.permuted([value], self.at.xor(self.lane, self.whole(distance)))

    def with_lower(self, value: Value, distance: int) -> Value:
        """The sum with the value of the lane `distance` below, if there is one."""
        lower = self.permuted([value], self.at.sub(self.lane, self.whole(distance)))
        there = self.at.icmp_signed(">=", self.lane, self.whole(distance))
        return self.choose(there, self.add(value, lower), value)

    def pick(self, columns: Columns, place: int) -> Value:
        """The number of one value, in every lane."""
        return self.permuted([columns[place // LANES]], self.whole(place % LANES))

    def total(self, columns: Columns) -> Value:
        """The sum of all numbers, in every lane."""
        return self._over_lanes(columns, self.add)

    def largest(self, columns: Columns) -> Value:
        return self._over_lanes(columns, self.at_least)

    def largest_chance(self, columns: Columns) -> Value:
        """The largest of numbers none of which is below 0."""
        return self.largest(columns)

    def first_lane(self, conditions: list[Value], otherwise: int) -> Value:
        """The first value whose condition holds, in every lane."""
        places = []
        for number, condition in enumerate(conditions):
            place = self.at.add(self.lane, self.whole(number * LANES))
            places.append(self.choose(condition, place, self.whole(otherwise)))
        return self._over_lanes(places, lambda a, b: self.choose(self.at.icmp_signed("<", a, b), a, b))

    def _over_lanes(self, columns: Columns, join: Callable[[Value, Value], Value]) -> Value:
        result = columns[0]
        for column in columns[1:]:
            result = join(result, column)
        for bit in range(LANES.bit_length() - 1):
            result = join(result, self.swapped(result, 1 << bit))
        return result

    def prefix(self, columns: Columns) -> Columns:
        """Prefix sums: at every value the sum of the numbers up to it."""
        results = []
        for column in columns:
            for bit in range(LANES.bit_length() - 1):
                column = self.with_lower(column, 1 << bit)
            results.append(self.add(column, self.pick(results, len(results) * LANES - 1)) if results else column)
        return results

    def rotated(self, columns: Columns, by: int, size: int) -> Columns:
        """result[i + by] = columns[i], modulo `size`."""
        results = []
        for number in range(len(columns)):
            index = self.at.add(self.lane, self.whole(number * LANES - by))
            if size != LANES:  # lanes themselves are counted modulo 32
                low, high = self.whole(0), self.whole(size)
                index = self.choose(self.at.icmp_signed("<", index, low), self.at.add(index, high), index)
                index = self.choose(self.at.icmp_signed(">=", index, high), self.at.sub(index, high), index)
            results.append(self.part(self.permuted(columns, index), size, number))
        return results

    def reflected(self, columns: Columns, size: int) -> Columns:
        """result[-i] = columns[i], modulo `size`."""
        results = []
        for number in range(len(columns)):
            index = self.at.sub(self.whole(size - number * LANES), self.lane)
            if number == 0:
                index = self.choose(self.only(0), self.whole(0), index)
            results.append(self.part(self.permuted(columns, index), size, number))
        return results

    def lane_sums(self, warps: list[Value], distance: int = 1) -> Value:
        """Lane i: the sum over the lanes of warp i. There are at most 32 warps. One exchange per warp instead of five.

        With a distance d, a power of 2: lane i has the sum of warp i // d over the lanes that equal i modulo d.
        """
        rows: list[Value | None] = [*warps, *[None] * (LANES // distance - len(warps))]
        nothing = self.number(0.0)
        while len(rows) > 1:
            upper = self.at.icmp_signed("!=", self.at.and_(self.lane, self.whole(distance)), self.whole(0))
            paired: list[Value | None] = []
            for a, b in zip(rows[::2], rows[1::2], strict=True):
                if a is None:
                    paired.append(None)
                    continue
                other = nothing if b is None else b
                kept, given = self.choose(upper, other, a), self.choose(upper, a, other)
                paired.append(self.add(kept, self.swapped(given, distance)))
            rows, distance = paired, distance * 2
        return rows[0]

    # Memory

    def load_quads(self, pointer: Value, index: Value) -> list[Value]:
        return self.load_some(QUAD, pointer, index)

    def store_uniform(self, value: Value, pointer: Value, offset: Value | int = 0) -> None:
        """One number, of a warp that holds the same in every lane."""
        self.store_scalar(self.uniform(value), pointer, offset)

    def quad(self, pointer: Value, offset: Value | int = 0) -> list[Value]:
        """Four numbers from an offset on that is a multiple of four, each in every lane."""
        kind = ir.VectorType(self.scalar, QUAD)
        four = self.at.load(self.place(pointer, offset), align=self.quad_alignment, typ=kind)
        return [self.spread(self.at.extract_element(four, self.index(i))) for i in range(QUAD)]

    def columns(self, pointer: Value, offset: Value | int, count: int) -> Columns:
        """A row of memory."""
        begin = self.place(pointer, offset)
        return [self.load(begin, number * LANES) for number in range(count)]

    def store_columns(self, columns: Columns, pointer: Value, offset: Value | int = 0) -> None:
        begin = self.place(pointer, offset)
        for number, column in enumerate(columns):
            self.store(column, begin, number * LANES)

    def store_first(self, count: int, columns: Columns, pointer: Value, offset: int = 0) -> None:
        """Store the first `count` numbers of a row."""
        for number, column in enumerate(columns):
            left, start = count - number * LANES, offset + number * LANES
            if left >= LANES:
                self.store(column, pointer, start)
            elif left > 0:
                self.store_each(column, pointer, self.at.add(self.lane, self.whole(start)), self.before(left))

    def publish(self, columns: Columns, pointer: Value, offset: Value | int = 0) -> None:
        """Store a row for other lanes to read, after they have read what stood there."""
        self.sync()
        self.store_columns(columns, pointer, offset)
        self.sync()
