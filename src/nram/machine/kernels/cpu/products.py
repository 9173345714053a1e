"""Matrix products with examples in lanes.

The forward product and the one of the backward pass hold as many outputs as there are registers and go through the
inputs once; weights are broadcast straight from memory, so that a multiply-add is one instruction. The gradient of the
weights is a sum over examples and steps: a tile of sums stays in registers while all steps go by, and the lanes are
added at its end.
"""

from __future__ import annotations

from collections.abc import Callable

from nram.machine.kernels.cpu.lanes import Lanes, Value

Finish = Callable[[Value, Value], Value]
"""(number of the output, its value) -> what to store"""


def forward_product(
    to: Lanes, x: Value, inputs: int, weight: Value, bias: Value, outputs: int, y: Value, stride: int, finish: Finish
) -> None:
    """y[j] = finish(bias[j] + sum over k of x[k] weight[k, j]); vectors of x and y are `stride` scalars apart."""

    def tile(start: Value, size: int) -> None:
        column = to.place(weight, start)
        offset = to.place(bias, start)

        def accumulate(k: Value, sums: list[Value]) -> list[Value]:
            held = to.load(to.row(x, k, stride))
            row = to.row(column, k, outputs)
            return [to.fma(held, to.spread(to.load_scalar(row, j)), total) for j, total in enumerate(sums)]

        sums = to.repeat(inputs, accumulate, [to.spread(to.load_scalar(offset, j)) for j in range(size)])
        for j, total in enumerate(sums):
            number = to.at.add(start, to.index(j))
            to.store(finish(number, total), to.row(y, number, stride))

    to.chunks(outputs, to.accumulators - 2, tile)


def backward_product(
    to: Lanes, gradient: Value, outputs: int, weight: Value, inputs: int, stride: int, finish: Callable[..., None]
) -> None:
    """For every input k, finish(k, sum over j of gradient[j] weight[k, j])."""

    def tile(start: Value, size: int) -> None:
        rows = [to.row(weight, to.at.add(start, to.index(k)), outputs) for k in range(size)]

        def accumulate(j: Value, sums: list[Value]) -> list[Value]:
            held = to.load(to.row(gradient, j, stride))
            return [
                to.fma(held, to.spread(to.load_scalar(row, j)), total) for row, total in zip(rows, sums, strict=True)
            ]

        sums = to.repeat(outputs, accumulate, [to.number(0.0)] * size)
        for k, total in enumerate(sums):
            finish(to.at.add(start, to.index(k)), total)

    to.chunks(inputs, to.accumulators - 2, tile)


def add_weight_gradient(
    to: Lanes,
    slots: Value,
    count: Value,
    stride: int,
    x: int,
    inputs: int,
    gradient: int,
    outputs: int,
    weight_gradient: Value,
    bias_gradient: Value,
) -> None:
    """Add sum over slots and lanes of x[k] gradient[j] to weight_gradient[k, j], and of gradient[j] to the bias's.

    `stride` is the number of vectors in a slot, `x` and `gradient` are places in it.
    """
    wide = min(4, to.width)  # outputs of a tile: as many sums as are stored side by side
    deep = to.accumulators // wide

    def tile(first_input: Value, rows: int, first_output: Value, columns: int) -> None:
        own_x = to.row(slots, to.at.add(first_input, to.index(x)))
        own_gradient = to.row(slots, to.at.add(first_output, to.index(gradient)))

        def accumulate(slot: Value, sums: list[Value]) -> list[Value]:
            here = to.at.mul(slot, to.index(stride))
            right = [to.load(to.row(own_gradient, here), j) for j in range(columns)]
            place = to.row(own_x, here)
            results = []
            for k in range(rows):
                left = to.load(place, k)
                results += [to.fma(left, right[j], sums[k * columns + j]) for j in range(columns)]
            return results

        sums = to.repeat(count, accumulate, [to.number(0.0)] * (rows * columns))
        for k in range(rows):
            row = to.at.mul(to.at.add(first_input, to.index(k)), to.index(outputs))
            place = to.place(weight_gradient, to.at.add(row, first_output))
            _add_sums(to, sums[k * columns : (k + 1) * columns], place)

    def columns(first_output: Value, size: int) -> None:
        to.chunks(inputs, deep, lambda first, rows: tile(first, rows, first_output, size))

    to.chunks(outputs, wide, columns)

    def biases(first: Value, size: int) -> None:
        own = to.row(slots, to.at.add(first, to.index(gradient)))

        def accumulate(slot: Value, sums: list[Value]) -> list[Value]:
            place = to.row(own, to.at.mul(slot, to.index(stride)))
            return [to.add(total, to.load(place, j)) for j, total in enumerate(sums)]

        _add_sums(to, to.repeat(count, accumulate, [to.number(0.0)] * size), to.place(bias_gradient, first))

    to.chunks(outputs, wide, biases)


def _add_sums(to: Lanes, vectors: list[Value], place: Value) -> None:
    """Add each vector's sum over lanes to one of the scalars at `place`."""
    power = 1 << (len(vectors) - 1).bit_length()
    sums = to.lane_sums(vectors + [to.number(0.0)] * (power - len(vectors)))
    if power == len(vectors):
        there = to.at.load(place, align=to.bytes, typ=sums.type)
        to.at.store(to.add(there, sums), place, align=to.bytes)
        return
    for number in range(len(vectors)):
        own = to.at.extract_element(sums, to.index(number))
        to.store_scalar(to.add(to.load_scalar(place, number), own), place, number)
