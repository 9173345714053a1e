"""The modules on distributions, forwards and backwards, a warp an example.

The meanings are those of the table in `nram.modules`; gradients are written out, and cropped where the paper's
activation clipping crops them. A distribution is a list of columns in registers; the tape and its gradient are rows
of memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from nram.machine.kernels.gpu.shape import LANES, QUAD, WarpShape
from nram.machine.kernels.gpu.warps import Columns, Value, Warps


class Tapes(NamedTuple):
    """The memory around READ and WRITE."""

    now: Value  # in shared memory
    rows: list[Columns]  # the same in registers, if it is small enough
    after: Value | None  # the version that WRITE leaves, in global memory


class TapesBack(NamedTuple):
    """The same in the backward pass."""

    gradient: Value  # in shared memory, without what READs have left to do
    seen: Callable[[int], Columns]  # a row of the version that the module saw
    crop: bool  # whether the gradient is still to be cropped
    pending: list[tuple[Columns, Columns]]  # READs that have not added to it: pointer, gradient of what they read


class Fuzzy:
    """The modules of one size of memory, as code."""

    def __init__(self, to: Warps, shape: WarpShape, room: Value, clip: Value):
        self.to = to
        self.shape = shape
        self.size = shape.size
        self.room = room  # a row of shared memory
        self.clip = clip
        self.minus_clip = to.at.fneg(clip)

    def crop(self, gradient: Columns) -> Columns:
        """C1, and nothing beyond M."""
        return [self.to.part(self.crop_one(column), self.size, number) for number, column in enumerate(gradient)]

    def crop_one(self, gradient: Value) -> Value:
        return self.to.at_least(self.to.at_most(gradient, self.clip), self.minus_clip)

    def renormalised(self, columns: Columns) -> Columns:
        """Rescaled to a sum of 1; the backward pass takes it for the identity."""
        to = self.to
        if not self.shape.renormalising:
            return columns
        factor = to.divide(to.number(1.0), to.total(columns))
        return [to.mul(column, factor) for column in columns]

    # Forwards

    def forward(self, name: str, arguments: list[Columns], tapes: Tapes) -> Columns:
        """The output; WRITE changes the tape, and keeps its new version."""
        match name, arguments:
            case (("ZERO" | "ONE" | "TWO"), _):
                return self.to.certain(("ZERO", "ONE", "TWO").index(name), self.shape.columns)
            case "WRITE", [pointer, value]:
                self._write(pointer, value, tapes)
                return self.to.certain(0, self.shape.columns)
            case (("LESS-THAN" | "LESS-OR-EQUAL-THAN" | "EQUALITY-TEST"), [a, b]):
                return self._truth(name, a, b)
            case "READ", [pointer]:
                found = self._read(pointer, tapes)
            case "INC", [a]:
                found = self.to.rotated(a, 1, self.size)
            case "DEC", [a]:
                found = self.to.rotated(a, -1, self.size)
            case "ADD", [a, b]:
                found = self._convolved(a, b)
            case "SUB", [a, b]:
                found = self._convolved(a, self.to.reflected(b, self.size))
            case _, [a, b]:
                found = self._extreme(name, a, b)
            case _:
                raise ValueError(f"there is no code for {name}")
        return self.renormalised(found)

    def _each_row(
        self, pointer: Columns, tapes: Tapes, body: Callable[..., list[Value]], carried: list[Value]
    ) -> list[Value]:
        """`body(row's place, pointer's weight there, row, carried)` for all rows of a tape: four of them written out,
        or all if they are in registers."""
        to, shape = self.to, self.shape
        to.publish(pointer, self.room)

        def four(i: Value, held: list[Value]) -> list[Value]:
            for number, weight in enumerate(to.quad(self.room, i)):
                place = to.at.mul(to.at.add(i, to.index(number)), to.index(shape.row))
                held = body(place, weight, to.columns(tapes.now, place, shape.columns), held)
            return held

        if not tapes.rows:
            return to.repeat(shape.rows, four, carried, step=QUAD)
        for start in range(0, shape.rows, QUAD):
            for number, weight in enumerate(to.quad(self.room, start), start):
                carried = body(number * shape.row, weight, tapes.rows[number], carried)
        return carried

    def _read(self, pointer: Columns, tapes: Tapes) -> Columns:
        to = self.to

        def row(_place: Value, weight: Value, there: Columns, sums: list[Value]) -> list[Value]:
            return [to.fma(weight, own, total) for own, total in zip(there, sums, strict=True)]

        return self._each_row(pointer, tapes, row, [to.nothing] * self.shape.columns)

    def _write(self, pointer: Columns, value: Columns, tapes: Tapes) -> None:
        to, rows = self.to, []

        def row(place: Value, weight: Value, there: Columns, held: list[Value]) -> list[Value]:
            rest = to.sub(to.number(1.0), weight)
            new = [to.fma(weight, own, to.mul(rest, old)) for own, old in zip(value, there, strict=True)]
            to.store_columns(new, tapes.now, place)
            if tapes.after is not None:
                to.store_columns(new, tapes.after, place)
            rows.append(new)
            return held

        self._each_row(pointer, tapes, row, [])
        if tapes.rows:
            tapes.rows[:] = rows

    def _truth(self, name: str, a: Columns, b: Columns) -> Columns:
        to = self.to
        left = a
        if name != "EQUALITY-TEST":
            left = to.prefix(a)
        if name == "LESS-THAN":
            left = [to.sub(up_to, own) for up_to, own in zip(left, a, strict=True)]
        truth = to.total([to.mul(x, y) for x, y in zip(left, b, strict=True)])
        no = to.choose(to.only(0), to.sub(to.number(1.0), truth), to.nothing)
        return [to.choose(to.only(1), truth, no), *[to.nothing] * (len(a) - 1)]

    def _convolved(self, x: Columns, y: Columns) -> Columns:
        """result[i] = sum over k of x[k] y[i - k], modulo M.

        With k = 4 q + r: y is moved by r once for all q, and the sums over r are joined in pairs, those of q + 1 moved
        by 4, then those of q + 2 by 8, and so on: there are M / 4 exchanges instead of M, and few wait for others.
        """
        to, size = self.to, self.size
        moved = [y] + [to.rotated(y, r, size) for r in range(1, QUAD)]
        to.publish(x, self.room)
        parts: list[Columns] = []
        for start in range(0, self.shape.rows, QUAD):
            part: Columns = [to.nothing] * len(y)
            for weight, other in zip(to.quad(self.room, start), moved, strict=True):
                part = [to.fma(weight, own, total) for own, total in zip(other, part, strict=True)]
            parts.append(part)
        distance = QUAD
        while len(parts) > 1:
            for number in range(len(parts) // 2):
                near, far = parts[number : number + 2]
                far = to.rotated(far, distance % size, size)
                parts[number : number + 2] = [[to.add(own, other) for own, other in zip(near, far, strict=True)]]
            distance *= 2
        return parts[0]

    def _extreme(self, name: str, a: Columns, b: Columns) -> Columns:
        beyond_a, from_b = self._sides(name, a, b)
        return [self.to.fma(w, x, self.to.mul(y, z)) for w, x, y, z in zip(a, from_b, b, beyond_a, strict=True)]

    def _sides(self, name: str, a: Columns, b: Columns) -> tuple[Columns, Columns]:
        """At every place c: how likely A lies beyond c, and how likely B does not lie on this side of it. Beyond is
        above for MIN, below for MAX."""
        if name == "MAX":
            return self._exclusive(a), self.to.prefix(b)
        return self._from_above(a, exclusive=True), self._from_above(b, exclusive=False)

    def _exclusive(self, a: Columns) -> Columns:
        return [self.to.sub(up_to, own) for up_to, own in zip(self.to.prefix(a), a, strict=True)]

    def _from_above(self, a: Columns, exclusive: bool) -> Columns:
        """Sums over all higher places, with the own one unless they are exclusive."""
        to, up_to = self.to, self.to.prefix(a)
        whole = to.pick(up_to, self.shape.row - 1)
        rest = [to.sub(whole, part) for part in up_to]
        return rest if exclusive else [to.add(part, own) for part, own in zip(rest, a, strict=True)]

    # Backwards

    def backward(self, name: str, arguments: list[Columns], gradient: Columns, tapes: TapesBack) -> list[Columns]:
        """From the gradient of the output to those of the arguments, cropped.

        READ and WRITE bring the gradient of the memory after them to that of the memory before them; the first of them
        to see it in a step crops it. Other READs leave what they have to add to whoever comes next. WRITE's own output
        is a constant.
        """
        to, size = self.to, self.size
        match name, arguments:
            case "WRITE", [pointer, value]:
                found = self._write_back(pointer, value, tapes)
            case "READ", [pointer]:
                found = self._read_back(pointer, gradient, tapes)
            case "INC", _:
                found = [to.rotated(gradient, -1, size)]
            case "DEC", _:
                found = [to.rotated(gradient, 1, size)]
            case "ADD", [a, b]:
                found = [self._convolved(gradient, to.reflected(other, size)) for other in (b, a)]
            case "SUB", [a, b]:
                found = [self._convolved(gradient, b), self._convolved(a, to.reflected(gradient, size))]
            case (("MIN" | "MAX"), [a, b]):
                found = self._extreme_back(name, a, b, gradient)
            case _, [a, b]:
                found = self._truth_back(name, a, b, gradient)
            case _:
                raise ValueError(f"there is no code for {name}")
        return [self.crop(columns) for columns in found]

    def _truth_back(self, name: str, a: Columns, b: Columns, gradient: Columns) -> list[Columns]:
        to = self.to
        slope = to.sub(to.pick(gradient, 1), to.pick(gradient, 0))
        match name:
            case "LESS-THAN":
                to_a, to_b = self._from_above(b, exclusive=True), self._exclusive(a)
            case "LESS-OR-EQUAL-THAN":
                to_a, to_b = self._from_above(b, exclusive=False), to.prefix(a)
            case _:
                to_a, to_b = b, a
        return [[to.mul(slope, column) for column in columns] for columns in (to_a, to_b)]

    def _extreme_back(self, name: str, a: Columns, b: Columns, gradient: Columns) -> list[Columns]:
        """Both arguments count at their own place, and at all places beyond which they may lie."""
        to = self.to
        beyond_a, from_b = self._sides(name, a, b)
        by_a, by_b = ([to.mul(g, own) for g, own in zip(gradient, x, strict=True)] for x in (a, b))
        if name == "MAX":
            far_a, far_b = self._from_above(by_b, exclusive=True), self._from_above(by_a, exclusive=False)
        else:
            far_a, far_b = self._exclusive(by_b), to.prefix(by_a)
        pairs = ((from_b, far_a), (beyond_a, far_b))
        return [[to.fma(g, x, y) for g, x, y in zip(gradient, near, far, strict=True)] for near, far in pairs]

    def _rows_back(
        self, pointer: Columns, tapes: TapesBack, body: Callable[..., tuple[Value, list[Value]]], carried: list[Value]
    ) -> tuple[Columns, list[Value]]:
        """`body(row's number, pointer's weight, the row's gradient, carried) -> (terms of the pointer's gradient there,
        carried)` for all rows; returns the pointer's gradient and what is carried."""
        to, shape = self.to, self.shape
        to.sync()
        for number, weighted in enumerate([pointer, *(former for former, _gradient in tapes.pending)]):
            to.store_first(shape.rows, weighted, self.room, number * shape.rows)
        to.sync()
        found, held = [], carried
        weights: list[list[Value]] = []
        for start in range(0, shape.rows, LANES):
            terms = []
            for i in range(start, min(start + LANES, shape.rows)):
                if i % QUAD == 0:
                    weights = [to.quad(self.room, p * shape.rows + i) for p in range(1 + len(tapes.pending))]
                gradient = to.columns(tapes.gradient, i * shape.row, shape.columns)
                for quad, (_former, added) in zip(weights[1:], tapes.pending, strict=True):
                    gradient = [to.fma(quad[i % QUAD], own, old) for own, old in zip(added, gradient, strict=True)]
                if tapes.crop:
                    gradient = [self.crop_one(column) for column in gradient]
                term, held = body(i, weights[0][i % QUAD], gradient, held)
                terms.append(term)
            found.append(to.lane_sums(terms))
        tapes.pending.clear()
        return found, held

    def _read_back(self, pointer: Columns, gradient: Columns, tapes: TapesBack) -> list[Columns]:
        to, shape = self.to, self.shape
        if not tapes.crop and len(tapes.pending) < shape.pending:
            tapes.pending.append((pointer, gradient))
            terms = [self._dot(gradient, tapes.seen(number)) for number in range(shape.rows)]
            return [[to.lane_sums(terms[start : start + LANES]) for start in range(0, shape.rows, LANES)]]

        def row(number: int, weight: Value, received: Columns, held: list[Value]):
            fresh = [to.fma(weight, own, old) for own, old in zip(gradient, received, strict=True)]
            to.store_columns(fresh, tapes.gradient, number * shape.row)
            return self._dot(gradient, tapes.seen(number)), held

        to_pointer, _ = self._rows_back(pointer, tapes, row, [])
        return [to_pointer]

    def _write_back(self, pointer: Columns, value: Columns, tapes: TapesBack) -> list[Columns]:
        to, shape = self.to, self.shape

        def row(number: int, weight: Value, received: Columns, sums: list[Value]):
            rest = to.sub(to.number(1.0), weight)
            to.store_columns([to.mul(rest, own) for own in received], tapes.gradient, number * shape.row)
            changed = [to.sub(new, old) for new, old in zip(value, tapes.seen(number), strict=True)]
            return self._dot(received, changed), [
                to.fma(weight, own, total) for own, total in zip(received, sums, strict=True)
            ]

        to_pointer, to_value = self._rows_back(pointer, tapes, row, [to.nothing] * shape.columns)
        return [to_pointer, to_value]

    def _dot(self, a: Columns, b: Columns) -> Value:
        """The terms of a product, those of all columns added."""
        total = self.to.mul(a[0], b[0])
        for x, y in zip(a[1:], b[1:], strict=True):
            total = self.to.fma(x, y, total)
        return total
