"""Before the episodes: the member's weights are copied into shared memory. After them, in a launch of its own: the
gradients of the weights are summed.

The gradient of a layer's weights is a sum over examples and steps of x[k] g[j], which the records hold. A warp takes a
tile of a layer's inputs and outputs, of which each lane has four inputs and eight outputs. It goes through all steps of
all examples of a part of the batch. The sums stay in registers, and their terms are always added in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from nram.llvm import Value
from nram.machine.kernels.gpu.arrangement import QUAD
from nram.machine.kernels.gpu.frame import Frame
from nram.machine.kernels.gpu.shape import LANES, Layer, WarpShape

AT_ONCE = (6, 5, 4)  # steps whose records are read at the same time: the one that divides the longest episode best
SUMMING_WARPS = 4  # of a block
LANE_OUTPUTS = 2 * QUAD  # of a lane


# Before


def load_weights(frame: Frame) -> None:
    """Copy this warp's share of the weights; their padding is set to 0."""
    code, shape = frame.code, frame.shape
    for number, layer in enumerate(shape.layers):
        weight, bias = frame.buffers[f"parameter{2 * number}"], frame.buffers[f"parameter{2 * number + 1}"]

        def copy(k: Value, _: list[Value], layer=layer, weight=weight) -> list[Value]:
            source = code.spread(code.at.mul(k, code.index(layer.given)))
            target = code.spread(code.at.add(code.at.mul(k, code.index(layer.stride)), code.index(layer.weight)))
            exists = code.at.icmp_signed("<", code.spread(k), code.whole(layer.inputs))
            for start in range(0, layer.stride, LANES):
                column = code.at.add(code.lane, code.whole(start))
                given, filled = _given(frame, layer, column)
                value = code.load_each(weight, code.at.add(source, given), code.at.and_(exists, filled))
                code.store_each(value, frame.shared, code.at.add(target, column), code.before(layer.stride - start))
            return []

        _shared_out(frame, layer.deep, copy)

        def rest(tile: Value, _: list[Value], layer=layer, bias=bias) -> list[Value]:
            column = code.at.add(code.lane, code.spread(code.at.mul(tile, code.index(LANES))))
            value = code.load_each(bias, *_given(frame, layer, column))
            code.store_each(value, frame.shared, code.at.add(column, code.whole(layer.bias)))
            slack = code.at.add(code.lane, code.whole(layer.weight + layer.deep * layer.stride))
            code.store_each(code.nothing, frame.shared, slack)
            return []

        _shared_out(frame, layer.output_tiles, rest)

    def row(number: Value, _: list[Value]) -> list[Value]:
        place = code.at.mul(number, code.index(LANES))
        index = code.at.add(code.lane, code.spread(place))
        target = code.place(frame.shared, shape.table_place)
        code.store_each(code.load_whole(frame.tables.wires, place), target, index, whole=True)
        return []

    _shared_out(frame, len(shape.table) // LANES, row)


def _given(frame: Frame, layer: Layer, column: Value) -> tuple[Value, Value]:
    """The controller's output that belongs in a column, and whether there is one."""
    code = frame.code
    if layer.outputs == layer.given:
        return column, code.at.icmp_signed("<", column, code.whole(layer.outputs))
    known = code.at.icmp_signed("<", column, code.whole(len(frame.shape.sources)))
    source = code.load_each(frame.tables.sources, column, known, whole=True)
    return source, code.at.and_(known, code.at.icmp_signed(">=", source, code.whole(0)))


def _shared_out(frame: Frame, count: int, body: Callable[[Value, list[Value]], list[Value]]) -> None:
    """`body(index, [])` for the indices below `count` that are this warp's."""
    code = frame.code
    with code.at.if_then(code.at.icmp_signed("<", frame.warp, code.index(count))):
        code.repeat(code.index(count), body, first=frame.warp, step=frame.shape.warps)


# After


@dataclass(frozen=True)
class Tiles:
    """How a layer's weights are divided among warps."""

    layer: Layer

    @property
    def input_lanes(self) -> int:
        """Lanes along the inputs: few where there are few inputs and many outputs."""
        return 4 if self.layer.inputs <= 4 * QUAD and self.layer.outputs > LANES else 8

    @property
    def inputs(self) -> int:
        return self.input_lanes * QUAD

    @property
    def outputs(self) -> int:
        return LANES // self.input_lanes * LANE_OUTPUTS

    @property
    def across(self) -> int:
        return -(-self.layer.inputs // self.inputs)

    @property
    def count(self) -> int:
        return self.across * -(-self.layer.outputs // self.outputs)


def summing_blocks(shape: WarpShape) -> int:
    """The blocks that sum the gradients of one part of a batch."""
    return -(-sum(Tiles(layer).count for layer in shape.layers) // SUMMING_WARPS)


def store_gradients(frame: Frame) -> None:
    """Sum the gradients of the weights: this warp has one tile, for one part of the batch."""
    code = frame.code
    blocks = code.index(summing_blocks(frame.shape))
    part, block = code.at.udiv(frame.block, blocks), code.at.urem(frame.block, blocks)
    own_tile = code.at.add(code.at.mul(block, code.index(SUMMING_WARPS)), frame.warp)  # among the tiles of all layers
    first = 0
    for number, layer in enumerate(frame.shape.layers):
        tiles = Tiles(layer)
        tile = code.at.sub(own_tile, code.index(first))
        with code.at.if_then(code.at.icmp_unsigned("<", tile, code.index(tiles.count))):
            _tile(frame, number, tiles, tile, part)
        first += tiles.count


def _tile(frame: Frame, number: int, tiles: Tiles, tile: Value, part: Value) -> None:
    code, layer = frame.code, tiles.layer
    start = code.at.mul(code.at.urem(tile, code.index(tiles.across)), code.index(tiles.inputs))
    column = code.at.mul(code.at.udiv(tile, code.index(tiles.across)), code.index(tiles.outputs))
    lane_inputs = code.at.mul(code.at.and_(code.lane, code.whole(tiles.input_lanes - 1)), code.whole(QUAD))
    lane_outputs = code.at.mul(
        code.at.lshr(code.lane, code.whole(tiles.input_lanes.bit_length() - 1)), code.whole(QUAD)
    )
    inputs = code.at.add(lane_inputs, code.spread(start))
    halves, rows = range(0, tiles.outputs, tiles.outputs // 2), range(0, tiles.outputs, LANES)
    outputs = [code.at.add(lane_outputs, code.spread(code.at.add(column, code.index(half)))) for half in halves]
    single = [code.at.add(code.lane, code.spread(code.at.add(column, code.index(row)))) for row in rows]
    sums = _sums(frame, layer, part, inputs, outputs, single)

    shapes, names = frame.shape.buffers, [f"gradient{2 * number + k}" for k in range(2)]
    begins = [code.spread(code.at.mul(part, code.index(prod(shapes[name][1:])))) for name in names]
    columns = [code.at.add(output, code.whole(j)) for output in outputs for j in range(QUAD)]
    targets = [_given(frame, layer, index) for index in columns]
    for k in range(QUAD):
        row = code.at.add(inputs, code.whole(k))
        exists = code.at.icmp_signed("<", row, code.whole(layer.inputs))
        begin = code.at.add(begins[0], code.at.mul(row, code.whole(layer.given)))
        for total, (target, there) in zip(sums[k * LANE_OUTPUTS :], targets, strict=False):
            code.store_each(total, frame.buffers[names[0]], code.at.add(begin, target), code.at.and_(exists, there))
    once = code.at.icmp_signed("==", code.spread(start), code.whole(0))
    for total, index in zip(sums[-len(single) :], single, strict=True):
        target, there = _given(frame, layer, index)
        code.store_each(total, frame.buffers[names[1]], code.at.add(begins[1], target), code.at.and_(once, there))


def _sums(
    frame: Frame, layer: Layer, part: Value, inputs: Value, outputs: list[Value], single: list[Value]
) -> list[Value]:
    """The sums of x[k] g[j] for the inputs and outputs of every lane, then those of g for the biases."""
    code, shape = frame.code, frame.shape
    most, at_once = -(-shape.batch // shape.parts), min(AT_ONCE, key=lambda count: -shape.steps % count)
    first = code.at.mul(part, code.index(most))
    left = code.at.sub(code.index(shape.batch), first)
    examples = code.at.select(code.at.icmp_signed("<", left, code.index(most)), left, code.index(most))

    def example(number: Value, held: list[Value]) -> list[Value]:
        index = code.at.add(first, number)
        _limit, steps = frame.steps(index)
        records, last = frame.storage(index, "records"), code.at.sub(steps, code.index(1))

        def some(step: Value, sums: list[Value]) -> list[Value]:
            loaded = []
            for ahead in range(at_once):
                here = code.at.add(step, code.index(ahead))
                over = code.at.icmp_signed(">", here, last)
                record = frame.record(records, code.at.select(over, last, here))
                x = code.load_quads(code.place(record, layer.x), inputs)
                gradient = code.place(record, layer.gradient)
                g = [value for output in outputs for value in code.load_quads(gradient, output)]
                loaded.append((code.spread(over), x, g, [code.load_each(gradient, index) for index in single]))
            for beyond, x, g, alone in loaded:
                x, alone = ([code.choose(beyond, code.nothing, value) for value in row] for row in (x, alone))
                products = [(a, b) for a in x for b in g]
                totals = [code.fma(a, b, total) for (a, b), total in zip(products, sums, strict=False)]
                sums = totals + [
                    code.add(value, total) for value, total in zip(alone, sums[len(totals) :], strict=True)
                ]
            return sums

        return code.repeat(steps, some, held, step=at_once)

    return code.repeat(examples, example, [code.nothing] * (QUAD * LANE_OUTPUTS + len(single)))
