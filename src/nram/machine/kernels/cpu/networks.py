"""The three controllers, forwards and backwards, with examples in lanes.

A network reads the registers' flags and its own state, and leaves its output where the gradient of that output will
stand later. Vectors of a slot lie `stride` scalars apart, whatever the width of the block.
"""

from __future__ import annotations

from dataclasses import dataclass

from nram.machine.kernels.common.vector_math import exponential, hyperbolic_tangent, logistic
from nram.machine.kernels.cpu.lanes import Lanes, Value
from nram.machine.kernels.cpu.products import backward_product, forward_product
from nram.machine.kernels.cpu.shape import KernelShape, Layer


@dataclass(frozen=True)
class Places:
    """Where a network finds and leaves things in one step."""

    slot: Value
    own: Value  # its part of the record
    registers: Value
    state: Value
    state_gradient: Value
    register_gradient: Value
    input_gradient: Value  # room for one layer's


class Network:
    """The controller of one kernel, as code."""

    def __init__(self, to: Lanes, shape: KernelShape, parameters: list[Value]):
        self.to = to
        self.shape = shape
        self.weights = parameters[::2]
        self.biases = parameters[1::2]
        self.stride = shape.vectors.lanes

    def start(self, places: Places) -> None:
        """The state before the first step: zeros, and for the automaton its first state."""
        count = {"lstm": 2 * self.shape.hidden, "automaton": self.shape.states, "mlp": 0}[self.shape.controller]
        self.clear(places.state, count)
        if self.shape.controller == "automaton":
            self.to.store(self.to.number(1.0), places.state)

    def start_backward(self, places: Places) -> None:
        count = {"lstm": 2 * self.shape.hidden, "automaton": self.shape.states, "mlp": 0}[self.shape.controller]
        self.clear(places.state_gradient, count)

    def forward(self, places: Places) -> None:
        to, shape = self.to, self.shape
        first, second, last = shape.layers
        for register in range(shape.registers):
            flag = to.load(places.registers, register * shape.size)
            to.store(flag, self.unit(places, first.x + register))
        if shape.controller == "automaton":
            self.copy(places.state, None, self.unit(places, first.x + shape.registers), self.stride, shape.states)
        self._product(places, 0, second.x, rectified=True)
        if shape.controller == "lstm":
            self.copy(places.state, None, self.unit(places, second.x + shape.hidden), self.stride, shape.hidden)
            self._product(places, 1, second.gradient, rectified=False)
            self._cells(places)
        else:
            self._product(places, 1, last.x, rectified=True)
        self._product(places, 2, last.gradient, rectified=False)
        if shape.controller == "automaton":
            self._next_state(places)

    def backward(self, places: Places) -> None:
        """From the gradient of the output to all others; that of the flags is added to the registers'."""
        shape, to = self.shape, self.to
        first, second, last = shape.layers
        if shape.controller == "automaton":
            self._next_state_back(places)
        if shape.controller == "lstm":
            state_gradient = places.state_gradient

            def total(k: Value, value: Value) -> None:
                to.store(to.add(value, to.load(state_gradient, k)), state_gradient, k)

            self._product_back(places, 2, last, total)
            self._cells_back(places)
            gradient = places.input_gradient
            self._product_back(places, 1, second, lambda k, value: to.store(value, gradient, k))

            def hidden(k: Value) -> None:
                self._rectified_back(places, second.x, k, to.load(gradient, k), first.gradient)

            to.each(shape.hidden, hidden)
            self.copy(to.row(gradient, shape.hidden), None, state_gradient, to.width, shape.hidden)
        else:
            self._product_back(
                places, 2, last, lambda k, value: self._rectified_back(places, last.x, k, value, second.gradient)
            )
            self._product_back(
                places, 1, second, lambda k, value: self._rectified_back(places, second.x, k, value, first.gradient)
            )
        gradient = places.input_gradient
        self._product_back(places, 0, first, lambda k, value: to.store(value, gradient, k))
        for register in range(shape.registers):
            place = to.row(places.register_gradient, register * shape.size)
            to.store(to.add(to.load(place), to.load(gradient, register)), place)
        if shape.controller == "automaton":
            self.copy(to.row(gradient, shape.registers), None, places.state_gradient, to.width, shape.states)

    # Parts

    def unit(self, places: Places, number: Value | int) -> Value:
        return self.to.row(places.slot, number, self.stride)

    def copy(self, source: Value, stride: int | None, target: Value, target_stride: int, count: int) -> None:
        to = self.to
        to.each(count, lambda i: to.store(to.load(to.row(source, i, stride)), to.row(target, i, target_stride)))

    def clear(self, place: Value, count: int) -> None:
        if count:
            self.to.each(count, lambda i: self.to.store(self.to.number(0.0), place, i))

    def _product(self, places: Places, number: int, target: int, rectified: bool) -> None:
        to, layer, nothing = self.to, self.shape.layers[number], self.to.number(0.0)
        forward_product(
            to,
            self.unit(places, layer.x),
            layer.inputs,
            self.weights[number],
            self.biases[number],
            layer.outputs,
            self.unit(places, target),
            self.stride,
            (lambda j, value: to.at_least(value, nothing)) if rectified else (lambda j, value: value),
        )

    def _product_back(self, places: Places, number: int, layer: Layer, finish) -> None:
        gradient = self.unit(places, layer.gradient)
        backward_product(self.to, gradient, layer.outputs, self.weights[number], layer.inputs, self.stride, finish)

    def _rectified_back(self, places: Places, x: int, k: Value, value: Value, target: int) -> None:
        to = self.to
        output = to.load(self.to.row(self.unit(places, x), k, self.stride))
        passed = to.choose(to.above(output, to.number(0.0)), value, to.number(0.0))
        to.store(passed, to.row(self.unit(places, target), k, self.stride))

    def _next_state(self, places: Places) -> None:
        """Softmax over the states, kept in the record and carried on."""
        to, states = self.to, self.shape.states
        logits = self.unit(places, self.shape.layers[2].gradient + self.shape.wiring.logits + 1)
        rows = [to.load(to.row(logits, state, self.stride)) for state in range(states)]
        top = rows[0]
        for row in rows[1:]:
            top = to.at_least(row, top)
        powers = [exponential(to, to.sub(row, top)) for row in rows]
        total = to.total(powers)
        for state, power in enumerate(powers):
            probability = to.divide(power, total)
            to.store(probability, places.own, state)
            to.store(probability, places.state, state)

    def _next_state_back(self, places: Places) -> None:
        to, states = self.to, self.shape.states
        out = self.unit(places, self.shape.layers[2].gradient + self.shape.wiring.logits + 1)
        rows = [to.load(places.own, state) for state in range(states)]
        gradients = [to.load(places.state_gradient, state) for state in range(states)]
        mean = to.total([to.mul(row, gradient) for row, gradient in zip(rows, gradients, strict=True)])
        for state, (row, gradient) in enumerate(zip(rows, gradients, strict=True)):
            to.store(to.mul(row, to.sub(gradient, mean)), to.row(out, state, self.stride))

    def _cells(self, places: Places) -> None:
        """The LSTM's cells, from the gates; kept: the gates, the cell before, and tanh of the cell after."""
        to, width = self.to, self.shape.hidden
        gates = self.unit(places, self.shape.layers[1].gradient)
        output = self.unit(places, self.shape.layers[2].x)

        def one(h: Value) -> None:
            raw = [to.load(to.row(gates, to.at.add(h, to.index(gate * width)), self.stride)) for gate in range(4)]
            admit, keep, emit = (logistic(to, raw[gate]) for gate in (0, 1, 3))
            fresh = hyperbolic_tangent(to, raw[2])
            memory = to.row(places.state, width)
            before = to.load(memory, h)
            cell = to.fma(keep, before, to.mul(admit, fresh))
            bent = hyperbolic_tangent(to, cell)
            said = to.mul(emit, bent)
            for number, kept in enumerate((admit, keep, fresh, emit, before, bent)):
                to.store(kept, to.row(places.own, number * width), h)
            to.store(cell, memory, h)
            to.store(said, places.state, h)
            to.store(said, to.row(output, h, self.stride))

        to.each(width, one, together=1)

    def _cells_back(self, places: Places) -> None:
        to, width, unity = self.to, self.shape.hidden, self.to.number(1.0)
        gates = self.unit(places, self.shape.layers[1].gradient)

        def one(h: Value) -> None:
            kept = [to.load(to.row(places.own, number * width), h) for number in range(6)]
            admit, keep, fresh, emit, before, bent = kept
            said = to.load(places.state_gradient, h)
            place = to.row(places.state_gradient, width)
            cell = to.mul(to.mul(said, emit), to.sub(unity, to.mul(bent, bent)))
            cell = to.add(cell, to.load(place, h))

            def logistic_slope(x: Value) -> Value:
                return to.mul(x, to.sub(unity, x))

            raw = (
                to.mul(to.mul(cell, fresh), logistic_slope(admit)),
                to.mul(to.mul(cell, before), logistic_slope(keep)),
                to.mul(to.mul(cell, admit), to.sub(unity, to.mul(fresh, fresh))),
                to.mul(to.mul(said, bent), logistic_slope(emit)),
            )
            for gate, gradient in enumerate(raw):
                to.store(gradient, to.row(gates, to.at.add(h, to.index(gate * width)), self.stride))
            to.store(to.mul(cell, keep), place, h)

        to.each(width, one, together=1)
