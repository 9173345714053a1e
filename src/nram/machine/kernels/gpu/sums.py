"""What the warps of a block do together: the member's weights into shared memory. And what a launch of its own does:
the gradients of the weights.

The gradient of a layer's weights is a sum over examples and steps of x[k] g[j], which the records hold. A warp takes a
tile of a layer's inputs and outputs, a lane four of those and eight of these, and goes through all steps of all
examples of a part of the batch in their order: the sums stay in registers and are always added in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from nram.machine.kernels.gpu.arrangement import QUAD
from nram.machine.kernels.gpu.frame import Frame, buffer_shapes
from nram.machine.kernels.gpu.shape import LANES, Layer, WarpShape
from nram.machine.kernels.gpu.warps import Value

AT_ONCE = (6, 5, 4)  # steps whose records are read at the same time: what divides the longest episode best
SUMMING_WARPS = 4  # of a block
OWN_OUTPUTS = 2 * QUAD  # of a lane


# Before


def load_weights(frame: Frame) -> None:
    """Copy a share of the weights; what pads them is set to 0."""
    to, shape = frame.to, frame.shape
    for number, layer in enumerate(shape.layers):
        weight, bias = frame.buffers[f"parameter{2 * number}"], frame.buffers[f"parameter{2 * number + 1}"]

        def copy(k: Value, _: list[Value], layer=layer, weight=weight) -> list[Value]:
            source = to.spread(to.at.mul(k, to.index(layer.given)))
            target = to.spread(to.at.add(to.at.mul(k, to.index(layer.stride)), to.index(layer.weight)))
            exists = to.at.icmp_signed("<", to.spread(k), to.whole(layer.inputs))
            for start in range(0, layer.stride, LANES):
                column = to.at.add(to.lane, to.whole(start))
                given, filled = _given(frame, layer, column)
                value = to.load_each(weight, to.at.add(source, given), to.at.and_(exists, filled))
                to.store_each(value, frame.shared, to.at.add(target, column), to.before(layer.stride - start))
            return []

        _shared_out(frame, layer.deep, copy)

        def rest(tile: Value, _: list[Value], layer=layer, bias=bias) -> list[Value]:
            column = to.at.add(to.lane, to.spread(to.at.mul(tile, to.index(LANES))))
            value = to.load_each(bias, *_given(frame, layer, column))
            to.store_each(value, frame.shared, to.at.add(column, to.whole(layer.bias)))
            slack = to.at.add(to.lane, to.whole(layer.weight + layer.deep * layer.stride))
            to.store_each(to.nothing, frame.shared, slack)
            return []

        _shared_out(frame, layer.output_tiles, rest)

    def row(number: Value, _: list[Value]) -> list[Value]:
        place = to.at.mul(number, to.index(LANES))
        index = to.at.add(to.lane, to.spread(place))
        target = to.place(frame.shared, shape.table_place)
        to.store_each(to.load_whole(frame.tables.wires, place), target, index, whole=True)
        return []

    _shared_out(frame, len(shape.table) // LANES, row)


def _given(frame: Frame, layer: Layer, column: Value) -> tuple[Value, Value]:
    """Which of the outputs given stands in a column, and whether one does."""
    to = frame.to
    if layer.outputs == layer.given:
        return column, to.at.icmp_signed("<", column, to.whole(layer.outputs))
    known = to.at.icmp_signed("<", column, to.whole(len(frame.shape.sources)))
    source = to.load_each(frame.tables.sources, column, known, whole=True)
    return source, to.at.and_(known, to.at.icmp_signed(">=", source, to.whole(0)))


def _shared_out(frame: Frame, count: int, body: Callable[[Value, list[Value]], list[Value]]) -> None:
    """`body(number, [])` for the numbers below `count` that are this warp's."""
    to = frame.to
    with to.at.if_then(to.at.icmp_signed("<", frame.warp, to.index(count))):
        to.repeat(to.index(count), body, first=frame.warp, step=frame.shape.warps)


# After


