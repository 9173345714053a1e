"""The controllers, forwards and backwards, a warp an example: lanes are outputs, inputs are read by all lanes.

Going forwards a lane reads the weight of its own output, going backwards that of its own input. The output layer's
results go to their places among the wires by a table, and their gradients come from there.
"""

from __future__ import annotations

from nram.machine.gpu.shape import LANES, QUAD, Layer, WarpShape
from nram.machine.gpu.warps import Columns, Value, Warps

TILES = 12  # of 32 outputs whose sums are held in registers at the same time


class Network:
    """The controller of one kernel, as code."""

    def __init__(self, to: Warps, shape: WarpShape, weights: Value, own: dict[str, Value], places: Value):
        self.to = to
        self.shape = shape
        self.weights = weights  # of the whole block, in shared memory
        self.x, self.wires, self.linear = own["x"], own["wires"], own["received"]
        self.places = places  # a table: of every output among the wires

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
        results = self._product(shape.layers[2])
        to.sync()
        for tile, row in enumerate(results):
            place = to.load_whole(self.places, tile * LANES)
            to.store_each(row, self.wires, place, to.at.icmp_signed(">=", place, to.whole(0)))
        to.sync()
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
        logits = to.load(self.wires, shape.state_place)
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

    # Backwards

    def backward(
        self, to_registers: list[Columns], to_halt: Value, to_state: list[Value], record: Value
    ) -> tuple[list[Columns], list[Value]]:
        """From the gradients among the wires to all others, kept in the record; those of the flags are added to the
        registers'."""
        to, shape = self.to, self.shape
        to.store_uniform(to_halt, self.wires, shape.halt_place)
        if shape.states:
            self._state_back(to_state[0], record)
        to.sync()
        rows = []
        for tile in range(shape.layers[2].output_tiles):
            place = to.load_whole(self.places, tile * LANES)
            rows.append(to.load_each(self.wires, place, to.at.icmp_signed(">=", place, to.whole(0))))
        rows = self._layer_back(shape.layers[2], rows, record)
        rows, to_state = self._second_back(rows, to_state, record)
        rows = self._layer_back(shape.layers[0], rows, record)
        first, found = to.only(0), []
        for number, register in enumerate(to_registers):
            flag = to.choose(first, to.pick(rows, number), to.nothing)
            found.append([to.add(register[0], flag), *register[1:]])
        if not shape.states:
            return found, to_state
        moved = to.permuted(rows, to.at.add(to.lane, to.whole(shape.registers)))
        return found, [to.part(moved, shape.states)]

    def _second_back(self, rows: list[Value], to_state: list[Value], record: Value) -> tuple[list[Value], list[Value]]:
        """From the gradient of its results to that of the first layer's, before they were rectified."""
        last, second = self.shape.layers[2], self.shape.layers[1]
        rows = self._layer_back(second, self._rectified_back(rows, record, last.x), record)
        return self._rectified_back(rows, record, second.x), to_state

    def _rectified_back(self, rows: list[Value], record: Value, place: int) -> list[Value]:
        """The gradient where the result was above 0, which it is nowhere in the padding."""
        to = self.to
        results = to.columns(record, place, len(rows))
        return [to.choose(to.above(own, to.nothing), row, to.nothing) for own, row in zip(results, rows, strict=True)]

    def _layer_back(self, layer: Layer, rows: list[Value], record: Value) -> list[Value]:
        """Keep the gradient of a layer's outputs; returns that of its inputs."""
        self.to.store_columns(rows, record, layer.gradient)
        self.to.publish(rows, self.linear)
        return self._product_back(layer)

    def _state_back(self, gradient: Value, record: Value) -> None:
        to, shape = self.to, self.shape
        state = to.load(record, shape.record["state"])
        weighted = to.mul(state, gradient)
        mean = to.total([weighted])
        to.store(to.sub(weighted, to.mul(state, mean)), self.wires, shape.state_place)

    def _product_back(self, layer: Layer) -> list[Value]:
        """x's gradient in rows of lanes, from that of the output in `linear`."""
        to = self.to
        weight, last = to.place(self.weights, layer.weight), layer.deep - 1
        indices = []
        for tile in range(layer.input_tiles):
            row = to.at.add(to.lane, to.whole(tile * LANES))
            row = to.choose(to.at.icmp_signed("<", row, to.whole(last)), row, to.whole(last))
            indices.append(to.at.mul(row, to.whole(layer.stride)))

        def eight(j: Value, sums: list[Value]) -> list[Value]:
            second = to.at.add(j, to.index(QUAD))
            for number, gradient in enumerate(to.quad(self.linear, j) + to.quad(self.linear, second)):
                column = to.place(weight, to.at.add(j, to.index(number)))
                sums = [
                    to.fma(gradient, to.load_each(column, index), total)
                    for index, total in zip(indices, sums, strict=True)
                ]
            return sums

        return to.repeat(layer.outputs, eight, [to.nothing] * layer.input_tiles, step=2 * QUAD)
