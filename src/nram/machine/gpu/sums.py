"""What a block does together: the member's weights into shared memory, and at the end their gradients.

The gradient of a layer's weights is a sum over examples and steps of x[k] g[j], which the records hold. A warp takes 32
outputs and 32 inputs of a layer, a lane eight of those and four of these, and goes through all steps of all examples of
the block in their order: the sums stay in registers and are always added in the same order.
"""

from __future__ import annotations

from math import prod

from nram.machine.gpu.frame import Frame, buffer_shapes
from nram.machine.gpu.shape import GROUP, LANES, QUAD, Layer
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

    def places(row: Value, _: list[Value]) -> list[Value]:
        place = to.at.mul(row, to.index(LANES))
        table = to.place(frame.shared, shape.places)
        index = to.at.add(to.lane, to.spread(place))
        to.store_each(to.load_whole(frame.tables.places, place), table, index, whole=True)
        return []

    _shared_out(frame, len(shape.paired_places) // LANES, places)


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
        units = layer.output_tiles * layer.input_tiles
        _shared_out(frame, units, lambda unit, _, number=number: _unit(frame, number, unit), first)
        first += units


def _unit(frame: Frame, number: int, unit: Value) -> list[Value]:
    to, layer = frame.to, frame.shape.layers[number]
    start = to.at.mul(to.at.urem(unit, to.index(layer.input_tiles)), to.index(LANES))
    column = to.at.mul(to.at.udiv(unit, to.index(layer.input_tiles)), to.index(LANES))
    own_inputs = to.at.mul(to.at.and_(to.lane, to.whole(GROUP - 1)), to.whole(QUAD))
    own_outputs = to.at.mul(to.at.lshr(to.lane, to.whole(GROUP.bit_length() - 1)), to.whole(QUAD))
    inputs = to.at.add(own_inputs, to.spread(start))
    outputs = [
        to.at.add(own_outputs, to.spread(to.at.add(column, to.index(half)))) for half in range(0, LANES, LANES // 2)
    ]
    each = to.at.add(to.lane, to.spread(column))
    *sums, alone = _sums(frame, layer, inputs, outputs, each)

    shapes = buffer_shapes(frame.shape)
    rows = [to.at.add(inputs, to.whole(k)) for k in range(QUAD)]
    columns = [to.at.add(output, to.whole(j)) for output in outputs for j in range(QUAD)]
    name = f"gradient{2 * number}"
    begin = to.spread(to.at.mul(frame.block, to.index(prod(shapes[name][1:]))))
    pairs = [(row, own) for row in rows for own in columns]
    for total, (row, own) in zip(sums, pairs, strict=True):
        there = to.at.and_(
            to.at.icmp_signed("<", row, to.whole(layer.inputs)), to.at.icmp_signed("<", own, to.whole(layer.outputs))
        )
        place = to.at.add(to.at.add(begin, own), to.at.mul(row, to.whole(layer.outputs)))
        to.store_each(total, frame.buffers[name], place, there)
    name = f"gradient{2 * number + 1}"
    begin = to.spread(to.at.mul(frame.block, to.index(prod(shapes[name][1:]))))
    once = to.at.and_(
        to.at.icmp_signed("<", each, to.whole(layer.outputs)),
        to.at.icmp_signed("==", to.spread(start), to.whole(0)),
    )
    to.store_each(alone, frame.buffers[name], to.at.add(begin, each), once)
    return []


def _sums(frame: Frame, layer: Layer, inputs: Value, outputs: list[Value], each: Value) -> list[Value]:
    """Of x[k] g[j] for every lane's own inputs and outputs, and of g for the one output `each`."""
    to, shape = frame.to, frame.shape
    left = to.at.sub(to.index(shape.batch), to.at.mul(frame.block, to.index(shape.warps)))
    examples = to.at.select(to.at.icmp_signed("<", left, to.index(shape.warps)), left, to.index(shape.warps))

    def example(number: Value, held: list[Value]) -> list[Value]:
        own = frame.example_of(number)
        _limit, steps = frame.steps(own)
        records, last = frame.storage(own, "records"), to.at.sub(steps, to.index(1))

        def some(step: Value, sums: list[Value]) -> list[Value]:
            loaded = []
            for ahead in range(AT_ONCE):
                here = to.at.add(step, to.index(ahead))
                over = to.at.icmp_signed(">", here, last)
                record = frame.record(records, to.at.select(over, last, here))
                x = to.load_quads(to.place(record, layer.x), inputs)
                gradient = to.place(record, layer.gradient)
                g = [value for output in outputs for value in to.load_quads(gradient, output)]
                loaded.append((to.spread(over), x, g, to.load_each(gradient, each)))
            for beyond, x, g, alone in loaded:
                *totals, total = sums
                products = [(to.choose(beyond, to.nothing, a), b) for a in x for b in g]
                sums = [to.fma(a, b, own) for (a, b), own in zip(products, totals, strict=True)]
                sums.append(to.add(total, to.choose(beyond, to.nothing, alone)))
            return sums

        return to.repeat(steps, some, held, step=AT_ONCE)

    return to.repeat(examples, example, [to.nothing] * (LANES + 1))
