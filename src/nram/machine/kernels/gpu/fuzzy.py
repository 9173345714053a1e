"""The modules on distributions, forwards and backwards, a warp an example.

The meanings are those of the table in `nram.modules`; gradients are written out, and cropped where the paper's
activation clipping crops them. A distribution is a list of columns in registers; the tape and its gradient are rows
of memory.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, cast

from nram.algebra import Formula, Term, d, evaluate
from nram.machine.kernels.gpu.shape import LANES, QUAD, WarpShape
from nram.machine.kernels.gpu.warps import Columns, Value, Warps
from nram.modules import Module


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


def each(operation: Callable[..., Value], *rows: Columns) -> Columns:
    """An operation column by column."""
    return [operation(*columns) for columns in zip(*rows, strict=True)]


class Fuzzy:
    """The modules of one size of memory, as code."""

    def __init__(self, b: Warps, shape: WarpShape, room: Value, clip: Value):
        self.b = b
        self.shape = shape
        self.size = shape.size
        self.room = room  # a row of shared memory
        self.clip = clip
        self.minus_clip = b.at.fneg(clip)
        self.operations: dict[str, Callable[..., Columns]] = {
            "certain": lambda number: b.certain(number, shape.columns),
            "rotate": lambda x, by: b.rotated(x, by, self.size),
            "plus": self._convolved,
            "minus": lambda x, y: self._convolved(x, b.reflected(y, self.size)),
            "at_most": b.prefix,
            "below": lambda x: each(b.sub, b.prefix(x), x),
            "at_least": lambda x: each(b.add, self._above(x), x),
            "above": self._above,
            "truth": self._truth,
            "slope": self._slope,
            "multiply": partial(each, b.mul),
            "multiply_add": partial(each, b.fma),
        }

    def crop(self, gradient: Columns) -> Columns:
        """C1, and nothing beyond M."""
        return [self.b.part(self.crop_one(column), self.size, number) for number, column in enumerate(gradient)]

    def crop_one(self, gradient: Value) -> Value:
        return self.b.at_least(self.b.at_most(gradient, self.clip), self.minus_clip)

    def renormalised(self, columns: Columns) -> Columns:
        """Rescaled to a sum of 1; the backward pass takes it for the identity."""
        b = self.b
        if not self.shape.renormalising:
            return columns
        factor = b.divide(b.number(1.0), b.total(columns))
        return [b.mul(column, factor) for column in columns]

    # The algebra of distributions

    def _truth(self, x: Columns) -> Columns:
        b = self.b
        truth = b.total(x)
        no = b.choose(b.only(0), b.sub(b.number(1.0), truth), b.nothing)
        return [b.choose(b.only(1), truth, no), *[b.nothing] * (len(x) - 1)]

    def _slope(self, gradient: Columns) -> Columns:
        return [self.b.sub(self.b.pick(gradient, 1), self.b.pick(gradient, 0))] * len(gradient)

    def _above(self, x: Columns) -> Columns:
        up_to = self.b.prefix(x)
        whole = self.b.pick(up_to, self.shape.row - 1)
        return [self.b.sub(whole, part) for part in up_to]

    def _convolved(self, x: Columns, y: Columns) -> Columns:
        """result[i] = sum over k of x[k] y[i - k], modulo M.

        With k = 4 q + r: y is moved by r once for all q, and the sums over r are joined in pairs, those of q + 1 moved
        by 4, then those of q + 2 by 8, and so on: there are M / 4 exchanges instead of M, and few wait for others.
        """
        b, size = self.b, self.size
        moved = [y] + [b.rotated(y, r, size) for r in range(1, QUAD)]
        b.publish(x, self.room)
        parts: list[Columns] = []
        for start in range(0, self.shape.rows, QUAD):
            part: Columns = [b.nothing] * len(y)
            for weight, other in zip(b.quad(self.room, start), moved, strict=True):
                part = [b.fma(weight, own, total) for own, total in zip(other, part, strict=True)]
            parts.append(part)
        distance = QUAD
        while len(parts) > 1:
            for number in range(len(parts) // 2):
                near, far = parts[number : number + 2]
                far = b.rotated(far, distance % size, size)
                parts[number : number + 2] = [[b.add(own, other) for own, other in zip(near, far, strict=True)]]
            distance *= 2
        return parts[0]

    # Forwards

    def forward(self, module: Module, arguments: list[Columns], tapes: Tapes) -> Columns:
        """The output; WRITE changes the tape, and keeps its new version."""
        if module.memory == "writes":
            self._write(tapes, *arguments)
            return self.b.certain(0, self.shape.columns)
        if module.memory == "reads":
            return self.renormalised(self._read(tapes, *arguments))
        output = cast(Formula, module.fuzzy).output(module.arity)
        found = self._evaluated([output], arguments)[0]
        return found if output.operation in ("certain", "truth") else self.renormalised(found)

    def _evaluated(self, terms: list[Term], arguments: list[Columns]) -> list[Columns]:
        known: dict[Term, Any] = {d.argument(index): columns for index, columns in enumerate(arguments)}
        return [evaluate(term, self.operations, known) for term in terms]

    def _each_row(
        self, pointer: Columns, tapes: Tapes, body: Callable[..., list[Value]], carried: list[Value]
    ) -> list[Value]:
        """`body(row's place, pointer's weight there, row, carried)` for all rows of a tape: four of them written out,
        or all if they are in registers."""
        b, shape = self.b, self.shape
        b.publish(pointer, self.room)

        def four(i: Value, held: list[Value]) -> list[Value]:
            for number, weight in enumerate(b.quad(self.room, i)):
                place = b.at.mul(b.at.add(i, b.index(number)), b.index(shape.row))
                held = body(place, weight, b.columns(tapes.now, place, shape.columns), held)
            return held

        if not tapes.rows:
            return b.repeat(shape.rows, four, carried, step=QUAD)
        for start in range(0, shape.rows, QUAD):
            for number, weight in enumerate(b.quad(self.room, start), start):
                carried = body(number * shape.row, weight, tapes.rows[number], carried)
        return carried

    def _read(self, tapes: Tapes, pointer: Columns) -> Columns:
        b = self.b

        def row(_place: Value, weight: Value, there: Columns, sums: list[Value]) -> list[Value]:
            return [b.fma(weight, own, total) for own, total in zip(there, sums, strict=True)]

        return self._each_row(pointer, tapes, row, [b.nothing] * self.shape.columns)

    def _write(self, tapes: Tapes, pointer: Columns, value: Columns) -> None:
        b, rows = self.b, []

        def row(place: Value, weight: Value, there: Columns, held: list[Value]) -> list[Value]:
            rest = b.sub(b.number(1.0), weight)
            new = [b.fma(weight, own, b.mul(rest, old)) for own, old in zip(value, there, strict=True)]
            b.store_columns(new, tapes.now, place)
            if tapes.after is not None:
                b.store_columns(new, tapes.after, place)
            rows.append(new)
            return held

        self._each_row(pointer, tapes, row, [])
        if tapes.rows:
            tapes.rows[:] = rows

    # Backwards

    def backward(self, module: Module, arguments: list[Columns], gradient: Columns, tapes: TapesBack) -> list[Columns]:
        """From the gradient of the output to those of the arguments, cropped.

        READ and WRITE bring the gradient of the memory after them to that of the memory before them; the first of them
        to see it in a step crops it. Other READs leave what they have to add to the next one. WRITE's own output is a
        constant.
        """
        if module.memory == "writes":
            found = self._write_back(tapes, *arguments)
        elif module.memory == "reads":
            found = self._read_back(tapes, gradient, *arguments)
        else:
            found = self._evaluated(cast(Formula, module.fuzzy).gradients(module.arity), [*arguments, gradient])
        return [self.crop(columns) for columns in found]

    def _rows_back(
        self, pointer: Columns, tapes: TapesBack, body: Callable[..., tuple[Value, list[Value]]], carried: list[Value]
    ) -> tuple[Columns, list[Value]]:
        """`body(row's number, pointer's weight, the row's gradient, carried) -> (terms of the pointer's gradient there,
        carried)` for all rows; returns the pointer's gradient and what is carried."""
        b, shape = self.b, self.shape
        b.sync()
        for number, weighted in enumerate([pointer, *(former for former, _gradient in tapes.pending)]):
            b.store_first(shape.rows, weighted, self.room, number * shape.rows)
        b.sync()
        found, held = [], carried
        weights: list[list[Value]] = []
        for start in range(0, shape.rows, LANES):
            terms = []
            for i in range(start, min(start + LANES, shape.rows)):
                if i % QUAD == 0:
                    weights = [b.quad(self.room, p * shape.rows + i) for p in range(1 + len(tapes.pending))]
                gradient = b.columns(tapes.gradient, i * shape.row, shape.columns)
                for quad, (_former, added) in zip(weights[1:], tapes.pending, strict=True):
                    gradient = [b.fma(quad[i % QUAD], own, old) for own, old in zip(added, gradient, strict=True)]
                if tapes.crop:
                    gradient = [self.crop_one(column) for column in gradient]
                term, held = body(i, weights[0][i % QUAD], gradient, held)
                terms.append(term)
            found.append(b.lane_sums(terms))
        tapes.pending.clear()
        return found, held

    def _read_back(self, tapes: TapesBack, gradient: Columns, pointer: Columns) -> list[Columns]:
        b, shape = self.b, self.shape
        if not tapes.crop and len(tapes.pending) < shape.pending:
            tapes.pending.append((pointer, gradient))
            terms = [self._dot(gradient, tapes.seen(number)) for number in range(shape.rows)]
            return [[b.lane_sums(terms[start : start + LANES]) for start in range(0, shape.rows, LANES)]]

        def row(number: int, weight: Value, received: Columns, held: list[Value]):
            fresh = [b.fma(weight, own, old) for own, old in zip(gradient, received, strict=True)]
            b.store_columns(fresh, tapes.gradient, number * shape.row)
            return self._dot(gradient, tapes.seen(number)), held

        to_pointer, _ = self._rows_back(pointer, tapes, row, [])
        return [to_pointer]

    def _write_back(self, tapes: TapesBack, pointer: Columns, value: Columns) -> list[Columns]:
        b, shape = self.b, self.shape

        def row(number: int, weight: Value, received: Columns, sums: list[Value]):
            rest = b.sub(b.number(1.0), weight)
            b.store_columns([b.mul(rest, own) for own in received], tapes.gradient, number * shape.row)
            changed = [b.sub(new, old) for new, old in zip(value, tapes.seen(number), strict=True)]
            return self._dot(received, changed), [
                b.fma(weight, own, total) for own, total in zip(received, sums, strict=True)
            ]

        to_pointer, to_value = self._rows_back(pointer, tapes, row, [b.nothing] * shape.columns)
        return [to_pointer, to_value]

    def _dot(self, a: Columns, b: Columns) -> Value:
        """The terms of a product, those of all columns added."""
        total = self.b.mul(a[0], b[0])
        for x, y in zip(a[1:], b[1:], strict=True):
            total = self.b.fma(x, y, total)
        return total
