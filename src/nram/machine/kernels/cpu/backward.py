"""The backward pass of a block: from the seeds of the gradient to those of every layer's outputs, in the slots."""

from __future__ import annotations

from nram.llvm import Value
from nram.machine.kernels.common.halting import Halting, likelihood, log_slope
from nram.machine.kernels.common.specification import ENTROPY, LOSS, TIME
from nram.machine.kernels.cpu.block import Block


class BackwardPass:
    def __init__(self, block: Block):
        self.block = block
        self.to, self.shape, self.own = block.code, block.shape, block.parts

    def run(self, steps: Value) -> None:
        """All steps, from the last to the first."""
        to, shape, own = self.to, self.shape, self.own
        self.block.clear(own["register_gradient"], shape.registers * shape.size)
        self.block.clear(own["memory_gradient"], shape.cells)
        self.block.network.start_backward(self.block.places(to.index(0)))
        last = to.at.sub(steps, to.index(1))
        to.repeat(steps, lambda number, held: self._step_back(to.at.sub(last, number), held), [to.number(0.0)])

    def _step_back(self, step: Value, held: list[Value]) -> list[Value]:
        to, shape = self.to, self.shape
        (to_running,) = held  # the gradient with respect to the chance of running on after this step
        record, places = self.block.record(step), self.block.places(step)
        running, willing, finish, cost = (to.load(record["halting"], index) for index in range(4))
        halting = Halting(to, shape, self.block.limit, step)
        to_finish = halting.time_back(self.block.seeds[TIME])
        to_finish = to.add(to_finish, self._observe_back(record, finish, cost))
        to_halt, to_running = halting.back(running, willing, to_finish, to_running)
        logits = self.block.network.unit(places, shape.layers[2].gradient)
        to.store(to_halt, to.row(logits, shape.wiring.logits, self.block.network.stride))
        self._circuit_back(step, record, logits, halting.entropy_back(self.block.seeds[ENTROPY]))
        self.block.network.backward(places)
        return [to_running]

    def _observe_back(self, record: dict[str, Value], finish: Value, cost: Value) -> Value:
        """Add to the memory's gradient; returns the loss's gradient with respect to p_t."""
        to, shape, own = self.to, self.shape, self.own
        nothing, factor = to.number(0.0), to.mul(self.block.seeds[LOSS], finish)

        def cell(c: Value, held: list[Value]) -> list[Value]:
            seen = to.load(record["seen"], c)
            if shape.loss == "average":
                slope = to.load(own["mixed"], c)
                to.store(to.mul(finish, slope), own["output_gradient"], c)
                return [to.fma(slope, seen, held[0])]
            weight = to.mul(factor, to.load(own["shares"], c))
            slope = log_slope(to, likelihood(to, shape, seen), weight, self.block.epsilon)
            to.store(slope, own["output_gradient"], c)
            return held

        to_finish = to.repeat(shape.size, cell, [nothing])[0]
        memory = own["memory_gradient"]

        def add(place: Value, at: Value) -> None:
            own_part = to.load_scalar(own["output_gradient"], at)
            to.store_scalar(to.at.fadd(to.load_scalar(memory, place), own_part), memory, place)

        self.block.each_wanted(add)
        return to_finish if shape.loss == "average" else to.mul(self.block.seeds[LOSS], cost)

    def _circuit_back(self, step: Value, record: dict[str, Value], logits: Value, to_entropy: Value) -> None:
        to, shape, own, fuzzy = self.to, self.shape, self.own, self.block.fuzzy
        wires, received = shape.wiring.wires, own["received"]
        self._crop(own["memory_gradient"], own["memory_gradient"], shape.cells)
        self._crop(
            own["register_gradient"],
            to.row(received, shape.argument_wires * shape.size),
            shape.registers * shape.size,
        )
        to.store(to_entropy, own["numbers"], 0)
        for group in self.block.wire_groups[len(shape.modules) :]:
            self._weights_back(group, record, logits)
        writes, later = shape.writes, shape.argument_wires
        for index in reversed(range(len(shape.modules))):
            module, group = shape.wiring.modules[index], self.block.wire_groups[index]
            if not group:
                continue
            writes -= module.memory == "writes"
            if module.memory != "writes":
                self.block.mixing.value_gradient(
                    [shape.registers + index],
                    range(later, wires),
                    record["weights"],
                    received,
                    lambda v, m, total: to.store(fuzzy.crop(total), own["output_gradient"], m),
                )
            fuzzy.backward(
                module,
                [to.row(record["arguments"], wire * shape.size) for wire in group],
                own["output_gradient"],
                [to.row(received, wire * shape.size) for wire in group],
                self.block.memory(step, writes),
                own["memory_gradient"],
            )
            self._weights_back(group, record, logits)
            later -= len(group)
        for start in range(0, shape.registers, 2):
            self.block.mixing.value_gradient(
                list(range(start, min(start + 2, shape.registers))),
                range(wires),
                record["weights"],
                received,
                lambda v, m, total: to.store(total, to.row(own["register_gradient"], v * shape.size), m),
            )

    def _weights_back(self, group: range, record: dict[str, Value], logits: Value) -> None:
        to, own = self.to, self.own
        self.block.mixing.weight_gradient(group, own["received"], record["values"], own["choice"])
        gradients = [to.row(own["choice"], self.shape.starts[wire]) for wire in group]
        arguments = [self.block.options(), *self.block.wires(group, logits, record), own["numbers"], *gradients]
        to.at.call(self.block.choose_back[len(group)], arguments)

    def _crop(self, source: Value, target: Value, count: int) -> None:
        to = self.to
        to.each(count, lambda i: to.store(self.block.fuzzy.crop(to.load(source, i)), target, i))
