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
from nram.llvm import Value
from nram.machine.kernels.cpu.lanes import Lanes
from nram.modules import Module

UPWARDS, DOWNWARDS = ("at_most", "below"), ("at_least", "above")
SUMS = (*UPWARDS, *DOWNWARDS, "truth")  # all terms that are sums over c

Rows = list[Value]  # addresses of rows
Finish = Callable[[Value], Value]  # applied to a number before it is stored


class Fuzzy:
    """The modules of one size of memory, as code."""

    def __init__(self, code: Lanes, size: int, renormalising: bool, scratch: Value, clip: Value):
        self.code = code
        self.size = size
        self.renormalising = renormalising
        self.scratch = scratch  # room for 2 rows
        self.clip = clip
        self.minus_clip = code.at.fneg(clip)

    def crop(self, gradient: Value) -> Value:
        return self.code.at_least(self.code.at_most(gradient, self.clip), self.minus_clip)

    def renormalise(self, out: Value) -> None:
        """Rescale a row to a sum of 1; the backward pass treats it as the identity."""
        if self.renormalising:
            factor = self.code.divide(self.code.number(1.0), self._sum_of(out))
            self.code.each(self.size, lambda c: self.code.store(self.code.mul(self.code.load(out, c), factor), out, c))

    def _sum_of(self, row: Value) -> Value:
        code = self.code

        def part(start: Value, count: int, sums: list[Value]) -> list[Value]:
            here = code.total([code.load(code.row(row, start), c) for c in range(count)])
            return [code.add(sums[0], here)]

        return code.chunks(self.size, 12, part, [code.number(0.0)])[0]

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

        READ and WRITE see the memory before them, and turn the gradient of the memory after them, `to_memory`, into
        that of the memory before them. The output of WRITE is a constant.
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
        code, last = self.code, self.size - 1
        source, target = (0, 1) if by == 1 else (1, 0)
        code.each(last, lambda c: code.store(finish(code.load(code.row(x, source), c)), code.row(out, target), c))
        code.store(finish(code.load(x, last if by == 1 else 0)), out, 0 if by == 1 else last)

    def _convolve(self, x: Value, y: Value, sign: int, out: Value, finish: Finish) -> None:
        """out[c] = finish(sum over k of y[k] x[c + sign k]), modulo M."""
        code = self.code

        def copy(c: Value) -> None:  # two copies of x one after the other, so that indices need no remainder
            value = code.load(x, c)
            code.store(value, self.scratch, c)
            code.store(value, code.row(self.scratch, self.size), c)

        code.each(self.size, copy)

        def outputs(start: Value, count: int) -> None:
            def term(k: Value, sums: list[Value]) -> list[Value]:
                weight = code.load(y, k)
                middle = code.at.add(start, code.at.mul(k, code.index(sign)))
                moved = code.row(self.scratch, code.at.add(middle, code.index(0 if sign == 1 else self.size)))
                return [code.fma(weight, code.load(moved, c), total) for c, total in enumerate(sums)]

            for c, total in enumerate(code.repeat(self.size, term, [code.number(0.0)] * count)):
                code.store(finish(total), out, code.at.add(start, code.index(c)))

        code.chunks(self.size, code.accumulators - 2, outputs)

    def _fuse(self, outs: dict[Term, Value], arguments: Rows, finish: Finish) -> None:
        """Compute terms together, in as few loops over c as their sums allow.

        A loop keeps running sums in registers and computes whatever they allow. Sums from below need a loop upwards,
        and sums from above one downwards: loops of an even index go upwards, the others downwards. A sum that a later
        loop needs, too, is stored for it.
        """
        code = self.code
        rows = {d.argument(index): row for index, row in enumerate(arguments)}
        parts = list(dict.fromkeys(part for term in outs for part in term.parts))
        sums = [part for part in parts if part.operation in SUMS]
        needed = [term for term in sums if any(term in part.parts and _loop(term) < _loop(part) for part in parts)]
        stored = {term: code.row(self.scratch, index * self.size) for index, term in enumerate(needed)}
        slopes = {part: self._slope(rows[part.operands[0]]) for part in parts if part.operation == "slope"}

        def run(loop: int) -> None:
            running = [term for term in sums if _loop(term) == loop]
            results = {term: out for term, out in outs.items() if _loop(term) == loop and term.operation != "truth"}
            in_memory = rows | {term: row for term, row in stored.items() if _loop(term) < loop}

            def step(index: Value, totals: list[Value]) -> list[Value]:
                c = index if loop % 2 == 0 else code.at.sub(code.index(self.size - 1), index)
                here = Here(code, c, in_memory, dict(zip(running, totals, strict=True)), dict(slopes))
                for term, out in results.items():
                    code.store(finish(here.value(term)), out, c)
                for term in running:
                    value = here.value(term)
                    if term in stored:
                        code.store(value, stored[term], c)
                return [here.sums[term] for term in running]

            if running or results:
                totals = code.repeat(self.size, step, [code.number(0.0)] * len(running))
                for term, total in zip(running, totals, strict=True):
                    if term.operation == "truth":
                        code.store(code.sub(code.number(1.0), total), outs[term], 0)
                        code.store(total, outs[term], 1)

        for loop in range(1 + max(map(_loop, outs))):
            run(loop)

    def _slope(self, gradient: Value) -> Value:
        return self.code.sub(self.code.load(gradient, 1), self.code.load(gradient, 0))

    # The memory

    def _read(self, memory: Value, out: Value, pointer: Value) -> None:
        code = self.code

        def values(start: Value, count: int) -> None:
            column = code.row(memory, start)

            def cell(i: Value, sums: list[Value]) -> list[Value]:
                weight = code.load(pointer, i)
                row = code.row(column, code.at.mul(i, code.index(self.size)))
                return [code.fma(weight, code.load(row, v), total) for v, total in enumerate(sums)]

            for v, total in enumerate(code.repeat(self.size, cell, [code.number(0.0)] * count)):
                code.store(total, code.row(out, start), v)

        code.chunks(self.size, code.accumulators - 2, values)

    def _write(self, memory: Value, after: Value, pointer: Value, value: Value) -> None:
        code = self.code

        def cell(i: Value) -> None:
            weight = code.load(pointer, i)
            rest = code.sub(code.number(1.0), weight)
            row = code.at.mul(i, code.index(self.size))
            old, new = code.row(memory, row), code.row(after, row)

            def values(start: Value, count: int) -> None:
                for v in range(count):
                    kept = code.mul(rest, code.load(code.row(old, start), v))
                    code.store(code.fma(weight, code.load(code.row(value, start), v), kept), code.row(new, start), v)

            code.chunks(self.size, 16, values)

        code.each(self.size, cell, together=1)

    def _read_back(self, memory: Value, to_memory: Value, gradient: Value, pointer: Value, to_pointer: Value) -> None:
        code = self.code

        def cell(i: Value) -> None:
            weight = code.load(pointer, i)
            start = code.at.mul(i, code.index(self.size))
            row, row_gradient = code.row(memory, start), code.row(to_memory, start)

            def values(start: Value, count: int, sums: list[Value]) -> list[Value]:
                results = list(sums)
                for index in range(count):
                    v = code.at.add(start, code.index(index))
                    to_value = code.load(gradient, v)
                    code.store(code.fma(weight, to_value, code.load(row_gradient, v)), row_gradient, v)
                    results[index] = code.fma(to_value, code.load(row, v), results[index])
                return results

            sums = code.chunks(self.size, 4, values, [code.number(0.0)] * 4)
            code.store(self.crop(code.total(sums)), to_pointer, i)

        code.each(self.size, cell, together=1)

    def _write_back(
        self, memory: Value, to_memory: Value, pointer: Value, value: Value, to_pointer: Value, to_value: Value
    ) -> None:
        code = self.code
        code.each(self.size, lambda i: code.store(code.number(0.0), to_pointer, i))

        def values(start: Value, count: int) -> None:
            written = code.row(value, start)

            def cell(i: Value, sums: list[Value]) -> list[Value]:
                weight = code.load(pointer, i)
                rest = code.sub(code.number(1.0), weight)
                begin = code.at.add(code.at.mul(i, code.index(self.size)), start)
                row, row_gradient = code.row(memory, begin), code.row(to_memory, begin)
                terms, results = [], []
                for v, total in enumerate(sums):
                    to_cell = code.load(row_gradient, v)
                    terms.append(code.mul(to_cell, code.sub(code.load(written, v), code.load(row, v))))
                    results.append(code.fma(weight, to_cell, total))
                    code.store(code.mul(rest, to_cell), row_gradient, v)
                code.store(code.add(code.load(to_pointer, i), code.total(terms)), to_pointer, i)
                return results

            for v, total in enumerate(code.repeat(self.size, cell, [code.number(0.0)] * count)):
                code.store(self.crop(total), code.row(to_value, start), v)

        code.chunks(self.size, code.accumulators // 2, values)
        code.each(self.size, lambda i: code.store(self.crop(code.load(to_pointer, i)), to_pointer, i))


def _loop(term: Term) -> int:
    """The index of the first loop that can compute a term."""
    index = max(map(_loop, term.terms), default=0)
    return index + (term.operation in (DOWNWARDS, UPWARDS)[index % 2])


@dataclass
class Here:
    """The values of terms at one c."""

    code: Lanes
    c: Value
    rows: dict[Term, Value]  # that are in memory
    sums: dict[Term, Value]  # running sums, without this c until their values are asked for
    known: dict[Term, Value]

    def value(self, term: Term) -> Value:
        if term not in self.known:
            self.known[term] = self._computed(term)
        return self.known[term]

    def _computed(self, term: Term) -> Value:
        code = self.code
        if term in self.rows:
            return code.load(self.rows[term], self.c)
        if term.operation == "multiply":
            return code.mul(*map(self.value, term.operands))
        if term.operation == "multiply_add":
            return code.fma(*map(self.value, term.operands))
        (added,), before = term.operands, self.sums[term]
        if added.operation == "multiply":
            x, y = map(self.value, added.operands)
            self.sums[term] = code.fma(x, y, before)
        else:
            self.sums[term] = code.add(before, self.value(added))
        return before if term.operation in ("below", "above") else self.sums[term]
