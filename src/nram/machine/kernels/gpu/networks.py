"""The controllers, forwards and backwards, with one warp per example: lanes are outputs, all lanes read the inputs.

In the forward pass a lane reads the weights of its own outputs, several at once where there are many. In the backward
pass it takes every fourth input and an eighth of the outputs, and reads four weights at once. The results of the output
layer are the wires' logits. They go to where the wires lie in shared memory, and their gradients are read from there.
"""

from __future__ import annotations

from nram.llvm import Value
from nram.machine.kernels.gpu.arrangement import GROUP, QUAD
from nram.machine.kernels.gpu.shape import LANES, Layer, WarpShape
from nram.machine.kernels.gpu.warps import Columns, Warps

TILES = 12  # tiles of 32 outputs whose sums are in registers at the same time


class Network:
    """The controller of one kernel, as code."""

    def __init__(self, code: Warps, shape: WarpShape, weights: Value, parts: dict[str, Value]):
        self.code = code
        self.shape = shape
        self.weights = weights  # of the whole block, in shared memory
        self.x, self.wires = parts["room"], parts["wires"]

    def start(self) -> list[Value]:
        """The state before the first step."""
        return self.code.certain(0, 1) if self.shape.states else []

    def forward(self, registers: list[Columns], state: list[Value], record: Value) -> list[Value]:
        """From flags and state to the logits among the wires; returns the next state."""
        code, shape = self.code, self.shape
        flags = code.nothing
        for number, register in enumerate(registers):
            flags = code.choose(code.only(number), code.pick(register, 0), flags)
        code.publish([flags], self.x)
        if shape.states:
            code.publish(state, self.x, shape.registers)
        rows = [code.load(self.x)]
        self._keep(rows, record, shape.layers[0].x)
        rows = self._rectified(shape.layers[0], self._product(shape.layers[0]))
        rows, state = self._second(rows, state, record)
        self._keep(rows, record, shape.layers[2].x)
        code.publish(rows, self.x)
        self._output()
        return self._next_state(record) if shape.states else state

    def _second(self, rows: list[Value], state: list[Value], record: Value) -> tuple[list[Value], list[Value]]:
        """The second layer: its results, and the state after it."""
        layer = self.shape.layers[1]
        self._keep(rows, record, layer.x)
        self.code.publish(rows, self.x)
        return self._rectified(layer, self._product(layer)), state

    def _rectified(self, layer: Layer, rows: list[Value]) -> list[Value]:
        code = self.code
        return [code.part(code.at_least(row, code.nothing), layer.outputs, tile) for tile, row in enumerate(rows)]

    def _next_state(self, record: Value) -> list[Value]:
        """Softmax over the states."""
        code, shape = self.code, self.shape
        logits = code.load(self.wires, shape.arrangement.state_place)
        there = code.before(shape.states)
        top = code.largest([code.choose(there, logits, code.pick([logits], 0))])
        power = code.choose(there, code.exponential(code.sub(logits, top)), code.nothing)
        state = code.divide(power, code.total([power]))
        if shape.gradient:
            code.store(state, record, shape.record["state"])
        return [state]

    def _keep(self, rows: list[Value], record: Value, place: int) -> None:
        if self.shape.gradient:
            self.code.store_columns(rows, record, place)

    def _product(self, layer: Layer) -> list[Value]:
        """b + x W."""
        code = self.code
        weight, results = code.place(self.weights, layer.weight), []
        for start in range(0, layer.output_tiles, TILES):
            tiles = range(start, min(start + TILES, layer.output_tiles))

            def four(k: Value, sums: list[Value], tiles=tiles) -> list[Value]:
                for number, x in enumerate(code.quad(self.x, k)):
                    row = code.place(weight, code.at.mul(code.at.add(k, code.index(number)), code.index(layer.stride)))
                    sums = [
                        code.fma(x, code.load(row, tile * LANES), total)
                        for tile, total in zip(tiles, sums, strict=True)
                    ]
                return sums

            biases = [code.load(self.weights, layer.bias + tile * LANES) for tile in tiles]
            results += code.repeat(layer.deep, four, biases, step=QUAD)
        return results

    def _output(self) -> None:
        """The output layer; its results go to the wires. A lane has up to four neighbouring columns."""
        code, layer = self.code, self.shape.layers[2]
        widths: list[int] = []  # in rows of 32 columns; the last row is separate because it may not be full
        while (left := layer.output_tiles - 1 - sum(widths)) > 0:
            widths.append(next(width for width in (4, 2, 1) if width <= left))
        widths.append(1)
        done = 0
        while widths:
            count = next(n for n in range(len(widths), 0, -1) if sum(widths[:n]) <= TILES)
            self._some_outputs(layer, done, widths[:count])
            done, widths = done + sum(widths[:count]), widths[count:]
        code.sync()

    def _some_outputs(self, layer: Layer, done: int, widths: list[int]) -> None:
        code, lane = self.code, self.code.lane
        starts = [(done + sum(widths[:number])) * LANES for number in range(len(widths))]
        columns = [
            code.at.add(code.at.mul(lane, code.whole(width)), code.whole(start))
            for start, width in zip(starts, widths, strict=True)
        ]
        weight, bias = code.place(self.weights, layer.weight), code.place(self.weights, layer.bias)

        def loaded(row: Value) -> list[Value]:
            return [
                number
                for column, width in zip(columns, widths, strict=True)
                for number in code.load_some(width, row, column)
            ]

        def four(k: Value, sums: list[Value]) -> list[Value]:
            for number, x in enumerate(code.quad(self.x, k)):
                row = code.place(weight, code.at.mul(code.at.add(k, code.index(number)), code.index(layer.stride)))
                sums = [code.fma(x, value, total) for value, total in zip(loaded(row), sums, strict=True)]
            return sums

        results = code.repeat(layer.deep, four, loaded(bias), step=QUAD)
        if done == 0:
            code.sync()
        for column, width in zip(columns, widths, strict=True):
            numbers, results = results[:width], results[width:]
            if width == 1:
                there = code.at.icmp_signed("<", column, code.whole(layer.outputs))
                numbers = [code.choose(there, numbers[0], code.nothing)]  # the padding stays 0 in the backward pass too
            code.store_some(numbers, self.wires, column)

    # Backwards

    def kept(self, record: Value) -> list[Value]:
        """What the backward pass needs of a record: the results of both hidden layers, then the states."""
        code, shape = self.code, self.shape
        rows = [row for layer in shape.layers[1:] for row in code.columns(record, layer.x, layer.input_tiles)]
        return rows + ([code.load(record, shape.record["state"])] if shape.states else [])

    def backward(
        self, to_registers: list[Columns], to_halt: Value, to_state: list[Value], record: Value, kept: list[Value]
    ) -> tuple[list[Columns], list[Value]]:
        """From the gradients of the wires to all others, which the record keeps. Those of the flags are added to those
        of the registers."""
        code, shape = self.code, self.shape
        code.store_uniform(to_halt, self.wires, shape.arrangement.end)
        if shape.states:
            self._state_back(to_state[0], kept[-1])
        code.sync()
        output = shape.layers[2]
        code.store_columns(code.columns(self.wires, 0, output.output_tiles), record, output.gradient)
        rows = self._product_back(output, self.wires)
        rows, to_state = self._second_back(rows, to_state, record, kept)
        rows = self._layer_back(shape.layers[0], rows, record)
        first, found = code.only(0), []
        for number, register in enumerate(to_registers):
            flag = code.choose(first, code.pick(rows, number), code.nothing)
            found.append([code.add(register[0], flag), *register[1:]])
        if not shape.states:
            return found, to_state
        moved = code.permuted(rows, code.at.add(code.lane, code.whole(shape.registers)))
        return found, [code.part(moved, shape.states)]

    def _second_back(
        self, rows: list[Value], to_state: list[Value], record: Value, kept: list[Value]
    ) -> tuple[list[Value], list[Value]]:
        """From the gradient of the second layer's results to that of the first layer's, before the ReLU."""
        second = self.shape.layers[1]
        rows = self._layer_back(second, self._rectified_back(rows, kept[second.input_tiles :]), record)
        return self._rectified_back(rows, kept), to_state

    def _rectified_back(self, rows: list[Value], results: list[Value]) -> list[Value]:
        """The gradient where the result was above 0. In the padding it never is."""
        code = self.code
        return [
            code.choose(code.above(result, code.nothing), row, code.nothing)
            for result, row in zip(results, rows, strict=False)
        ]

    def _layer_back(self, layer: Layer, rows: list[Value], record: Value) -> list[Value]:
        """Store the gradient of a layer's outputs in the record; returns that of its inputs."""
        self.code.store_columns(rows, record, layer.gradient)
        self.code.publish(rows, self.x)
        return self._product_back(layer, self.x)

    def _state_back(self, gradient: Value, state: Value) -> None:
        code, shape = self.code, self.shape
        weighted = code.mul(state, gradient)
        mean = code.total([weighted])
        code.store(code.sub(weighted, code.mul(state, mean)), self.wires, shape.arrangement.state_place)

    def _product_back(self, layer: Layer, gradients: Value) -> list[Value]:
        """x's gradient in rows of lanes, from the gradient of the output in shared memory.

        Lane l has the inputs l % 4, l % 4 + 4, ... and four of 32 outputs. l // 4 says which four, shifted by l % 4 so
        that eight neighbouring lanes read from different banks.
        """
        code = self.code
        weight = code.place(self.weights, layer.weight)
        first = code.at.and_(code.lane, code.whole(QUAD - 1))
        moved = code.at.mul(first, code.whole((2 - layer.stride // QUAD) % GROUP))
        quad = code.at.add(code.at.lshr(code.lane, code.whole(QUAD.bit_length() - 1)), moved)
        column = code.at.mul(code.at.and_(quad, code.whole(GROUP - 1)), code.whole(QUAD))
        rows = [code.at.add(first, code.whole(start)) for start in range(0, layer.deep, QUAD)]
        indices = [code.at.add(code.at.mul(row, code.whole(layer.stride)), column) for row in rows]

        def some(j: Value, sums: list[Value]) -> list[Value]:
            here = code.spread(j)
            gradient = code.load_quads(gradients, code.at.add(column, here))
            for number, index in enumerate(indices):
                for g, w in zip(gradient, code.load_quads(weight, code.at.add(index, here)), strict=True):
                    sums[number] = code.fma(g, w, sums[number])
            return sums

        sums = code.repeat(layer.outputs, some, [code.nothing] * len(indices), step=LANES)
        return [code.lane_sums(sums[start : start + GROUP], QUAD) for start in range(0, len(sums), GROUP)]
