"""The modules on distributions, forwards and backwards, with examples in lanes.

A distribution is a row: an array of M vectors. What a module does to rows is a term of `nram.algebra`, and so is the
gradient with respect to each argument. Only READ and WRITE, which touch the memory, are written out here. Gradients
with respect to arguments are cropped where they are stored (the paper's activation clipping).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from nram.algebra import Formula, Term, d
from nram.machine.kernels.cpu.lanes import Lanes, Value
from nram.modules import Module

UPWARDS, DOWNWARDS = ("at_most", "below"), ("at_least", "above")
SUMS = (*UPWARDS, *DOWNWARDS, "truth")  # all terms that are sums over c

Rows = list[Value]  # addresses of rows
Finish = Callable[[Value], Value]  # applied to a number before it is stored


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

    def forward(self, module: Module, arguments: Rows, out: Value, memory: Value, after: Value) -> None:
        """Store the output at `out`, or, for WRITE, the new memory at `after`."""
        if module.memory == "writes":
            self._write(memory, after, *arguments)
            return
        if module.memory == "reads":
            self._read(memory, out, *arguments)
        else:
            term = cast(Formula, module.fuzzy).output(module.arity)
            self._compute([term], arguments, [out], lambda x: x)
            if term.operation == "truth":
                return
        self.renormalise(out)

    def backward(
        self, module: Module, arguments: Rows, gradient: Value, received: Rows, memory: Value, to_memory: Value
    ) -> None:
        """From the gradient of the output to those of the arguments, stored at `received`.

        READ and WRITE see the memory before them, and bring the gradient of the memory after them, `to_memory`,
        to that of the memory before them. WRITE's own output is a constant.
        """
        if module.memory == "writes":
            self._write_back(memory, to_memory, *(arguments + received))
        elif module.memory == "reads":
            self._read_back(memory, to_memory, gradient, *(arguments + received))
        else:
            terms = cast(Formula, module.fuzzy).gradients(module.arity)
            self._compute(terms, [*arguments, gradient], received, self.crop)

    # The algebra of distributions

    def _compute(self, terms: list[Term], rows: Rows, outs: Rows, finish: Finish) -> None:
        """Store finish(term[c]) for all c of some terms at `outs`; `rows` are the arguments that terms name."""
        fused = {}
        for term, out in zip(terms, outs, strict=True):
            match term:
                case Term("rotate", (Term("argument", (x,)), by)):
                    self._rotate(rows[x], by, out, finish)
                case Term("plus" | "minus" as operation, (Term("argument", (x,)), Term("argument", (y,)))):
                    self._convolve(rows[x], rows[y], 1 if operation == "minus" else -1, out, finish)
                case _:
                    fused[term] = out
        if fused:
            self._fuse(fused, rows, finish)

    def _rotate(self, x: Value, by: int, out: Value, finish: Finish) -> None:
        """out[c + by] = finish(x[c]), modulo M; `by` is 1 or -1."""
        b, last = self.b, self.size - 1
        source, target = (0, 1) if by == 1 else (1, 0)
        b.each(last, lambda c: b.store(finish(b.load(b.row(x, source), c)), b.row(out, target), c))
        b.store(finish(b.load(x, last if by == 1 else 0)), out, 0 if by == 1 else last)

    def _convolve(self, x: Value, y: Value, sign: int, out: Value, finish: Finish) -> None:
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

    def _fuse(self, outs: dict[Term, Value], arguments: Rows, finish: Finish) -> None:
        """Compute terms together, in as few loops over c as their sums allow.

        A loop keeps running sums in registers and computes whatever they allow. Sums from below need a loop upwards,
        and sums from above one downwards: loops of an even index go upwards, the others downwards. A sum that a later
        loop needs, too, is stored for it.
        """
        b = self.b
        rows = {d.argument(index): row for index, row in enumerate(arguments)}
        parts = list(dict.fromkeys(part for term in outs for part in term.parts))
        sums = [part for part in parts if part.operation in SUMS]
        needed = [own for own in sums if any(own in part.parts and _loop(own) < _loop(part) for part in parts)]
        stored = {own: b.row(self.scratch, index * self.size) for index, own in enumerate(needed)}
        slopes = {part: self._slope(rows[part.operands[0]]) for part in parts if part.operation == "slope"}

        def run(loop: int) -> None:
            running = [own for own in sums if _loop(own) == loop]
            stores = {term: out for term, out in outs.items() if _loop(term) == loop and term.operation != "truth"}
            in_memory = rows | {own: row for own, row in stored.items() if _loop(own) < loop}

            def step(index: Value, totals: list[Value]) -> list[Value]:
                c = index if loop % 2 == 0 else b.at.sub(b.index(self.size - 1), index)
                here = Here(b, c, in_memory, dict(zip(running, totals, strict=True)), dict(slopes))
                for term, out in stores.items():
                    b.store(finish(here.value(term)), out, c)
                for own in running:
                    value = here.value(own)
                    if own in stored:
                        b.store(value, stored[own], c)
                return [here.sums[own] for own in running]

            if running or stores:
                totals = b.repeat(self.size, step, [b.number(0.0)] * len(running))
                for truth, total in zip(running, totals, strict=True):
                    if truth.operation == "truth":
                        b.store(b.sub(b.number(1.0), total), outs[truth], 0)
                        b.store(total, outs[truth], 1)

        for loop in range(1 + max(map(_loop, outs))):
            run(loop)

    def _slope(self, gradient: Value) -> Value:
        return self.b.sub(self.b.load(gradient, 1), self.b.load(gradient, 0))

    # The memory

    def _read(self, memory: Value, out: Value, pointer: Value) -> None:
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

    def _write(self, memory: Value, after: Value, pointer: Value, value: Value) -> None:
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

    def _read_back(self, memory: Value, to_memory: Value, gradient: Value, pointer: Value, to_pointer: Value) -> None:
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
        self, memory: Value, to_memory: Value, pointer: Value, value: Value, to_pointer: Value, to_value: Value
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


def _loop(term: Term) -> int:
    """The index of the first loop that can compute a term."""
    index = max(map(_loop, term.terms), default=0)
    return index + (term.operation in (DOWNWARDS, UPWARDS)[index % 2])


@dataclass
class Here:
    """The values of terms at one c."""

    b: Lanes
    c: Value
    rows: dict[Term, Value]  # that are in memory
    sums: dict[Term, Value]  # running sums, without this c until their values are asked for
    known: dict[Term, Value]

    def value(self, term: Term) -> Value:
        if term not in self.known:
            self.known[term] = self._computed(term)
        return self.known[term]

    def _computed(self, term: Term) -> Value:
        b = self.b
        if term in self.rows:
            return b.load(self.rows[term], self.c)
        if term.operation == "multiply":
            return b.mul(*map(self.value, term.operands))
        if term.operation == "multiply_add":
            return b.fma(*map(self.value, term.operands))
        (added,), before = term.operands, self.sums[term]
        if added.operation == "multiply":
            x, y = map(self.value, added.operands)
            self.sums[term] = b.fma(x, y, before)
        else:
            self.sums[term] = b.add(before, self.value(added))
        return before if term.operation in ("below", "above") else self.sums[term]
