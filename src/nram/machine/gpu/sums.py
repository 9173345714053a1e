"""What a block does together: the member's weights into shared memory, and at the end their gradients.

The gradient of a layer's weights is a sum over examples and steps of x[k] g[j], which the records hold. A warp takes 32
outputs and up to 32 inputs of a layer, a lane each output, and goes through all steps of all examples of the block in
their order: the sums stay in registers and are always added in the same order.
"""

from __future__ import annotations

from math import prod

from nram.machine.gpu.frame import Frame, buffer_shapes
from nram.machine.gpu.shape import LANES, QUAD, Layer
from nram.machine.gpu.warps import Value

AT_ONCE = 4  # steps whose records are read at the same time


def load_weights(frame: Frame) -> None:
    """Copy a share of the weights; what pads them is set to 0."""
    to, shape = frame.to, frame.shape
    for number, layer in enumerate(shape.layers):
        weight, bias = frame.buffers[f"parameter{2 * number}"], frame.buffers[f"parameter{2 * number + 1}"]

        def copy(k: Value, _: list[Value], layer=layer, weight=weight) -> list[Value]:
            source = to.spread(to.at.mul(k, to.index(layer.outputs)))
            target = to.spread(to.at.add(to.at.mul(k, to.index(layer.stride)), to.index(layer.weight)))
            exists = to.at.icmp_signed("<", to.spread(k), to.whole(layer.inputs))
            for start in range(0, layer.stride, LANES):
                column = to.at.add(to.lane, to.whole(start))
                filled = to.at.and_(exists, to.at.icmp_signed("<", column, to.whole(layer.outputs)))
                value = to.load_each(weight, to.at.add(source, column), filled)
                to.store_each(value, frame.shared, to.at.add(target, column), to.before(layer.stride - start))
            return []

        _shared_out(frame, layer.deep, copy)

        def rest(tile: Value, _: list[Value], layer=layer, bias=bias) -> list[Value]:
            column = to.at.add(to.lane, to.spread(to.at.mul(tile, to.index(LANES))))
            value = to.load_each(bias, column, to.at.icmp_signed("<", column, to.whole(layer.outputs)))
            to.store_each(value, frame.shared, to.at.add(column, to.whole(layer.bias)))
            slack = to.at.add(to.lane, to.whole(layer.weight + layer.deep * layer.stride))
            to.store_each(to.nothing, frame.shared, slack)
            return []

        _shared_out(frame, layer.output_tiles, rest)


def _shared_out(frame: Frame, count: int, body, first: int = 0) -> None:
    """`body(number, [])` for the numbers below `count` that are this warp's; the first is that of warp `first`."""
    to, warps = frame.to, frame.shape.warps
    own = to.at.urem(to.at.add(frame.warp, to.index(-first % warps)), to.index(warps))
    with to.at.if_then(to.at.icmp_signed("<", own, to.index(count))):
        to.repeat(to.index(count), body, first=own, step=warps)


def store_gradients(frame: Frame) -> None:
    """A share of the gradients of the weights."""
    first = 0
    for number, layer in enumerate(frame.shape.layers):
        chunks = layer.input_tiles
        units = layer.output_tiles * chunks
        _shared_out(frame, units, lambda unit, _, number=number: _unit(frame, number, unit), first)
        first += units


def _unit(frame: Frame, number: int, unit: Value) -> list[Value]:
    to, layer = frame.to, frame.shape.layers[number]
    chunks = layer.input_tiles
    deep = min(LANES, layer.deep)
    tile = to.at.udiv(unit, to.index(chunks))
    start = to.at.mul(to.at.urem(unit, to.index(chunks)), to.index(LANES))
    column = to.at.mul(tile, to.index(LANES))
    sums = _sums(frame, layer, start, column, deep)
    lane = to.at.add(to.lane, to.spread(column))
    exists = to.at.icmp_signed("<", lane, to.whole(layer.outputs))
    shapes = buffer_shapes(frame.shape)

    def place(name: str, row: Value) -> Value:
        """Lanes of a row of this block's part of a gradient."""
        begin = to.at.mul(frame.block, to.index(prod(shapes[name][1:])))
        return to.at.add(lane, to.spread(to.at.add(begin, to.at.mul(row, to.index(layer.outputs)))))

    name = f"gradient{2 * number}"
    for k in range(deep):
        row = to.at.add(start, to.index(k))
        there = to.at.and_(exists, to.at.icmp_signed("<", to.spread(row), to.whole(layer.inputs)))
        to.store_each(sums[k], frame.buffers[name], place(name, row), there)
    name = f"gradient{2 * number + 1}"
    once = to.at.and_(exists, to.at.icmp_signed("==", to.spread(start), to.whole(0)))
    to.store_each(sums[deep], frame.buffers[name], place(name, to.index(0)), once)
    return []


def _sums(frame: Frame, layer: Layer, start: Value, column: Value, deep: int) -> list[Value]:
    """Of x[k] g for `deep` inputs from `start` on, and of g."""
    to, shape = frame.to, frame.shape
    left = to.at.sub(to.index(shape.batch), to.at.mul(frame.block, to.index(shape.warps)))
    examples = to.at.select(to.at.icmp_signed("<", left, to.index(shape.warps)), left, to.index(shape.warps))

    def example(number: Value, held: list[Value]) -> list[Value]:
        own = frame.example_of(number)
        _limit, steps = frame.steps(own)
        records, last = frame.storage(own, "records"), to.at.sub(steps, to.index(1))

        def some(step: Value, sums: list[Value]) -> list[Value]:
            for ahead in range(AT_ONCE):
                here = to.at.add(step, to.index(ahead))
                over = to.at.icmp_signed(">", here, last)
                record = frame.record(records, to.at.select(over, last, here))
                gradient = to.load(to.place(record, column), layer.gradient)
                gradient = to.choose(to.at.icmp_signed(">", to.spread(here), to.spread(last)), to.nothing, gradient)
                begin = to.place(record, start)
                x = [own for k in range(0, deep, QUAD) for own in to.quad(begin, layer.x + k)]
                sums = [to.fma(own, gradient, total) for own, total in zip(x, sums, strict=False)] + [
                    to.add(sums[-1], gradient)
                ]
            return sums

        return to.repeat(steps, some, held, step=AT_ONCE)

    return to.repeat(examples, example, [to.nothing] * (deep + 1))
