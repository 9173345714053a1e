"""The three controllers, forwards and backwards, with examples in lanes.

A network reads the registers' flags and its own state. It writes its output to where the gradient of that output will
stand later. Vectors of a slot lie `stride` scalars apart, whatever the width of the block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nram.llvm import Value
from nram.machine.kernels.common.lstm import GATES, KEPT, cell_back, cell_forward
from nram.machine.kernels.common.vector_math import exponential
from nram.machine.kernels.cpu.lanes import Lanes
from nram.machine.kernels.cpu.products import backward_product, forward_product
from nram.machine.kernels.cpu.shape import KernelShape


@dataclass(frozen=True)
class StepStorage:
    """Where a network reads and writes in one step."""

    slot: Value
    kept: Value  # the network's part of the record
    registers: Value
    state: Value
    state_gradient: Value
    register_gradient: Value
    input_gradient: Value  # room for the gradient of one layer's input


class Network:
    """The controller of one kernel, as code."""

    def __init__(self, code: Lanes, shape: KernelShape, parameters: list[Value]):
        self.code = code
        self.shape = shape
        self.parameters = list(zip(parameters[::2], parameters[1::2], strict=True))
        self.stride = shape.vectors.lanes

    def start(self, storage: StepStorage) -> None:
        """Set the state before the first step: zeros, except that an automaton is in its first state."""
        self.clear(storage.state, self.shape.carried)
        if self.shape.controller == "automaton":
            self.code.store(self.code.number(1.0), storage.state)

    def start_backward(self, storage: StepStorage) -> None:
        self.clear(storage.state_gradient, self.shape.carried)

    def forward(self, storage: StepStorage) -> None:
        code, shape = self.code, self.shape
        first, second, last = shape.layers
        for register in range(shape.registers):
            flag = code.load(storage.registers, register * shape.size)  # P(register = 0)
            code.store(flag, self.unit(storage, first.x + register))
        if shape.controller == "automaton":
            self.copy(storage.state, self.unit(storage, first.x + shape.registers), self.stride, shape.states)
        self._product(storage, 0, second.x, rectified=True)
        if shape.controller == "lstm":
            self.copy(storage.state, self.unit(storage, second.x + shape.hidden), self.stride, shape.hidden)
            self._product(storage, 1, second.gradient, rectified=False)
            self._cells(storage)
        else:
            self._product(storage, 1, last.x, rectified=True)
        self._product(storage, 2, last.gradient, rectified=False)
        if shape.controller == "automaton":
            self._next_state(storage)

    def backward(self, storage: StepStorage) -> None:
        """From the gradient of the output to all others; the gradient of the flags is added to the registers'."""
        code, shape = self.code, self.shape
        first, second, last = shape.layers
        gradient = storage.input_gradient

        def keep(k: Value, value: Value) -> None:
            code.store(value, gradient, k)

        if shape.controller == "automaton":
            self._next_state_back(storage)
        if shape.controller == "lstm":
            state_gradient = storage.state_gradient

            def add(k: Value, value: Value) -> None:
                code.store(code.add(value, code.load(state_gradient, k)), state_gradient, k)

            self._product_back(storage, 2, add)
            self._cells_back(storage)
            self._product_back(storage, 1, keep)
            hidden = self._rectified_back(storage, second.x, first.gradient)
            code.each(shape.hidden, lambda k: hidden(k, code.load(gradient, k)))
            self.copy(code.row(gradient, shape.hidden), state_gradient, code.width, shape.hidden)
        else:
            self._product_back(storage, 2, self._rectified_back(storage, last.x, second.gradient))
            self._product_back(storage, 1, self._rectified_back(storage, second.x, first.gradient))
        self._product_back(storage, 0, keep)
        for register in range(shape.registers):
            flag_gradient = code.row(storage.register_gradient, register * shape.size)
            code.store(code.add(code.load(flag_gradient), code.load(gradient, register)), flag_gradient)
        if shape.controller == "automaton":
            self.copy(code.row(gradient, shape.registers), storage.state_gradient, code.width, shape.states)

    # Parts

    def unit(self, storage: StepStorage, index: Value | int) -> Value:
        """A vector of the slot."""
        return self.code.row(storage.slot, index, self.stride)

    def copy(self, source: Value, target: Value, target_stride: int, count: int) -> None:
        code = self.code
        code.each(count, lambda i: code.store(code.load(source, i), code.row(target, i, target_stride)))

    def clear(self, start: Value, count: int) -> None:
        if count:
            self.code.each(count, lambda i: self.code.store(self.code.number(0.0), start, i))

    def _product(self, storage: StepStorage, index: int, target: int, rectified: bool) -> None:
        code, layer, zero = self.code, self.shape.layers[index], self.code.number(0.0)
        x, y = self.unit(storage, layer.x), self.unit(storage, target)
        finish = (lambda j, value: code.at_least(value, zero)) if rectified else (lambda j, value: value)
        forward_product(code, layer, self.parameters[index], x, y, self.stride, finish)

    def _product_back(self, storage: StepStorage, index: int, finish: Callable[[Value, Value], None]) -> None:
        layer = self.shape.layers[index]
        gradient = self.unit(storage, layer.gradient)
        backward_product(self.code, layer, self.parameters[index][0], gradient, self.stride, finish)

    def _rectified_back(self, storage: StepStorage, x: int, target: int) -> Callable[[Value, Value], None]:
        """A function that passes on the gradient of the unit k where the unit's output is above 0."""
        code = self.code

        def finish(k: Value, gradient: Value) -> None:
            output = code.load(code.row(self.unit(storage, x), k, self.stride))
            passed = code.choose(code.above(output, code.number(0.0)), gradient, code.number(0.0))
            code.store(passed, code.row(self.unit(storage, target), k, self.stride))

        return finish

    # The automaton

    def _state_logits(self, storage: StepStorage) -> Value:
        return self.unit(storage, self.shape.layers[2].gradient + self.shape.wiring.logits + 1)

    def _next_state(self, storage: StepStorage) -> None:
        """Softmax over the states, kept in the record and carried on."""
        code, logits = self.code, self._state_logits(storage)
        rows = [code.load(code.row(logits, state, self.stride)) for state in range(self.shape.states)]
        top = rows[0]
        for row in rows[1:]:
            top = code.at_least(row, top)
        powers = [exponential(code, code.sub(row, top)) for row in rows]
        total = code.total(powers)
        for state, power in enumerate(powers):
            probability = code.divide(power, total)
            code.store(probability, storage.kept, state)
            code.store(probability, storage.state, state)

    def _next_state_back(self, storage: StepStorage) -> None:
        code, logits, states = self.code, self._state_logits(storage), range(self.shape.states)
        rows = [code.load(storage.kept, state) for state in states]
        gradients = [code.load(storage.state_gradient, state) for state in states]
        mean = code.total([code.mul(row, gradient) for row, gradient in zip(rows, gradients, strict=True)])
        for state, (row, gradient) in enumerate(zip(rows, gradients, strict=True)):
            code.store(code.mul(row, code.sub(gradient, mean)), code.row(logits, state, self.stride))

    # The LSTM

    def _gates(self, storage: StepStorage) -> Callable[[int, Value], Value]:
        """(gate, cell) -> where this gate stands in the slot, and later its gradient."""
        code, gates = self.code, self.unit(storage, self.shape.layers[1].gradient)
        return lambda gate, h: code.row(gates, code.at.add(h, code.index(gate * self.shape.hidden)), self.stride)

    def _cells(self, storage: StepStorage) -> None:
        """The LSTM's cells, from the gates. The record keeps the gates, the cell before, and tanh of the cell after."""
        code, width, gate_of = self.code, self.shape.hidden, self._gates(storage)
        output = self.unit(storage, self.shape.layers[2].x)

        def one(h: Value) -> None:
            gates, cells = [code.load(gate_of(gate, h)) for gate in range(GATES)], code.row(storage.state, width)
            kept, after, said = cell_forward(code, gates, code.load(cells, h))
            for row, value in enumerate(kept):
                code.store(value, code.row(storage.kept, row * width), h)
            code.store(after, cells, h)
            code.store(said, storage.state, h)
            code.store(said, code.row(output, h, self.stride))

        code.each(width, one, together=1)

    def _cells_back(self, storage: StepStorage) -> None:
        code, width, gate_of = self.code, self.shape.hidden, self._gates(storage)

        def one(h: Value) -> None:
            kept = [code.load(code.row(storage.kept, row * width), h) for row in range(KEPT)]
            said, to_cells = code.load(storage.state_gradient, h), code.row(storage.state_gradient, width)
            gates, to_before = cell_back(code, kept, said, code.load(to_cells, h))
            for gate, gradient in enumerate(gates):
                code.store(gradient, gate_of(gate, h))
            code.store(to_before, to_cells, h)

        code.each(width, one, together=1)
