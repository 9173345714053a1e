"""The modules on distributions, forwards and backwards, one warp per example.

A distribution is a list of columns in registers. What a module does to distributions is a term of `nram.algebra`, and
so is the gradient with respect to each argument; `Fuzzy.operations` computes terms. Only READ and WRITE, which touch
the memory, are written out. The memory (the tape) and its gradient are rows of shared memory. Gradients are cropped
where the paper's activation clipping crops them.
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
    """The memory for READ and WRITE."""

    now: Value  # in shared memory
    rows: list[Columns]  # the same in registers if it is small enough; otherwise empty
    after: Value | None  # in global memory: where WRITE stores the new version for the backward pass


class TapesBack(NamedTuple):
    """The memory for READ and WRITE in the backward pass."""

    gradient: Value  # in shared memory, without the parts of the pending READs
    seen: Callable[[int], Columns]  # a row of the version that the module saw
    crop: bool  # whether the gradient must still be cropped
    pending: list[tuple[Columns, Columns]]  # READs whose parts are not added yet: pointer, gradient of the output


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
        """Cropped to [-C1, C1], and 0 in lanes beyond M."""
        return [self.code.part(self.crop_one(column), self.size, index) for index, column in enumerate(gradient)]

    def crop_one(self, gradient: Value) -> Value:
        return self.code.at_least(self.code.at_most(gradient, self.clip), self.minus_clip)

    def renormalised(self, columns: Columns) -> Columns:
        """Rescaled to a sum of 1; the backward pass treats it as the identity."""
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
        """result[c] = sum over k of x[k] y[c - k], modulo M.

        With k = 4 q + r, y is rotated by r once for all q. The sums over r are then added in pairs: the sum of q + 1 is
        rotated by 4, later that of q + 2 by 8, and so on. So there are M / 4 exchanges between lanes instead of M, and
        few of them wait for others.
        """
        code, size = self.code, self.size
        moved = [y] + [code.rotated(y, r, size) for r in range(1, QUAD)]
        code.publish(x, self.room)
        parts: list[Columns] = []
        for start in range(0, self.shape.rows, QUAD):
            part: Columns = [code.nothing] * len(y)
            for weight, row in zip(code.quad(self.room, start), moved, strict=True):
                part = self._add_scaled(weight, row, part)
            parts.append(part)
        distance = QUAD
        while len(parts) > 1:
            for index in range(len(parts) // 2):
                near, far = parts[index : index + 2]
                parts[index : index + 2] = [each(code.add, near, code.rotated(far, distance % size, size))]
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
        """`body(offset of the row, the pointer's weight there, row, carried)` for all rows of a tape.

        The code is repeated for four rows of a loop, or for all rows if they are in registers."""
        code, shape = self.code, self.shape
        code.publish(pointer, self.room)

        def four(first: Value, carried: list[Value]) -> list[Value]:
            for index, weight in enumerate(code.quad(self.room, first)):
                offset = code.at.mul(code.at.add(first, code.index(index)), code.index(shape.row))
                carried = body(offset, weight, code.columns(tapes.now, offset, shape.columns), carried)
            return carried

        if not tapes.rows:
            return code.repeat(shape.rows, four, carried, step=QUAD)
        for start in range(0, shape.rows, QUAD):
            for index, weight in enumerate(code.quad(self.room, start), start):
                carried = body(index * shape.row, weight, tapes.rows[index], carried)
        return carried

    def _read(self, tapes: Tapes, pointer: Columns) -> Columns:
        def add(_offset: Value, weight: Value, row: Columns, sums: list[Value]) -> list[Value]:
            return self._add_scaled(weight, row, sums)

        return self._each_row(pointer, tapes, add, [self.code.nothing] * self.shape.columns)

    def _write(self, tapes: Tapes, pointer: Columns, value: Columns) -> None:
        code, rows = self.code, []

        def replace(offset: Value, weight: Value, row: Columns, carried: list[Value]) -> list[Value]:
            rest = code.sub(code.number(1.0), weight)
            new = self._add_scaled(weight, value, [code.mul(rest, old) for old in row])
            code.store_columns(new, tapes.now, offset)
            if tapes.after is not None:
                code.store_columns(new, tapes.after, offset)
            rows.append(new)
            return carried

        self._each_row(pointer, tapes, replace, [])
        if tapes.rows:
            tapes.rows[:] = rows

    # Backwards

    def backward(self, module: Module, arguments: list[Columns], gradient: Columns, tapes: TapesBack) -> list[Columns]:
        """From the gradient of the output to those of the arguments, cropped.

        READ and WRITE turn the gradient of the memory after them into that of the memory before them. The first of them
        in a step crops it. Other READs only join the pending ones, whose parts the next pass over the rows adds: that
        saves a pass. The output of WRITE is a constant.
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
        """`body(index, the pointer's weight, the row's gradient, carried)` for all rows; the parts of pending READs are
        added before. The body returns terms whose sum over lanes is the pointer's gradient at the row, and what is
        carried. Returns the pointer's gradient and what is carried."""
        code, shape = self.code, self.shape
        code.sync()
        for index, weighted in enumerate([pointer, *(earlier for earlier, _gradient in tapes.pending)]):
            code.store_first(shape.rows, weighted, self.room, index * shape.rows)
        code.sync()
        found: Columns = []
        weights: list[list[Value]] = []
        for start in range(0, shape.rows, LANES):
            terms = []
            for i in range(start, min(start + LANES, shape.rows)):
                if i % QUAD == 0:
                    weights = [code.quad(self.room, p * shape.rows + i) for p in range(1 + len(tapes.pending))]
                gradient = code.columns(tapes.gradient, i * shape.row, shape.columns)
                for quad, (_earlier, added) in zip(weights[1:], tapes.pending, strict=True):
                    gradient = self._add_scaled(quad[i % QUAD], added, gradient)
                if tapes.crop:
                    gradient = [self.crop_one(column) for column in gradient]
                term, carried = body(i, weights[0][i % QUAD], gradient, carried)
                terms.append(term)
            found.append(code.lane_sums(terms))
        tapes.pending.clear()
        return found, carried

    def _read_back(self, tapes: TapesBack, gradient: Columns, pointer: Columns) -> list[Columns]:
        code, shape = self.code, self.shape
        if not tapes.crop and len(tapes.pending) < shape.pending:
            tapes.pending.append((pointer, gradient))
            terms = [self._dot(gradient, tapes.seen(index)) for index in range(shape.rows)]
            return [[code.lane_sums(terms[start : start + LANES]) for start in range(0, shape.rows, LANES)]]

        def add(index: int, weight: Value, to_row: Columns, carried: list[Value]) -> tuple[Value, list[Value]]:
            code.store_columns(self._add_scaled(weight, gradient, to_row), tapes.gradient, index * shape.row)
            return self._dot(gradient, tapes.seen(index)), carried

        to_pointer, _ = self._rows_back(pointer, tapes, add, [])
        return [to_pointer]

    def _write_back(self, tapes: TapesBack, pointer: Columns, value: Columns) -> list[Columns]:
        code, shape = self.code, self.shape

        def divide(index: int, weight: Value, to_row: Columns, sums: list[Value]) -> tuple[Value, list[Value]]:
            rest = code.sub(code.number(1.0), weight)
            code.store_columns([code.mul(rest, column) for column in to_row], tapes.gradient, index * shape.row)
            change = each(code.sub, value, tapes.seen(index))
            return self._dot(to_row, change), self._add_scaled(weight, to_row, sums)

        to_pointer, to_value = self._rows_back(pointer, tapes, divide, [code.nothing] * shape.columns)
        return [to_pointer, to_value]

    def _dot(self, a: Columns, b: Columns) -> Value:
        """In each lane its part of the scalar product."""
        total = self.code.mul(a[0], b[0])
        for x, y in zip(a[1:], b[1:], strict=True):
            total = self.code.fma(x, y, total)
        return total

    def _add_scaled(self, weight: Value, row: Columns, sums: Columns) -> Columns:
        return [self.code.fma(weight, column, total) for column, total in zip(row, sums, strict=True)]
