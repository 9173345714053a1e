"""Vector code in LLVM: every value is a vector with one lane per example.

With examples in lanes, whatever is written for one example is written for a whole block of them, and nothing is ever
shuffled between lanes but for the sums over examples at the very end. Addresses are counted in scalars.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from nram.machine.kernels.cpu.shape import BYTES, Precision

I1, I32, I64, POINTER, VOID = ir.IntType(1), ir.IntType(32), ir.IntType(64), ir.PointerType(), ir.VoidType()
SCALARS = {"float32": ir.FloatType(), "float64": ir.DoubleType()}

Value = Any  # an LLVM value: llvmlite does not type them


class Lanes:
    """Appends instructions to one function, on vectors of `width` lanes."""

    def __init__(self, function: ir.Function, precision: Precision, width: int, accumulators: int):
        self.function = function
        self.precision: Precision = precision
        self.width = width
        self.accumulators = accumulators  # vectors that may be held in registers at the same time
        self.scalar = SCALARS[precision]
        self.bytes = BYTES[precision]
        self.vector = ir.VectorType(self.scalar, width)
        self.integers = ir.VectorType(I32, width)
        self.at = ir.IRBuilder(function.append_basic_block("entry"))

    # Numbers

    def number(self, value: float) -> Value:
        """A constant in every lane."""
        return ir.Constant(self.vector, [value] * self.width)

    def whole(self, value: int) -> Value:
        return ir.Constant(self.integers, [value] * self.width)

    def index(self, value: Value | int) -> Value:
        return ir.Constant(I64, value) if isinstance(value, int) else value

    def spread(self, scalar: Value) -> Value:
        """A scalar in every lane."""
        kind = ir.VectorType(scalar.type, self.width)
        one = self.at.insert_element(ir.Constant(kind, ir.Undefined), scalar, ir.Constant(I32, 0))
        return self.at.shuffle_vector(
            one, ir.Constant(kind, ir.Undefined), ir.Constant(ir.VectorType(I32, self.width), [0] * self.width)
        )

    # Memory

    def place(self, pointer: Value, offset: Value | int) -> Value:
        """The address `offset` scalars further on."""
        if isinstance(offset, int) and offset == 0:
            return pointer
        return self.at.gep(pointer, [self.index(offset)], inbounds=True, source_etype=self.scalar)

    def row(self, pointer: Value, number: Value | int, stride: int | None = None) -> Value:
        """The address of a vector in an array of them, `stride` scalars apart (its width, unless told)."""
        stride = self.width if stride is None else stride
        if isinstance(number, int):
            return self.place(pointer, number * stride)
        return self.place(pointer, self.at.mul(number, self.index(stride)))

    def load(self, pointer: Value, number: Value | int = 0) -> Value:
        return self.at.load(self.row(pointer, number), align=self.width * self.bytes, typ=self.vector)

    def store(self, value: Value, pointer: Value, number: Value | int = 0) -> None:
        self.at.store(value, self.row(pointer, number), align=self.width * self.bytes)

    def load_scalar(self, pointer: Value, offset: Value | int = 0) -> Value:
        return self.at.load(self.place(pointer, offset), align=self.bytes, typ=self.scalar)

    def store_scalar(self, value: Value, pointer: Value, offset: Value | int = 0) -> None:
        self.at.store(value, self.place(pointer, offset), align=self.bytes)

    def load_whole(self, pointer: Value, offset: Value | int, kind: ir.Type = I32) -> Value:
        """A 32-bit integer, or a vector of them, from an array of 32-bit integers."""
        address = self.at.gep(pointer, [self.index(offset)], inbounds=True, source_etype=I32)
        return self.at.load(address, align=4, typ=kind)

    def store_whole(self, value: Value, pointer: Value, offset: Value | int) -> None:
        self.at.store(value, self.at.gep(pointer, [self.index(offset)], inbounds=True, source_etype=I32), align=4)

    # Arithmetic

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """a b + c"""
        return self.intrinsic("fma", a, b, c)

    def add(self, a: Value, b: Value) -> Value:
        return self.at.fadd(a, b)

    def sub(self, a: Value, b: Value) -> Value:
        return self.at.fsub(a, b)

    def mul(self, a: Value, b: Value) -> Value:
        return self.at.fmul(a, b)

    def divide(self, a: Value, b: Value) -> Value:
        return self.at.fdiv(a, b)

    def above(self, a: Value, b: Value) -> Value:
        """Whether a > b; not so for a NaN."""
        return self.at.fcmp_ordered(">", a, b)

    def choose(self, condition: Value, yes: Value, no: Value) -> Value:
        return self.at.select(condition, yes, no)

    def at_least(self, a: Value, bound: Value) -> Value:
        """The larger of the two; a NaN in `a` stays one."""
        return self.choose(self.at.fcmp_ordered("<", a, bound), bound, a)

    def at_most(self, a: Value, bound: Value) -> Value:
        return self.choose(self.above(a, bound), bound, a)

    def intrinsic(self, name: str, *arguments: Value) -> Value:
        """An LLVM intrinsic whose arguments and result are vectors like the first argument."""
        kind = arguments[0].type
        letter = "f" if self.precision == "float32" else "d"
        suffix = f"v{self.width}{'f32' if letter == 'f' else 'f64'}"
        full = f"llvm.{name}.{suffix}"
        return self.at.call(self.declared(full, kind, [argument.type for argument in arguments]), arguments)

    def declared(self, name: str, result: ir.Type, arguments: Sequence[ir.Type]) -> ir.Function:
        module = self.function.module
        if name in module.globals:
            return module.globals[name]
        return ir.Function(module, ir.FunctionType(result, arguments), name)

    # Control

    def repeat(
        self,
        count: Value | int,
        body: Callable[[Value, list[Value]], Sequence[Value]],
        carried: Sequence[Value] = (),
        first: Value | int = 0,
        step: int = 1,
    ) -> list[Value]:
        """`body(index, carried) -> carried` for index = first, first + step, ... below `count`, at least once."""
        return counted_loop(self, I64, count, body, carried, first, step)

    def chunks(
        self, count: int, largest: int, body: Callable[..., Sequence[Value] | None], carried: Sequence[Value] = ()
    ) -> list[Value]:
        """`body(start, size)` for parts of `count` of about equal size, as one loop where there are several.

        Where something is carried, it is the body's third argument and its result.
        """
        even = [size for size in range(largest // 2 + 1, largest + 1) if count % size == 0]
        size = even[-1] if even else -(-count // -(-count // largest))
        whole = count // size * size

        def one(start: Value, held: list[Value], size: int = size) -> Sequence[Value]:
            return (body(start, size, held) if carried else body(start, size)) or ()

        results = self.repeat(whole, one, carried, step=size) if whole else list(carried)
        return list(one(self.index(whole), results, count - whole)) if whole < count else results

    def each(self, count: int, body: Callable[[Value], None], together: int = 4) -> None:
        """`body(index)` for index = 0, 1, ... below `count`, some of them written out one after the other."""

        def part(start: Value, size: int) -> None:
            for number in range(size):
                body(self.at.add(start, self.index(number)))

        self.chunks(count, together, part)

    def total(self, vectors: Sequence[Value]) -> Value:
        """The sum of some vectors, added pairwise."""
        terms = list(vectors)
        while len(terms) > 1:
            paired = [self.add(a, b) for a, b in zip(terms[::2], terms[1::2], strict=False)]
            terms = paired + terms[len(paired) * 2 :]
        return terms[0]

    def lane_sums(self, vectors: Sequence[Value]) -> Value:
        """One vector: the sum over the lanes of each of the given ones, in order. As many as a power of two."""
        rows, width = list(vectors), self.width
        held = 1  # how many of the given vectors have partial sums in one vector
        while len(rows) > 1:
            paired = []
            for a, b in zip(rows[::2], rows[1::2], strict=True):
                part = width // held  # lanes of one partial sum
                if part == 1:
                    raise ValueError("more vectors than lanes")
                low = [i for i in range(2 * width) if i % part < part // 2]
                high = [i for i in range(2 * width) if i % part >= part // 2]
                paired.append(self.add(self._pick(a, b, low), self._pick(a, b, high)))
            rows, held = paired, held * 2
        sums = rows[0]
        part = width // held
        while part > 1:
            count = sums.type.count
            low = [i for i in range(count) if i % part < part // 2]
            high = [i for i in range(count) if i % part >= part // 2]
            sums = self.add(self._pick(sums, sums, low), self._pick(sums, sums, high))
            part //= 2
        return sums

    def _pick(self, a: Value, b: Value, places: list[int]) -> Value:
        mask = ir.Constant(ir.VectorType(I32, len(places)), places)
        return self.at.shuffle_vector(a, b, mask)

    def parts(self, vector: Value, size: int) -> list[Value]:
        """A vector cut into vectors of `size` lanes."""
        count = vector.type.count
        return [self._pick(vector, vector, list(range(i, i + size))) for i in range(0, count, size)]


def counted_loop(
    to: Any,
    kind: ir.Type,
    count: Value | int,
    body: Callable[[Value, list[Value]], Sequence[Value]],
    carried: Sequence[Value],
    first: Value | int,
    step: int,
) -> list[Value]:
    """`repeat` of lanes and warps, whose indices are of different kinds."""
    if isinstance(count, int) and isinstance(first, int) and count - first <= step:
        return list(body(to.index(first), list(carried)))
    before = to.at.block
    loop = to.function.append_basic_block("loop")
    to.at.branch(loop)
    to.at.position_at_end(loop)
    index = to.at.phi(kind)
    index.add_incoming(to.index(first), before)
    held = []
    for value in carried:
        phi = to.at.phi(value.type)
        phi.add_incoming(value, before)
        held.append(phi)
    results = list(body(index, list(held)))
    following = to.at.add(index, to.index(step))
    going = to.at.icmp_signed("<", following, to.index(count))
    last = to.at.block
    after = to.function.append_basic_block("after")
    to.at.cbranch(going, loop, after)
    index.add_incoming(following, last)
    for phi, result in zip(held, results, strict=True):
        phi.add_incoming(result, last)
    to.at.position_at_end(after)
    return results
