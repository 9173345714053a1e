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
from nram.llvm import Value
from nram.machine.kernels.gpu.shape import LANES, QUAD, WarpShape
from nram.machine.kernels.gpu.warps import Columns, Warps
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

    def __init__(self, code: Warps, shape: WarpShape, room: Value, clip: Value):
        self.code = code
        self.shape = shape
        self.size = shape.size
        self.room = room  # a row of shared memory
        self.clip = clip
        self.minus_clip = code.at.fneg(clip)
        self.operations: dict[str, Callable[..., Columns]] = {
            "certain": lambda number: code.certain(number, shape.columns),
            "rotate": lambda x, by: code.rotated(x, by, self.size),
            "plus": self._convolved,
            "minus": lambda x, y: self._convolved(x, code.reflected(y, self.size)),
            "at_most": code.prefix,
            "below": lambda x: each(code.sub, code.prefix(x), x),
            "at_least": lambda x: each(code.add, self._above(x), x),
            "above": self._above,
            "truth": self._truth,
            "slope": self._slope,
            "multiply": partial(each, code.mul),
            "multiply_add": partial(each, code.fma),
        }

    def crop(self, gradient: Columns) -> Columns:
        """C1, and nothing beyond M."""
        return [self.code.part(self.crop_one(column), self.size, number) for number, column in enumerate(gradient)]

    def crop_one(self, gradient: Value) -> Value:
        return self.code.at_least(self.code.at_most(gradient, self.clip), self.minus_clip)

    def renormalised(self, columns: Columns) -> Columns:
        """Rescaled to a sum of 1; the backward pass takes it for the identity."""
        code = self.code
        if not self.shape.renormalising:
            return columns
        factor = code.divide(code.number(1.0), code.total(columns))
        return [code.mul(column, factor) for column in columns]

    # The algebra of distributions

    def _truth(self, x: Columns) -> Columns:
        code = self.code
        truth = code.total(x)
        no = code.choose(code.only(0), code.sub(code.number(1.0), truth), code.nothing)
        return [code.choose(code.only(1), truth, no), *[code.nothing] * (len(x) - 1)]

    def _slope(self, gradient: Columns) -> Columns:
        return [self.code.sub(self.code.pick(gradient, 1), self.code.pick(gradient, 0))] * len(gradient)

    def _above(self, x: Columns) -> Columns:
        up_to = self.code.prefix(x)
        whole = self.code.pick(up_to, self.shape.row - 1)
        return [self.code.sub(whole, part) for part in up_to]

    def _convolved(self, x: Columns, y: Columns) -> Columns:
        """result[i] = sum over k of x[k] y[i - k], modulo M.

        With k = 4 q + r: y is moved by r once for all q, and the sums over r are joined in pairs, those of q + 1 moved
        by 4, then those of q + 2 by 8, and so on: there are M / 4 exchanges instead of M, and few wait for others.
        """
        code, size = self.code, self.size
        moved = [y] + [code.rotated(y, r, size) for r in range(1, QUAD)]
        code.publish(x, self.room)
        parts: list[Columns] = []
        for start in range(0, self.shape.rows, QUAD):
            part: Columns = [code.nothing] * len(y)
            for weight, other in zip(code.quad(self.room, start), moved, strict=True):
                part = [code.fma(weight, own, total) for own, total in zip(other, part, strict=True)]
            parts.append(part)
        distance = QUAD
        while len(parts) > 1:
            for number in range(len(parts) // 2):
                near, far = parts[number : number + 2]
                far = code.rotated(far, distance % size, size)
                parts[number : number + 2] = [[code.add(own, other) for own, other in zip(near, far, strict=True)]]
            distance *= 2
        return parts[0]

    # Forwards

    def forward(self, module: Module, arguments: list[Columns], tapes: Tapes) -> Columns:
        """The output; WRITE changes the tape, and keeps its new version."""
        if module.memory == "writes":
            self._write(tapes, *arguments)
            return self.code.certain(0, self.shape.columns)
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
        code, shape = self.code, self.shape
        code.publish(pointer, self.room)

        def four(i: Value, held: list[Value]) -> list[Value]:
            for number, weight in enumerate(code.quad(self.room, i)):
                place = code.at.mul(code.at.add(i, code.index(number)), code.index(shape.row))
                held = body(place, weight, code.columns(tapes.now, place, shape.columns), held)
            return held

        if not tapes.rows:
            return code.repeat(shape.rows, four, carried, step=QUAD)
        for start in range(0, shape.rows, QUAD):
            for number, weight in enumerate(code.quad(self.room, start), start):
                carried = body(number * shape.row, weight, tapes.rows[number], carried)
        return carried

    def _read(self, tapes: Tapes, pointer: Columns) -> Columns:
        code = self.code

        def row(_place: Value, weight: Value, there: Columns, sums: list[Value]) -> list[Value]:
            return [code.fma(weight, own, total) for own, total in zip(there, sums, strict=True)]

        return self._each_row(pointer, tapes, row, [code.nothing] * self.shape.columns)

    def _write(self, tapes: Tapes, pointer: Columns, value: Columns) -> None:
        code, rows = self.code, []

        def row(place: Value, weight: Value, there: Columns, held: list[Value]) -> list[Value]:
            rest = code.sub(code.number(1.0), weight)
            new = [code.fma(weight, own, code.mul(rest, old)) for own, old in zip(value, there, strict=True)]
            code.store_columns(new, tapes.now, place)
            if tapes.after is not None:
                code.store_columns(new, tapes.after, place)
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
        code, shape = self.code, self.shape
        code.sync()
        for number, weighted in enumerate([pointer, *(former for former, _gradient in tapes.pending)]):
            code.store_first(shape.rows, weighted, self.room, number * shape.rows)
        code.sync()
        found, held = [], carried
        weights: list[list[Value]] = []
        for start in range(0, shape.rows, LANES):
            terms = []
            for i in range(start, min(start + LANES, shape.rows)):
                if i % QUAD == 0:
                    weights = [code.quad(self.room, p * shape.rows + i) for p in range(1 + len(tapes.pending))]
                gradient = code.columns(tapes.gradient, i * shape.row, shape.columns)
                for quad, (_former, added) in zip(weights[1:], tapes.pending, strict=True):
                    gradient = [code.fma(quad[i % QUAD], own, old) for own, old in zip(added, gradient, strict=True)]
                if tapes.crop:
                    gradient = [self.crop_one(column) for column in gradient]
                term, held = body(i, weights[0][i % QUAD], gradient, held)
                terms.append(term)
            found.append(code.lane_sums(terms))
        tapes.pending.clear()
        return found, held

    def _read_back(self, tapes: TapesBack, gradient: Columns, pointer: Columns) -> list[Columns]:
        code, shape = self.code, self.shape
        if not tapes.crop and len(tapes.pending) < shape.pending:
            tapes.pending.append((pointer, gradient))
            terms = [self._dot(gradient, tapes.seen(number)) for number in range(shape.rows)]
            return [[code.lane_sums(terms[start : start + LANES]) for start in range(0, shape.rows, LANES)]]

        def row(number: int, weight: Value, received: Columns, held: list[Value]):
            fresh = [code.fma(weight, own, old) for own, old in zip(gradient, received, strict=True)]
            code.store_columns(fresh, tapes.gradient, number * shape.row)
            return self._dot(gradient, tapes.seen(number)), held

        to_pointer, _ = self._rows_back(pointer, tapes, row, [])
        return [to_pointer]

    def _write_back(self, tapes: TapesBack, pointer: Columns, value: Columns) -> list[Columns]:
        code, shape = self.code, self.shape

        def row(number: int, weight: Value, received: Columns, sums: list[Value]):
            rest = code.sub(code.number(1.0), weight)
            code.store_columns([code.mul(rest, own) for own in received], tapes.gradient, number * shape.row)
            changed = [code.sub(new, old) for new, old in zip(value, tapes.seen(number), strict=True)]
            return self._dot(received, changed), [
                code.fma(weight, own, total) for own, total in zip(received, sums, strict=True)
            ]

        to_pointer, to_value = self._rows_back(pointer, tapes, row, [code.nothing] * shape.columns)
        return [to_pointer, to_value]

    def _dot(self, a: Columns, b: Columns) -> Value:
        """The terms of a product, those of all columns added."""
        total = self.code.mul(a[0], b[0])
        for x, y in zip(a[1:], b[1:], strict=True):
            total = self.code.fma(x, y, total)
        return total