@dataclass(frozen=True)
class Tiles:
    """How a layer's weights are shared out."""

    layer: Layer

    @property
    def input_lanes(self) -> int:
        """Few where there are few inputs and many outputs."""
        return 4 if self.layer.inputs <= 4 * QUAD and self.layer.outputs > LANES else 8

    @property
    def inputs(self) -> int:
        return self.input_lanes * QUAD

    @property
    def outputs(self) -> int:
        return LANES // self.input_lanes * OWN_OUTPUTS

    @property
    def across(self) -> int:
        return -(-self.layer.inputs // self.inputs)

    @property
    def count(self) -> int:
        return self.across * -(-self.layer.outputs // self.outputs)


def summing_blocks(shape: WarpShape) -> int:
    """Of a part of a batch."""
    return -(-sum(Tiles(layer).count for layer in shape.layers) // SUMMING_WARPS)


def store_gradients(frame: Frame) -> None:
    """The gradients of the weights, of which this warp has a tile for a part of the batch."""
    to = frame.to
    blocks = to.index(summing_blocks(frame.shape))
    part, block = to.at.udiv(frame.block, blocks), to.at.urem(frame.block, blocks)
    own = to.at.add(to.at.mul(block, to.index(SUMMING_WARPS)), frame.warp)
    first = 0
    for number, layer in enumerate(frame.shape.layers):
        tiles = Tiles(layer)
        tile = to.at.sub(own, to.index(first))
        with to.at.if_then(to.at.icmp_unsigned("<", tile, to.index(tiles.count))):
            _tile(frame, number, tiles, tile, part)
        first += tiles.count


def _tile(frame: Frame, number: int, tiles: Tiles, tile: Value, part: Value) -> None:
    to, layer = frame.to, tiles.layer
    start = to.at.mul(to.at.urem(tile, to.index(tiles.across)), to.index(tiles.inputs))
    column = to.at.mul(to.at.udiv(tile, to.index(tiles.across)), to.index(tiles.outputs))
    own_inputs = to.at.mul(to.at.and_(to.lane, to.whole(tiles.input_lanes - 1)), to.whole(QUAD))
    own_outputs = to.at.mul(to.at.lshr(to.lane, to.whole(tiles.input_lanes.bit_length() - 1)), to.whole(QUAD))
    inputs = to.at.add(own_inputs, to.spread(start))
    halves, rows = range(0, tiles.outputs, tiles.outputs // 2), range(0, tiles.outputs, LANES)
    outputs = [to.at.add(own_outputs, to.spread(to.at.add(column, to.index(half)))) for half in halves]
    single = [to.at.add(to.lane, to.spread(to.at.add(column, to.index(row)))) for row in rows]
    sums = _sums(frame, layer, part, inputs, outputs, single)

    shapes, names = buffer_shapes(frame.shape), [f"gradient{2 * number + own}" for own in range(2)]
    begins = [to.spread(to.at.mul(part, to.index(prod(shapes[name][1:])))) for name in names]
    columns = [to.at.add(output, to.whole(j)) for output in outputs for j in range(QUAD)]
    places = [_given(frame, layer, own) for own in columns]
    for k in range(QUAD):
        row = to.at.add(inputs, to.whole(k))
        exists = to.at.icmp_signed("<", row, to.whole(layer.inputs))
        begin = to.at.add(begins[0], to.at.mul(row, to.whole(layer.given)))
        for total, (place, there) in zip(sums[k * OWN_OUTPUTS :], places, strict=False):
            to.store_each(total, frame.buffers[names[0]], to.at.add(begin, place), to.at.and_(exists, there))
    once = to.at.icmp_signed("==", to.spread(start), to.whole(0))
    for total, own in zip(sums[-len(single) :], single, strict=True):
        place, there = _given(frame, layer, own)
        to.store_each(total, frame.buffers[names[1]], to.at.add(begins[1], place), to.at.and_(once, there))


def _sums(
    frame: Frame, layer: Layer, part: Value, inputs: Value, outputs: list[Value], single: list[Value]
) -> list[Value]:
    """Of x[k] g[j] for every lane's own inputs and outputs, then of g for single outputs."""
    to, shape = frame.to, frame.shape
    most, at_once = -(-shape.batch // shape.parts), min(AT_ONCE, key=lambda count: -shape.steps % count)
    first = to.at.mul(part, to.index(most))
    left = to.at.sub(to.index(shape.batch), first)
    examples = to.at.select(to.at.icmp_signed("<", left, to.index(most)), left, to.index(most))

    def example(number: Value, held: list[Value]) -> list[Value]:
        own = to.at.add(first, number)
        _limit, steps = frame.steps(own)
        records, last = frame.storage(own, "records"), to.at.sub(steps, to.index(1))

        def some(step: Value, sums: list[Value]) -> list[Value]:
            loaded = []
            for ahead in range(at_once):
                here = to.at.add(step, to.index(ahead))
                over = to.at.icmp_signed(">", here, last)
                record = frame.record(records, to.at.select(over, last, here))
                x = to.load_quads(to.place(record, layer.x), inputs)
                gradient = to.place(record, layer.gradient)
                g = [value for output in outputs for value in to.load_quads(gradient, output)]
                loaded.append((to.spread(over), x, g, [to.load_each(gradient, own) for own in single]))
            for beyond, x, g, alone in loaded:
                x, alone = ([to.choose(beyond, to.nothing, own) for own in row] for row in (x, alone))
                products = [(a, b) for a in x for b in g]
                totals = [to.fma(a, b, own) for (a, b), own in zip(products, sums, strict=False)]
                sums = totals + [to.add(own, total) for own, total in zip(alone, sums[len(totals) :], strict=True)]
            return sums

        return to.repeat(steps, some, held, step=at_once)

    return to.repeat(examples, example, [to.nothing] * (QUAD * OWN_OUTPUTS + len(single)))
