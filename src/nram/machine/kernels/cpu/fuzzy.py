"""The modules on distributions, forwards and backwards, with examples in lanes.

The meanings are those of the table in `nram.modules`; gradients are written out. A distribution is an array of M
vectors. Gradients with respect to arguments are cropped where they are stored (the paper's activation clipping).
"""

from __future__ import annotations

from collections.abc import Callable

from nram.machine.kernels.cpu.lanes import Lanes, Value


class Fuzzy:
    """The modules of one size of memory, as code."""

    def __init__(self, to: Lanes, size: int, renormalising: bool, double: Value, clip: Value):
        self.to = to
        self.size = size
        self.renormalising = renormalising
        self.double = double  # room for 2 M vectors
        self.clip = clip
        self.minus_clip = to.at.fneg(clip)

    def crop(self, gradient: Value) -> Value:
        return self.to.at_least(self.to.at_most(gradient, self.clip), self.minus_clip)

    def renormalise(self, out: Value) -> None:
        """Rescale M vectors to a sum of 1; the backward pass takes it for the identity."""
        if self.renormalising:
            factor = self.to.divide(self.to.number(1.0), self.sum_of(out))
            self.to.each(self.size, lambda i: self.to.store(self.to.mul(self.to.load(out, i), factor), out, i))

    def sum_of(self, row: Value) -> Value:
        to = self.to

        def part(start: Value, count: int, held: list[Value]) -> list[Value]:
            here = to.total([to.load(to.row(row, start), i) for i in range(count)])
            return [to.add(held[0], here)]

        return to.chunks(self.size, 12, part, [to.number(0.0)])[0]

    # Forwards

    def forward(self, name: str, arguments: list[Value], out: Value, memory: Value, after: Value) -> None:
        """Store the output at `out`, or, for WRITE, the new memory at `after`."""
        match name, arguments:
            case "WRITE", [pointer, value]:
                self._write(pointer, value, memory, after)
                return
            case (("LESS-THAN" | "LESS-OR-EQUAL-THAN" | "EQUALITY-TEST"), [a, b]):
                truth = self._truth(name, a, b)
                self.to.store(self.to.sub(self.to.number(1.0), truth), out, 0)
                self.to.store(truth, out, 1)
                return
            case "READ", [pointer]:
                self._read(pointer, memory, out)
            case "INC", [a]:
                self._roll(a, out, 1)
            case "DEC", [a]:
                self._roll(a, out, -1)
            case "ADD", [a, b]:
                self._convolve(a, self._doubled(b), 1, -1, lambda i, total: self.to.store(total, out, i))
            case "SUB", [a, b]:
                self._convolve(b, self._doubled(a), 1, 1, lambda i, total: self.to.store(total, out, i))
            case "MIN", [a, b]:
                self._extreme(a, b, out, downwards=True)
            case "MAX", [a, b]:
                self._extreme(a, b, out, downwards=False)
        self.renormalise(out)

    def _read(self, pointer: Value, memory: Value, out: Value) -> None:
        to = self.to

        def values(start: Value, count: int) -> None:
            column = to.row(memory, start)

            def cell(i: Value, sums: list[Value]) -> list[Value]:
                weight = to.load(pointer, i)
                row = to.row(column, to.at.mul(i, to.index(self.size)))
                return [to.fma(weight, to.load(row, v), total) for v, total in enumerate(sums)]

            for v, total in enumerate(to.repeat(self.size, cell, [to.number(0.0)] * count)):
                to.store(total, to.row(out, start), v)

        to.chunks(self.size, to.accumulators - 2, values)

    def _write(self, pointer: Value, value: Value, memory: Value, after: Value) -> None:
        to = self.to

        def cell(i: Value) -> None:
            weight = to.load(pointer, i)
            rest = to.sub(to.number(1.0), weight)
            row = to.at.mul(i, to.index(self.size))
            old, new = to.row(memory, row), to.row(after, row)

            def values(start: Value, count: int) -> None:
                for v in range(count):
                    kept = to.mul(rest, to.load(to.row(old, start), v))
                    to.store(to.fma(weight, to.load(to.row(value, start), v), kept), to.row(new, start), v)

            to.chunks(self.size, 16, values)

        to.each(self.size, cell, together=1)

    def _truth(self, name: str, a: Value, b: Value) -> Value:
        to = self.to

        def place(i: Value, held: list[Value]) -> list[Value]:
            below, total = held
            own, other = to.load(a, i), to.load(b, i)
            if name == "EQUALITY-TEST":
                return [below, to.fma(own, other, total)]
            up_to = to.add(below, own)
            return [up_to, to.fma(below if name == "LESS-THAN" else up_to, other, total)]

        return to.repeat(self.size, place, [to.number(0.0)] * 2)[1]

    def _roll(self, a: Value, out: Value, by: int, finish: Callable[[Value], Value] = lambda x: x) -> None:
        """out[i + by] = finish(a[i]), modulo M."""
        to, last = self.to, self.size - 1
        source, target = (0, 1) if by == 1 else (1, 0)
        to.each(last, lambda i: to.store(finish(to.load(to.row(a, source), i)), to.row(out, target), i))
        to.store(finish(to.load(a, last if by == 1 else 0)), out, 0 if by == 1 else last)

    def _doubled(self, a: Value) -> Value:
        """Two copies of `a` one after the other, so that indices need no remainder."""
        to = self.to

        def copy(i: Value) -> None:
            own = to.load(a, i)
            to.store(own, self.double, i)
            to.store(own, to.row(self.double, self.size), i)

        to.each(self.size, copy)
        return self.double

    def _convolve(
        self, x: Value, doubled: Value, out_sign: int, in_sign: int, finish: Callable[[Value, Value], None]
    ) -> None:
        """For every i, finish(i, sum over k of x[k] y[out_sign i + in_sign k]), y given twice over."""
        to = self.to
        shift = 0 if out_sign == in_sign == 1 else self.size

        def outputs(start: Value, count: int) -> None:
            begin = to.at.mul(start, to.index(out_sign))

            def term(k: Value, sums: list[Value]) -> list[Value]:
                weight = to.load(x, k)
                middle = to.at.add(begin, to.at.mul(k, to.index(in_sign)))
                place = to.row(doubled, to.at.add(middle, to.index(shift)))
                return [to.fma(weight, to.load(place, out_sign * i), total) for i, total in enumerate(sums)]

            for i, total in enumerate(to.repeat(self.size, term, [to.number(0.0)] * count)):
                finish(to.at.add(start, to.index(i)), total)

        to.chunks(self.size, to.accumulators - 2, outputs)

    def _extreme(self, a: Value, b: Value, out: Value, downwards: bool) -> None:
        """out[i] = a[i] (sum of b from i on) + b[i] (sum of a beyond i), seen from the end where it begins."""
        to = self.to

        def place(number: Value, held: list[Value]) -> list[Value]:
            beyond_a, from_b = held
            i = self._index(number, downwards)
            own, other = to.load(a, i), to.load(b, i)
            from_b = to.add(from_b, other)
            to.store(to.fma(own, from_b, to.mul(other, beyond_a)), out, i)
            return [to.add(beyond_a, own), from_b]

        to.repeat(self.size, place, [to.number(0.0)] * 2)

    def _index(self, number: Value, downwards: bool) -> Value:
        return self.to.at.sub(self.to.index(self.size - 1), number) if downwards else number

    # Backwards

    def backward(
        self, name: str, arguments: list[Value], gradient: Value, received: list[Value], memory: Value, to_memory: Value
    ) -> None:
        """From the gradient of the output to those of the arguments, stored at `received`.

        READ and WRITE see the memory before them, and bring the gradient of the memory after them, `to_memory`,
        to that of the memory before them. WRITE's own output is a constant.
        """
        to, crop = self.to, self.crop

        def into(place: Value) -> Callable[[Value, Value], None]:
            return lambda i, total: to.store(crop(total), place, i)

        match name, arguments, received:
            case "WRITE", [pointer, value], [to_pointer, to_value]:
                self._write_back(pointer, value, memory, to_memory, to_pointer, to_value)
            case "READ", [pointer], [to_pointer]:
                self._read_back(pointer, gradient, memory, to_memory, to_pointer)
            case "INC", _, [to_a]:
                self._roll(gradient, to_a, -1, crop)
            case "DEC", _, [to_a]:
                self._roll(gradient, to_a, 1, crop)
            case "ADD", [a, b], [to_a, to_b]:
                self._convolve(gradient, self._doubled(b), -1, 1, into(to_a))
                self._convolve(gradient, self._doubled(a), -1, 1, into(to_b))
            case "SUB", [a, b], [to_a, to_b]:
                self._convolve(gradient, self._doubled(a), 1, 1, into(to_b))
                self._convolve(b, self._doubled(gradient), 1, -1, into(to_a))
            case (("MIN" | "MAX"), [a, b], [to_a, to_b]):
                self._extreme_back(a, b, gradient, to_a, to_b, downwards=name == "MIN")
            case "EQUALITY-TEST", [a, b], [to_a, to_b]:
                slope = to.sub(to.load(gradient, 1), to.load(gradient, 0))
                to.each(self.size, lambda i: to.store(crop(to.mul(slope, to.load(b, i))), to_a, i))
                to.each(self.size, lambda i: to.store(crop(to.mul(slope, to.load(a, i))), to_b, i))
            case (("LESS-THAN" | "LESS-OR-EQUAL-THAN"), [a, b], [to_a, to_b]):
                slope = to.sub(to.load(gradient, 1), to.load(gradient, 0))
                inclusive = name == "LESS-OR-EQUAL-THAN"
                self._sums_times(slope, a, to_b, inclusive, downwards=False)
                self._sums_times(slope, b, to_a, inclusive, downwards=True)

    def _read_back(self, pointer: Value, gradient: Value, memory: Value, to_memory: Value, to_pointer: Value) -> None:
        to = self.to

        def cell(i: Value) -> None:
            weight = to.load(pointer, i)
            start = to.at.mul(i, to.index(self.size))
            row, row_gradient = to.row(memory, start), to.row(to_memory, start)

            def values(start: Value, count: int, sums: list[Value]) -> list[Value]:
                results = list(sums)
                for number in range(count):
                    v = to.at.add(start, to.index(number))
                    own = to.load(gradient, v)
                    to.store(to.fma(weight, own, to.load(row_gradient, v)), row_gradient, v)
                    results[number] = to.fma(own, to.load(row, v), results[number])
                return results

            sums = to.chunks(self.size, 4, values, [to.number(0.0)] * 4)
            to.store(self.crop(to.total(sums)), to_pointer, i)

        to.each(self.size, cell, together=1)

    def _write_back(
        self, pointer: Value, value: Value, memory: Value, to_memory: Value, to_pointer: Value, to_value: Value
    ) -> None:
        to = self.to
        to.each(self.size, lambda i: to.store(to.number(0.0), to_pointer, i))

        def values(start: Value, count: int) -> None:
            own_value = to.row(value, start)

            def cell(i: Value, sums: list[Value]) -> list[Value]:
                weight = to.load(pointer, i)
                rest = to.sub(to.number(1.0), weight)
                begin = to.at.add(to.at.mul(i, to.index(self.size)), start)
                row, row_gradient = to.row(memory, begin), to.row(to_memory, begin)
                terms, results = [], []
                for v, total in enumerate(sums):
                    own = to.load(row_gradient, v)
                    terms.append(to.mul(own, to.sub(to.load(own_value, v), to.load(row, v))))
                    results.append(to.fma(weight, own, total))
                    to.store(to.mul(rest, own), row_gradient, v)
                to.store(to.add(to.load(to_pointer, i), to.total(terms)), to_pointer, i)
                return results

            for v, total in enumerate(to.repeat(self.size, cell, [to.number(0.0)] * count)):
                to.store(self.crop(total), to.row(to_value, start), v)

        to.chunks(self.size, to.accumulators // 2, values)
        to.each(self.size, lambda i: to.store(self.crop(to.load(to_pointer, i)), to_pointer, i))

    def _extreme_back(self, a: Value, b: Value, gradient: Value, to_a: Value, to_b: Value, downwards: bool) -> None:
        to, nothing = self.to, self.to.number(0.0)

        def forth(number: Value, held: list[Value]) -> list[Value]:
            beyond_a, from_b = held
            i = self._index(number, downwards)
            own, here = to.load(gradient, i), to.load(b, i)
            from_b = to.add(from_b, here)
            to.store(to.mul(own, from_b), to_a, i)
            to.store(to.mul(own, beyond_a), to_b, i)
            return [to.add(beyond_a, to.load(a, i)), from_b]

        to.repeat(self.size, forth, [nothing, nothing])

        def back(number: Value, held: list[Value]) -> list[Value]:
            from_a, from_b = held  # sums of gradient * b before i, and of gradient * a up to i
            i = self._index(number, not downwards)
            own = to.load(gradient, i)
            to.store(self.crop(to.add(to.load(to_a, i), from_b)), to_a, i)
            from_a = to.fma(own, to.load(a, i), from_a)
            to.store(self.crop(to.add(to.load(to_b, i), from_a)), to_b, i)
            return [from_a, to.fma(own, to.load(b, i), from_b)]

        to.repeat(self.size, back, [nothing, nothing])

    def _sums_times(self, factor: Value, row: Value, out: Value, inclusive: bool, downwards: bool) -> None:
        """out[i] = factor * (sum of the row before i, or up to it)."""
        to = self.to

        def place(number: Value, held: list[Value]) -> list[Value]:
            i = self._index(number, downwards)
            following = to.add(held[0], to.load(row, i))
            to.store(self.crop(to.mul(factor, following if inclusive else held[0])), out, i)
            return [following]

        to.repeat(self.size, place, [to.number(0.0)])
