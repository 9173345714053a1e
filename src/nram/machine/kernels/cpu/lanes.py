"""Vector code in LLVM: every value is a vector with one lane per example.

Code for one example thereby is code for a whole block of examples. Lanes never exchange anything, except in the sums
over examples at the very end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from nram.llvm import I32, Value
from nram.machine.kernels.common.code import WORD, Code
from nram.machine.kernels.common.specification import Precision


class Lanes(Code):
    """Appends instructions to one function, on vectors of `width` lanes."""

    def __init__(self, function: ir.Function, precision: Precision, width: int, accumulators: int):
        super().__init__(function, precision, width)
        self.width = width
        self.accumulators = accumulators  # vectors that may be held in registers at the same time

    # Memory

    def row(self, pointer: Value, number: Value | int, stride: int | None = None) -> Value:
        """The address of a vector in an array of vectors that lie `stride` scalars apart, by default their width."""
        stride = self.width if stride is None else stride
        if isinstance(number, int):
            return self.place(pointer, number * stride)
        return self.place(pointer, self.at.mul(number, self.index(stride)))

    def load(self, pointer: Value, number: Value | int = 0) -> Value:
        return self.at.load(self.row(pointer, number), align=self.width * self.bytes, typ=self.vector)

    def store(self, value: Value, pointer: Value, number: Value | int = 0) -> None:
        self.at.store(value, self.row(pointer, number), align=self.width * self.bytes)

    def load_whole(self, pointer: Value, offset: Value | int) -> Value:
        """A 32-bit integer from an array of them."""
        return self.load_scalar(pointer, offset, I32)

    def store_whole(self, value: Value, pointer: Value, offset: Value | int) -> None:
        """A 32-bit integer, or a vector of them, into an array of 32-bit integers."""
        self.at.store(value, self.place(pointer, offset, I32), align=WORD)

    # Control

    def chunks(
        self, count: int, largest: int, body: Callable[..., Sequence[Value] | None], carried: Sequence[Value] = ()
    ) -> list[Value]:
        """`body(start, size)` for parts of `count` of about equal size, as one loop where there are several.

        Where something is carried, it is the body's third argument and its result.
        """
        even = [size for size in range(largest // 2 + 1, largest + 1) if count % size == 0]
        size = even[-1] if even else -(-count // -(-count // largest))
        whole = count // size * size

        def one(start: Value, carried_here: list[Value], size: int = size) -> Sequence[Value]:
            return (body(start, size, carried_here) if carried else body(start, size)) or ()

        results = self.repeat(whole, one, carried, step=size) if whole else list(carried)
        return list(one(self.index(whole), results, count - whole)) if whole < count else results

    def each(self, count: int, body: Callable[[Value], None], together: int = 4) -> None:
        """`body(index)` for index = 0, 1, ... below `count`, a few of them written out one after the other."""

        def part(start: Value, size: int) -> None:
            for number in range(size):
                body(self.at.add(start, self.index(number)))

        self.chunks(count, together, part)

    # Sums

    def total(self, vectors: Sequence[Value]) -> Value:
        """The sum of some vectors, added pairwise: a shorter chain of dependent additions than one after the other."""
        terms = list(vectors)
        while len(terms) > 1:
            paired = [self.add(a, b) for a, b in zip(terms[::2], terms[1::2], strict=False)]
            terms = paired + terms[len(paired) * 2 :]
        return terms[0]

    def lane_sums(self, vectors: Sequence[Value]) -> Value:
        """One vector: for each of the given vectors, in order, the sum over its lanes.

        There must be a power of two of them, at most as many as lanes. Two vectors at a time are folded into one: its
        halves, or quarters and so on, hold partial sums of either. This takes one shuffle per vector instead of one for
        every halving of every vector.
        """
        rows, part = list(vectors), self.width  # `part`: lanes of one partial sum
        if len(rows) > part:
            raise ValueError("more vectors than lanes")
        while len(rows) > 1:
            rows = [self._halved(a, b, part) for a, b in zip(rows[::2], rows[1::2], strict=True)]
            part //= 2
        sums = rows[0]
        while part > 1:
            sums = self._halved(sums, None, part)
            part //= 2
        return sums

    def _halved(self, a: Value, b: Value | None, part: int) -> Value:
        """The sums of the lower and the upper half of every `part` lanes of a, then of b."""
        lanes = range(a.type.count * (1 if b is None else 2))
        other = a if b is None else b
        low = self._pick(a, other, [lane for lane in lanes if lane % part < part // 2])
        return self.add(low, self._pick(a, other, [lane for lane in lanes if lane % part >= part // 2]))

    def _pick(self, a: Value, b: Value, lanes: list[int]) -> Value:
        return self.at.shuffle_vector(a, b, ir.Constant(ir.VectorType(I32, len(lanes)), lanes))
