"""The backward pass of a block: from the seeds of the gradient to those of every layer's outputs, in the slots."""

from __future__ import annotations

from nram.llvm import Value
from nram.machine.kernels.common.halting import Halting, likelihood, log_slope
from nram.machine.kernels.common.specification import ENTROPY, LOSS, TIME
from nram.machine.kernels.cpu.block import Block

REGISTERS_TOGETHER = 2  # whose gradients are summed side by side


class BackwardPass:
    """The code of the backward pass."""

    def __init__(self, block: Block):
        self.block = block
        self.code, self.shape, self.parts = block.code, block.shape, block.parts

    def run(self, steps: Value) -> None:
        """All steps, from the last to the first."""
        code, shape, parts = self.code, self.shape, self.parts
        self.block.clear(parts["register_gradient"], shape.registers * shape.size)
        self.block.clear(parts["memory_gradient"], shape.cells)
        self.block.network.start_backward(self.block.places(code.index(0)))
        last = code.at.sub(steps, code.index(1))
        code.repeat(
            steps, lambda index, carried: self._step_back(code.at.sub(last, index), *carried), [code.number(0.0)]
        )

    def _step_back(self, step: Value, to_running: Value) -> list[Value]:
        """One step. `to_running` is the gradient with respect to the probability that the machine runs afterwards."""
        code, shape, seeds = self.code, self.shape, self.block.seeds
        record, places = self.block.record(step), self.block.places(step)
        running, willing, finish, cost = (code.load(record["halting"], index) for index in range(4))
        halting = Halting(code, shape, self.block.limit, step)
        to_finish = code.add(halting.time_back(seeds[TIME]), self._observe_back(record, finish, cost))
        to_halt, to_running = halting.back(running, willing, to_finish, to_running)
        logits = self.block.network.unit(places, shape.layers[2].gradient)
        code.store(to_halt, code.row(logits, shape.wiring.logits, self.block.network.stride))
        self._circuit_back(step, record, logits, halting.entropy_back(seeds[ENTROPY]))
        self.block.network.backward(places)
        return [to_running]

    def _observe_back(self, record: dict[str, Value], finish: Value, cost: Value) -> Value:
        """Add to the memory's gradient; returns the loss's gradient with respect to p_t."""
        code, shape, parts = self.code, self.shape, self.parts
        slopes, memory = parts["output_gradient"], parts["memory_gradient"]
        factor = code.mul(self.block.seeds[LOSS], finish)

        def cell(c: Value, to_finish: list[Value]) -> list[Value]:
            seen = code.load(record["seen"], c)
            if shape.loss == "average":
                slope = code.load(parts["mixed"], c)
                code.store(code.mul(finish, slope), slopes, c)
                return [code.fma(slope, seen, to_finish[0])]
            weight = code.mul(factor, code.load(parts["shares"], c))
            code.store(log_slope(code, likelihood(code, shape, seen), weight, self.block.epsilon), slopes, c)
            return to_finish

        to_finish = code.repeat(shape.size, cell, [code.number(0.0)])[0]

        # Each lane has its own wanted value, so this addition goes lane by lane.
        def add(target: Value, source: Value) -> None:
            total = code.at.fadd(code.load_scalar(memory, target), code.load_scalar(slopes, source))
            code.store_scalar(total, memory, target)

        self.block.each_wanted(add)
        return to_finish if shape.loss == "average" else code.mul(self.block.seeds[LOSS], cost)

    def _circuit_back(self, step: Value, record: dict[str, Value], logits: Value, to_entropy: Value) -> None:
        """From the gradients of registers and memory after the step to those before it and those of the logits."""
        code, shape, parts, block = self.code, self.shape, self.parts, self.block
        wires, received, to_output = shape.wiring.wires, parts["received"], parts["output_gradient"]
        to_registers, to_memory = parts["register_gradient"], parts["memory_gradient"]
        # The paper clips gradients of activations: of the memory in place, of the registers on the way to their wires.
        self._crop(to_memory, to_memory, shape.cells)
        of_registers = code.row(received, shape.argument_wires * shape.size)
        self._crop(to_registers, of_registers, shape.registers * shape.size)
        code.store(to_entropy, parts["numbers"], 0)
        for group in block.wire_groups[len(shape.modules) :]:
            self._weights_back(group, record, logits)
        writes, later = shape.writes, shape.argument_wires  # the wires from `later` on have received their gradients
        # A value is used only by later wires. So when a module's turn comes, all gradients of its output have arrived.
        for index in reversed(range(len(shape.modules))):
            module, group = shape.wiring.modules[index], block.wire_groups[index]
            if not group:  # a constant: it has no arguments to pass a gradient to
                continue
            writes -= module.memory == "writes"
            if module.memory != "writes":
                block.mixing.value_gradient(
                    [shape.registers + index],
                    range(later, wires),
                    record["weights"],
                    received,
                    lambda v, m, total: code.store(block.fuzzy.crop(total), to_output, m),
                )
            arguments = [code.row(record["arguments"], wire * shape.size) for wire in group]
            to_arguments = [code.row(received, wire * shape.size) for wire in group]
            block.fuzzy.backward(module, arguments, to_output, to_arguments, block.memory(step, writes), to_memory)
            self._weights_back(group, record, logits)
            later -= len(group)
        # Registers come last: every wire of the step may read them.
        for start in range(0, shape.registers, REGISTERS_TOGETHER):
            block.mixing.value_gradient(
                list(range(start, min(start + REGISTERS_TOGETHER, shape.registers))),
                range(wires),
                record["weights"],
                received,
                lambda v, m, total: code.store(total, code.row(to_registers, v * shape.size), m),
            )

    def _weights_back(self, group: range, record: dict[str, Value], logits: Value) -> None:
        """From the gradients that some wires received to those of their logits."""
        code, parts, block = self.code, self.parts, self.block
        block.mixing.weight_gradient(group, parts["received"], record["values"], parts["choice"])
        gradients = [code.row(parts["choice"], self.shape.starts[wire]) for wire in group]
        arguments = [block.options(), *block.wires(group, logits, record), parts["numbers"], *gradients]
        code.at.call(block.choose_back[len(group)], arguments)

    def _crop(self, source: Value, target: Value, count: int) -> None:
        code = self.code
        code.each(count, lambda i: code.store(self.block.fuzzy.crop(code.load(source, i)), target, i))
