"""The modules on distributions, forwards and backwards, with examples in lanes.

A distribution is a row: an array of M vectors. What a module does to rows is a term of `nram.algebra`, and so is the
gradient with respect to each argument. Only READ and WRITE, which touch the memory, are written out here. Gradients
with respect to arguments are cropped where they are stored (the paper's activation clipping).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from nram.algebra import Formula, Term
from nram.machine.kernels.cpu.fused import compute_together
from nram.machine.kernels.cpu.lanes import Lanes, Value
from nram.modules import Module


class Fuzzy:
    """The modules of one size of memory, as code."""

    def __init__(self, b: Lanes, size: int, renormalising: bool, scratch: Value, clip: Value):
        self.b = b
        self.size = size
        self.renormalising = renormalising
        self.scratch = scratch  # room for 2 rows
        self.clip = clip
        self.minus_clip = b.at.fneg(clip)

    def crop(self, gradient: Value) -> Value:
        return self.b.at_least(self.b.at_most(gradient, self.clip), self.minus_clip)

    def renormalise(self, out: Value) -> None:
        """Rescale a row to a sum of 1; the backward pass takes it for the identity."""
        if self.renormalising:
            factor = self.b.divide(self.b.number(1.0), self._sum_of(out))
            self.b.each(self.size, lambda c: self.b.store(self.b.mul(self.b.load(out, c), factor), out, c))

    def _sum_of(self, row: Value) -> Value:
        b = self.b

        def part(start: Value, count: int, sums: list[Value]) -> list[Value]:
            here = b.total([b.load(b.row(row, start), c) for c in range(count)])
            return [b.add(sums[0], here)]

        return b.chunks(self.size, 12, part, [b.number(0.0)])[0]

    def forward(self, module: Module, arguments: list[Value], out: Value, memory: Value, after: Value) -> None:
        """Store the output at `out`, or, for WRITE, the new memory at `after`."""
        if module.memory == "writes":
            self._write(*arguments, memory, after)
            return
        if module.memory == "reads":
            self._read(*arguments, memory, out)
        else:
            term = cast(Formula, module.fuzzy).output(module.arity)
            self._compute([term], arguments, [out], lambda x: x)
            if term.operation == "truth":
                return
        self.renormalise(out)

    def backward(
        self,
        module: Module,
        arguments: list[Value],
        gradient: Value,
        received: list[Value],
        memory: Value,
        to_memory: Value,
    ) -> None:
        """From the gradient of the output to those of the arguments, stored at `received`.

        READ and WRITE see the memory before them, and bring the gradient of the memory after them, `to_memory`,
        to that of the memory before them. WRITE's own output is a constant.
        """
        if module.memory == "writes":
            self._write_back(*arguments, memory, to_memory, *received)
        elif module.memory == "reads":
            self._read_back(*arguments, gradient, memory, to_memory, *received)
        else:
            terms = cast(Formula, module.fuzzy).gradients(module.arity)
            self._compute(terms, [*arguments, gradient], received, self.crop)

    # The algebra of distributions

    def _compute(
        self, terms: list[Term], rows: list[Value], outs: list[Value], finish: Callable[[Value], Value]
    ) -> None:
        """Store finish(term[c]) for all c of some terms at `outs`; `rows` are the arguments that terms are made of."""
        fused = {}
        for term, out in zip(terms, outs, strict=True):
            match term.operation, [rows[operand.number] for operand in term.operands]:
                case "rotate", [x]:
                    self._rotate(x, term.number, out, finish)
                case ("plus" | "minus") as operation, [x, y]:
                    self._convolve(x, y, 1 if operation == "minus" else -1, out, finish)
                case _:
                    fused[term] = out
        if fused:
            compute_together(self.b, self.size, rows, fused, self.scratch, finish)

    def _rotate(self, x: Value, by: int, out: Value, finish: Callable[[Value], Value]) -> None:
        """out[c + by] = finish(x[c]), modulo M; `by` is 1 or -1."""
        b, last = self.b, self.size - 1
        source, target = (0, 1) if by == 1 else (1, 0)
        b.each(last, lambda c: b.store(finish(b.load(b.row(x, source), c)), b.row(out, target), c))
        b.store(finish(b.load(x, last if by == 1 else 0)), out, 0 if by == 1 else last)

    def _convolve(self, x: Value, y: Value, sign: int, out: Value, finish: Callable[[Value], Value]) -> None:
        """out[c] = finish(sum over k of y[k] x[c + sign k]), modulo M."""
        b = self.b

        def copy(c: Value) -> None:  # two copies of x one after the other, so that indices need no remainder
            value = b.load(x, c)
            b.store(value, self.scratch, c)
            b.store(value, b.row(self.scratch, self.size), c)

        b.each(self.size, copy)

        def outputs(start: Value, count: int) -> None:
            def term(k: Value, sums: list[Value]) -> list[Value]:
                weight = b.load(y, k)
                middle = b.at.add(start, b.at.mul(k, b.index(sign)))
                moved = b.row(self.scratch, b.at.add(middle, b.index(0 if sign == 1 else self.size)))
                return [b.fma(weight, b.load(moved, c), total) for c, total in enumerate(sums)]

            for c, total in enumerate(b.repeat(self.size, term, [b.number(0.0)] * count)):
                b.store(finish(total), out, b.at.add(start, b.index(c)))

        b.chunks(self.size, b.accumulators - 2, outputs)

    # The memory

    def _read(self, pointer: Value, memory: Value, out: Value) -> None:
        b = self.b

        def values(start: Value, count: int) -> None:
            column = b.row(memory, start)

            def cell(i: Value, sums: list[Value]) -> list[Value]:
                weight = b.load(pointer, i)
                row = b.row(column, b.at.mul(i, b.index(self.size)))
                return [b.fma(weight, b.load(row, v), total) for v, total in enumerate(sums)]

            for v, total in enumerate(b.repeat(self.size, cell, [b.number(0.0)] * count)):
                b.store(total, b.row(out, start), v)

        b.chunks(self.size, b.accumulators - 2, values)

    def _write(self, pointer: Value, value: Value, memory: Value, after: Value) -> None:
        b = self.b

        def cell(i: Value) -> None:
            weight = b.load(pointer, i)
            rest = b.sub(b.number(1.0), weight)
            row = b.at.mul(i, b.index(self.size))
            old, new = b.row(memory, row), b.row(after, row)

            def values(start: Value, count: int) -> None:
                for v in range(count):
                    kept = b.mul(rest, b.load(b.row(old, start), v))
                    b.store(b.fma(weight, b.load(b.row(value, start), v), kept), b.row(new, start), v)

            b.chunks(self.size, 16, values)

        b.each(self.size, cell, together=1)

    def _read_back(self, pointer: Value, gradient: Value, memory: Value, to_memory: Value, to_pointer: Value) -> None:
        b = self.b

        def cell(i: Value) -> None:
            weight = b.load(pointer, i)
            start = b.at.mul(i, b.index(self.size))
            row, row_gradient = b.row(memory, start), b.row(to_memory, start)

            def values(start: Value, count: int, sums: list[Value]) -> list[Value]:
                results = list(sums)
                for number in range(count):
                    v = b.at.add(start, b.index(number))
                    own = b.load(gradient, v)
                    b.store(b.fma(weight, own, b.load(row_gradient, v)), row_gradient, v)
                    results[number] = b.fma(own, b.load(row, v), results[number])
                return results

            sums = b.chunks(self.size, 4, values, [b.number(0.0)] * 4)
            b.store(self.crop(b.total(sums)), to_pointer, i)

        b.each(self.size, cell, together=1)

    def _write_back(
        self, pointer: Value, value: Value, memory: Value, to_memory: Value, to_pointer: Value, to_value: Value
    ) -> None:
        b = self.b
        b.each(self.size, lambda i: b.store(b.number(0.0), to_pointer, i))

        def values(start: Value, count: int) -> None:
            own_value = b.row(value, start)

            def cell(i: Value, sums: list[Value]) -> list[Value]:
                weight = b.load(pointer, i)
                rest = b.sub(b.number(1.0), weight)
                begin = b.at.add(b.at.mul(i, b.index(self.size)), start)
                row, row_gradient = b.row(memory, begin), b.row(to_memory, begin)
                terms, results = [], []
                for v, total in enumerate(sums):
                    own = b.load(row_gradient, v)
                    terms.append(b.mul(own, b.sub(b.load(own_value, v), b.load(row, v))))
                    results.append(b.fma(weight, own, total))
                    b.store(b.mul(rest, own), row_gradient, v)
                b.store(b.add(b.load(to_pointer, i), b.total(terms)), to_pointer, i)
                return results

            for v, total in enumerate(b.repeat(self.size, cell, [b.number(0.0)] * count)):
                b.store(self.crop(total), b.row(to_value, start), v)

        b.chunks(self.size, b.accumulators // 2, values)
        b.each(self.size, lambda i: b.store(self.crop(b.load(to_pointer, i)), to_pointer, i))
