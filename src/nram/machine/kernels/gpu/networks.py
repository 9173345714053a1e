"""The controllers, forwards and backwards, a warp an example: lanes are outputs, inputs are read by all lanes.

Going forwards a lane reads the weights of its own outputs, several at once where they are many. Going backwards it
takes every fourth input and an eighth of the outputs, and reads four weights at once. The output layer's results are
the wires as they lie in shared memory, and their gradients are read there.
"""

from __future__ import annotations

from nram.machine.kernels.gpu.arrangement import GROUP, QUAD
from nram.machine.kernels.gpu.shape import LANES, Layer, WarpShape
from nram.machine.kernels.gpu.warps import Columns, Value, Warps

TILES = 12  # of 32 outputs whose sums are held in registers at the same time


class Network:
    """The controller of one kernel, as code."""

    def __init__(self, to: Warps, shape: WarpShape, weights: Value, own: dict[str, Value]):
        self.to = to
        self.shape = shape
        self.weights = weights  # of the whole block, in shared memory
        self.x, self.wires = own["room"], own["wires"]

    def start(self) -> list[Value]:
        """The state before the first step."""
        return self.to.certain(0, 1) if self.shape.states else []

    def forward(self, registers: list[Columns], state: list[Value], record: Value) -> list[Value]:
        """From flags and state to the logits among the wires; returns the next state."""
        to, shape = self.to, self.shape
        flags = to.nothing
        for number, register in enumerate(registers):
            flags = to.choose(to.only(number), to.pick(register, 0), flags)
        to.publish([flags], self.x)
        if shape.states:
            to.publish(state, self.x, shape.registers)
        rows = [to.load(self.x)]
        self._keep(rows, record, shape.layers[0].x)
        rows = self._rectified(shape.layers[0], self._product(shape.layers[0]))
        rows, state = self._second(rows, state, record)
        self._keep(rows, record, shape.layers[2].x)
        to.publish(rows, self.x)
        self._output()
        return self._next_state(record) if shape.states else state

    def _second(self, rows: list[Value], state: list[Value], record: Value) -> tuple[list[Value], list[Value]]:
        """The layer before the output: its results, and the state after it."""
        layer = self.shape.layers[1]
        self._keep(rows, record, layer.x)
        self.to.publish(rows, self.x)
        return self._rectified(layer, self._product(layer)), state

    def _rectified(self, layer: Layer, rows: list[Value]) -> list[Value]:
        to = self.to
        return [to.part(to.at_least(row, to.nothing), layer.outputs, tile) for tile, row in enumerate(rows)]

    def _next_state(self, record: Value) -> list[Value]:
        """Softmax over the states."""
        to, shape = self.to, self.shape
        logits = to.load(self.wires, shape.arrangement.state_place)
        there = to.before(shape.states)
        top = to.largest([to.choose(there, logits, to.pick([logits], 0))])
        power = to.choose(there, to.exponential(to.sub(logits, top)), to.nothing)
        state = to.divide(power, to.total([power]))
        if shape.gradient:
            to.store(state, record, shape.record["state"])
        return [state]

    def _keep(self, rows: list[Value], record: Value, place: int) -> None:
        if self.shape.gradient:
            self.to.store_columns(rows, record, place)

    def _product(self, layer: Layer) -> list[Value]:
        """b + x W."""
        to = self.to
        weight, results = to.place(self.weights, layer.weight), []
        for start in range(0, layer.output_tiles, TILES):
            tiles = range(start, min(start + TILES, layer.output_tiles))

            def four(k: Value, sums: list[Value], tiles=tiles) -> list[Value]:
                for number, x in enumerate(to.quad(self.x, k)):
                    row = to.place(weight, to.at.mul(to.at.add(k, to.index(number)), to.index(layer.stride)))
                    sums = [
                        to.fma(x, to.load(row, tile * LANES), total) for tile, total in zip(tiles, sums, strict=True)
                    ]
                return sums

            biases = [to.load(self.weights, layer.bias + tile * LANES) for tile in tiles]
            results += to.repeat(layer.deep, four, biases, step=QUAD)
        return results

    def _output(self) -> None:
        """The output layer, whose results go to the wires: a lane has up to four columns in a row."""
        to, layer = self.to, self.shape.layers[2]
        widths: list[int] = []  # in rows of 32 columns; the last row is on its own, since it may not be full
        while (left := layer.output_tiles - 1 - sum(widths)) > 0:
            widths.append(next(width for width in (4, 2, 1) if width <= left))
        widths.append(1)
        done = 0
        while widths:
            count = next(n for n in range(len(widths), 0, -1) if sum(widths[:n]) <= TILES)
            self._some_outputs(layer, done, widths[:count])
            done, widths = done + sum(widths[:count]), widths[count:]
        to.sync()

    def _some_outputs(self, layer: Layer, done: int, widths: list[int]) -> None:
        to, lane = self.to, self.to.lane
        starts = [(done + sum(widths[:number])) * LANES for number in range(len(widths))]
        columns = [
            to.at.add(to.at.mul(lane, to.whole(width)), to.whole(start))
            for start, width in zip(starts, widths, strict=True)
        ]
        weight, bias = to.place(self.weights, layer.weight), to.place(self.weights, layer.bias)

        def four(k: Value, sums: list[Value]) -> list[Value]:
            for number, x in enumerate(to.quad(self.x, k)):
                row = to.place(weight, to.at.mul(to.at.add(k, to.index(number)), to.index(layer.stride)))
                own = [
                    value
                    for column, width in zip(columns, widths, strict=True)
                    for value in to.load_some(width, row, column)
                ]
                sums = [to.fma(x, value, total) for value, total in zip(own, sums, strict=True)]
            return sums

        begin = [
            value for column, width in zip(columns, widths, strict=True) for value in to.load_some(width, bias, column)
        ]
        results = to.repeat(layer.deep, four, begin, step=QUAD)
        if done == 0:
            to.sync()
        for column, width in zip(columns, widths, strict=True):
            own, results = results[:width], results[width:]
            if width == 1:
                there = to.at.icmp_signed("<", column, to.whole(layer.outputs))
                own = [to.choose(there, own[0], to.nothing)]  # what follows stays 0 in the backward pass too
            to.store_some(own, self.wires, column)

    # Backwards

    def kept(self, record: Value) -> list[Value]:
        """What the backward pass needs of a record: the results of both hidden layers, then the states."""
        to, shape = self.to, self.shape
        rows = [row for layer in shape.layers[1:] for row in to.columns(record, layer.x, layer.input_tiles)]
        return rows + ([to.load(record, shape.record["state"])] if shape.states else [])

    def backward(
        self, to_registers: list[Columns], to_halt: Value, to_state: list[Value], record: Value, kept: list[Value]
    ) -> tuple[list[Columns], list[Value]]:
        """From the gradients among the wires to all others, kept in the record; those of the flags are added to the
        registers'."""
        to, shape = self.to, self.shape
        to.store_uniform(to_halt, self.wires, shape.arrangement.end)
        if shape.states:
            self._state_back(to_state[0], kept[-1])
        to.sync()
        output = shape.layers[2]
        to.store_columns(to.columns(self.wires, 0, output.output_tiles), record, output.gradient)
        rows = self._product_back(output, self.wires)
        rows, to_state = self._second_back(rows, to_state, record, kept)
        rows = self._layer_back(shape.layers[0], rows, record)
        first, found = to.only(0), []
        for number, register in enumerate(to_registers):
            flag = to.choose(first, to.pick(rows, number), to.nothing)
            found.append([to.add(register[0], flag), *register[1:]])
        if not shape.states:
            return found, to_state
        moved = to.permuted(rows, to.at.add(to.lane, to.whole(shape.registers)))
        return found, [to.part(moved, shape.states)]

    def _second_back(
        self, rows: list[Value], to_state: list[Value], record: Value, kept: list[Value]
    ) -> tuple[list[Value], list[Value]]:
        """From the gradient of its results to that of the first layer's, before they were rectified."""
        second = self.shape.layers[1]
        rows = self._layer_back(second, self._rectified_back(rows, kept[second.input_tiles :]), record)
        return self._rectified_back(rows, kept), to_state

    def _rectified_back(self, rows: list[Value], results: list[Value]) -> list[Value]:
        """The gradient where the result was above 0, which it is nowhere in the padding."""
        to = self.to
        return [to.choose(to.above(own, to.nothing), row, to.nothing) for own, row in zip(results, rows, strict=False)]

    def _layer_back(self, layer: Layer, rows: list[Value], record: Value) -> list[Value]:
        """Keep the gradient of a layer's outputs; returns that of its inputs."""
        self.to.store_columns(rows, record, layer.gradient)
        self.to.publish(rows, self.x)
        return self._product_back(layer, self.x)

    def _state_back(self, gradient: Value, state: Value) -> None:
        to, shape = self.to, self.shape
        weighted = to.mul(state, gradient)
        mean = to.total([weighted])
        to.store(to.sub(weighted, to.mul(state, mean)), self.wires, shape.arrangement.state_place)

    def _product_back(self, layer: Layer, gradients: Value) -> list[Value]:
        """x's gradient in rows of lanes, from that of the output in shared memory.

        Lane l has the inputs l % 4, l % 4 + 4, ... and four of 32 outputs, which of them by l // 4, moved on by l % 4
        so that eight lanes in a row read from different banks."""
        to = self.to
        weight = to.place(self.weights, layer.weight)
        first = to.at.and_(to.lane, to.whole(QUAD - 1))
        moved = to.at.mul(first, to.whole((2 - layer.stride // QUAD) % GROUP))
        quad = to.at.add(to.at.lshr(to.lane, to.whole(QUAD.bit_length() - 1)), moved)
        column = to.at.mul(to.at.and_(quad, to.whole(GROUP - 1)), to.whole(QUAD))
        rows = [to.at.add(first, to.whole(start)) for start in range(0, layer.deep, QUAD)]
        indices = [to.at.add(to.at.mul(row, to.whole(layer.stride)), column) for row in rows]

        def some(j: Value, sums: list[Value]) -> list[Value]:
            here = to.spread(j)
            gradient = to.load_quads(gradients, to.at.add(column, here))
            for number, index in enumerate(indices):
                for own, other in zip(gradient, to.load_quads(weight, to.at.add(index, here)), strict=True):
                    sums[number] = to.fma(own, other, sums[number])
            return sums

        sums = to.repeat(layer.outputs, some, [to.nothing] * len(indices), step=LANES)
        return [to.lane_sums(sums[start : start + GROUP], QUAD) for start in range(0, len(sums), GROUP)]
