"""Matrix products with examples in lanes.

The forward product, and the product of the backward pass, keep as many outputs as possible in registers and go through
the inputs once. Weights are broadcast straight from memory, so a multiply-add is one instruction. The gradient of the
weights is a sum over examples and steps: a tile of sums stays in registers while all steps go by, and the lanes are
added up at its end.
"""

from __future__ import annotations

from collections.abc import Callable

from nram.llvm import Value
from nram.machine.kernels.cpu.lanes import Lanes
from nram.machine.kernels.cpu.shape import Layer

Finish = Callable[[Value, Value], Value]
"""(index of the output, its value) -> what to store"""


def forward_product(
    code: Lanes, layer: Layer, parameters: tuple[Value, Value], x: Value, y: Value, stride: int, finish: Finish
) -> None:
    """y[j] = finish(bias[j] + sum over k of x[k] weight[k, j]); vectors of x and y are `stride` scalars apart."""
    weight, bias = parameters

    def tile(start: Value, size: int) -> None:
        column = code.place(weight, start)
        offset = code.place(bias, start)

        def accumulate(k: Value, sums: list[Value]) -> list[Value]:
            input_ = code.load(code.row(x, k, stride))
            row = code.row(column, k, layer.outputs)
            return [code.fma(input_, code.spread(code.load_scalar(row, j)), total) for j, total in enumerate(sums)]

        biases = [code.spread(code.load_scalar(offset, j)) for j in range(size)]
        for j, total in enumerate(code.repeat(layer.inputs, accumulate, biases)):
            output = code.at.add(start, code.index(j))
            code.store(finish(output, total), code.row(y, output, stride))

    # Two registers are left for the input and the weight.
    code.chunks(layer.outputs, code.accumulators - 2, tile)


def backward_product(
    code: Lanes, layer: Layer, weight: Value, gradient: Value, stride: int, finish: Callable[..., None]
) -> None:
    """For every input k, finish(k, sum over j of gradient[j] weight[k, j])."""

    def tile(start: Value, size: int) -> None:
        rows = [code.row(weight, code.at.add(start, code.index(k)), layer.outputs) for k in range(size)]

        def accumulate(j: Value, sums: list[Value]) -> list[Value]:
            loaded = code.load(code.row(gradient, j, stride))
            return [
                code.fma(loaded, code.spread(code.load_scalar(row, j)), total)
                for row, total in zip(rows, sums, strict=True)
            ]

        for k, total in enumerate(code.repeat(layer.outputs, accumulate, [code.number(0.0)] * size)):
            finish(code.at.add(start, code.index(k)), total)

    code.chunks(layer.inputs, code.accumulators - 2, tile)


def add_weight_gradient(
    code: Lanes, slots: Value, count: Value, stride: int, layer: Layer, weight_gradient: Value, bias_gradient: Value
) -> None:
    """Add to weight_gradient[k, j] the sum over slots and lanes of x[k] gradient[j], to bias_gradient[j] that of
    gradient[j]. `stride` is the number of vectors in a slot."""
    wide = min(4, code.width)  # outputs of a tile: as many sums as are stored side by side
    deep = code.accumulators // wide

    def tile(first_input: Value, rows: int, first_output: Value, columns: int) -> None:
        inputs = code.row(slots, code.at.add(first_input, code.index(layer.x)))
        gradients = code.row(slots, code.at.add(first_output, code.index(layer.gradient)))

        def accumulate(slot: Value, sums: list[Value]) -> list[Value]:
            start = code.at.mul(slot, code.index(stride))
            right = [code.load(code.row(gradients, start), j) for j in range(columns)]
            here = code.row(inputs, start)
            results = []
            for k in range(rows):
                left = code.load(here, k)
                results += [code.fma(left, right[j], sums[k * columns + j]) for j in range(columns)]
            return results

        sums = code.repeat(count, accumulate, [code.number(0.0)] * (rows * columns))
        for k in range(rows):
            row = code.at.mul(code.at.add(first_input, code.index(k)), code.index(layer.outputs))
            target = code.place(weight_gradient, code.at.add(row, first_output))
            _add_sums(code, sums[k * columns : (k + 1) * columns], target)

    def columns(first_output: Value, size: int) -> None:
        code.chunks(layer.inputs, deep, lambda first, rows: tile(first, rows, first_output, size))

    code.chunks(layer.outputs, wide, columns)

    def biases(first: Value, size: int) -> None:
        gradients = code.row(slots, code.at.add(first, code.index(layer.gradient)))

        def accumulate(slot: Value, sums: list[Value]) -> list[Value]:
            here = code.row(gradients, code.at.mul(slot, code.index(stride)))
            return [code.add(total, code.load(here, j)) for j, total in enumerate(sums)]

        _add_sums(code, code.repeat(count, accumulate, [code.number(0.0)] * size), code.place(bias_gradient, first))

    code.chunks(layer.outputs, wide, biases)


def _add_sums(code: Lanes, vectors: list[Value], target: Value) -> None:
    """Add each vector's sum over lanes to one of the scalars at `target`."""
    power = 1 << (len(vectors) - 1).bit_length()
    sums = code.lane_sums(vectors + [code.number(0.0)] * (power - len(vectors)))
    if power == len(vectors):
        before = code.at.load(target, align=code.bytes, typ=sums.type)
        code.at.store(code.add(before, sums), target, align=code.bytes)
        return
    for index in range(len(vectors)):
        total = code.at.extract_element(sums, code.index(index))
        code.store_scalar(code.add(code.load_scalar(target, index), total), target, index)
