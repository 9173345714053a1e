"""The forward pass of a block: from the examples to their outcomes. It keeps what the backward pass needs."""

from __future__ import annotations

from llvmlite import ir

from nram.llvm import I32, I64, Value
from nram.machine.kernels.common.halting import Halting, likelihood, log_share, log_slope
from nram.machine.kernels.common.specification import ENTROPY, LOSS, TIME
from nram.machine.kernels.common.vector_math import logistic
from nram.machine.kernels.cpu.block import Block


class ForwardPass:
    """The code of the forward pass."""

    def __init__(self, block: Block):
        self.block = block
        self.code, self.shape, self.parts = block.code, block.shape, block.parts

    # Before the first step

    def prepare(self) -> Value:
        """Read the examples into their lanes; returns the number of steps."""
        code, shape, parts = self.code, self.shape, self.parts
        self.block.clear(self.block.versions, shape.cells)
        self.block.clear(parts["average"], shape.cells)
        self.block.clear(parts["mixed"], shape.size)
        longest = code.repeat(code.width, self._read, [code.index(1)])[0]
        too_long = code.at.icmp_signed(">", longest, code.index(shape.steps))
        steps = code.at.select(too_long, code.index(shape.steps), longest)
        self.block.limit = code.load(parts["numbers"], 3)
        self.block.seeds = [code.load(parts["numbers"], row) for row in (LOSS, ENTROPY, TIME)]
        registers = self.block.record(code.index(0))["values"]
        self.block.clear(registers, shape.registers * shape.size)
        for register in range(shape.registers):
            code.store(code.number(1.0), registers, register * shape.size)
        self.block.network.start(self.block.places(code.index(0)))
        if shape.gradient and code.width < shape.vectors.lanes:
            self._clear_last_slot(steps)
        return steps

    def _read(self, lane: Value, longest: list[Value]) -> list[Value]:
        """Read the example of one lane. A lane without an example repeats the last one, with seeds of 0."""
        code, shape, parts, buffers = self.code, self.shape, self.parts, self.block.buffers
        position, last = code.at.add(self.block.first, lane), code.index(shape.batch - 1)
        idle = code.at.icmp_signed(">", position, last)
        example = self._example(code.at.select(idle, last, position))
        limit = code.load_whole(buffers["limits"], example)
        code.store_scalar(code.at.sitofp(limit, code.scalar), code.row(parts["numbers"], 3), lane)
        for row in (LOSS, ENTROPY, TIME):
            seed = code.load_scalar(buffers["seeds"], code.at.add(code.index(row * shape.batch), example))
            seed = code.at.select(idle, ir.Constant(code.scalar, 0.0), seed)
            code.store_scalar(seed, code.row(parts["numbers"], row), lane)
        start = code.at.mul(example, code.index(shape.size))

        def cell(c: Value, _: list[Value]) -> list[Value]:
            index, row = code.at.add(start, c), code.at.mul(c, code.index(shape.size))
            value = code.at.zext(code.load_whole(buffers["memory"], index), I64)
            with code.at.if_then(code.at.icmp_unsigned("<", value, code.index(shape.size))):
                one = ir.Constant(code.scalar, 1.0)
                code.store_scalar(one, self.block.versions, self._lane_of(row, value, lane))
            # An expected value outside of the memory must not lead outside of the buffers either.
            wanted = code.at.zext(code.load_whole(buffers["wanted"], index), I64)
            beyond = code.at.icmp_unsigned(">", wanted, code.index(shape.size - 1))
            wanted = code.at.select(beyond, code.index(shape.size - 1), wanted)
            offset = code.at.add(code.at.mul(c, code.index(code.width)), lane)
            code.store_whole(code.at.trunc(self._lane_of(row, wanted, lane), I32), parts["wanted"], offset)
            code.store_scalar(code.load_scalar(buffers["shares"], index), parts["shares"], offset)
            return []

        code.repeat(shape.size, cell)
        steps = code.at.sext(limit, I64)
        return [code.at.select(code.at.icmp_signed(">", steps, longest[0]), steps, longest[0])]

    def _clear_last_slot(self, steps: Value) -> None:
        """The last slot of a narrow block may not be filled by its steps, but it is summed as a whole."""
        code, shape = self.code, self.shape
        packed, last = shape.vectors.lanes // code.width, code.at.sub(steps, code.index(1))
        back = code.at.sub(code.index(0), code.at.urem(last, code.index(packed)))
        self.block.clear(code.row(self.block.slot(last), back), shape.slot * packed)

    def _example(self, position: Value) -> Value:
        """The index of the example at this position of the order in which examples are run."""
        return self.code.at.zext(self.code.load_whole(self.block.buffers["order"], position), I64)

    def _lane_of(self, row: Value, value: Value, lane: Value) -> Value:
        """The offset of a lane in a memory, where a row of cells has one vector per value."""
        code = self.code
        return code.at.add(code.at.mul(code.at.add(row, value), code.index(code.width)), lane)

    # Steps

    def run(self, steps: Value) -> None:
        """All steps, and the outcomes."""
        code, nothing = self.code, self.code.number(0.0)
        sums = [code.number(1.0), nothing, nothing, nothing]
        _, loss, entropy, time = code.repeat(steps, self._step, sums)
        if self.shape.loss == "average":
            loss = self._average_loss()
        limit = self.block.limit
        self._report([loss, code.divide(entropy, limit), code.divide(time, limit)])

    def _step(self, step: Value, sums: list[Value]) -> list[Value]:
        """One step; `sums` are those of `Halting.add`."""
        code, shape, running = self.code, self.shape, sums[0]
        record, places = self.block.record(step), self.block.places(step)
        self.block.network.forward(places)
        logits = self.block.network.unit(places, shape.layers[2].gradient)
        uncertain = code.number(0.0)
        for group in filter(None, self.block.wire_groups):
            arguments = [self.block.options(), *self.block.wires(group, logits, record)]
            uncertain = code.add(uncertain, code.at.call(self.block.choose[len(group)], arguments))
        self._circuit(step, record)
        halting = Halting(code, shape, self.block.limit, step)
        willing = logistic(code, code.load(code.row(logits, shape.wiring.logits, self.block.network.stride)))
        stop = halting.stop(willing)
        finish = code.mul(running, stop)
        cost = self._observe(step, record, finish)
        for index, value in enumerate((running, willing, finish, cost)):
            code.store(value, record["halting"], index)
        return halting.add(sums, stop, finish, cost, uncertain)

    def _circuit(self, step: Value, record: dict[str, Value]) -> None:
        """All modules, then the registers of the next step."""
        code, shape, block, writes = self.code, self.shape, self.block, 0
        for index, (module, wires) in enumerate(zip(shape.wiring.modules, block.wire_groups, strict=False)):
            if not wires:  # a constant: nothing is computed or stored
                continue
            arguments = [code.row(record["arguments"], wire * shape.size) for wire in wires]
            block.mixing.mix(wires, record["weights"], record["values"], arguments)
            out = code.row(record["values"], shape.value_rows[shape.registers + index])
            after = writes + (module.memory == "writes")
            block.fuzzy.forward(module, arguments, out, block.memory(step, writes), block.memory(step, after))
            writes = after
        for wires in block.wire_groups[len(shape.modules) :]:
            fresh = [code.row(self.parts["fresh"], (wire - shape.argument_wires) * shape.size) for wire in wires]
            block.mixing.mix(wires, record["weights"], record["values"], fresh)
            for row in fresh:
                block.fuzzy.renormalise(row)
        following = block.record(code.at.add(step, code.index(1)))["values"]
        block.network.copy(self.parts["fresh"], following, code.width, shape.registers * shape.size)

    def _observe(self, step: Value, record: dict[str, Value], finish: Value) -> Value:
        """Keep the likelihoods of the expected values, and average the memory; returns the step's loss."""
        code, shape, parts = self.code, self.shape, self.parts
        memory, average, mixed = self.block.memory(step, shape.writes), parts["average"], parts["mixed"]

        def see(source: Value, target: Value) -> None:
            code.store_scalar(code.load_scalar(memory, source), record["seen"], target)

        self.block.each_wanted(see)

        def cell(c: Value, cost: list[Value]) -> list[Value]:
            seen = code.load(record["seen"], c)
            if shape.loss == "average":
                code.store(code.fma(finish, seen, code.load(mixed, c)), mixed, c)
                return cost
            share = code.load(parts["shares"], c)
            return [code.sub(cost[0], log_share(code, likelihood(code, shape, seen), share, self.block.epsilon))]

        cost = code.repeat(shape.size, cell, [code.number(0.0)])[0]
        code.each(
            shape.cells, lambda i: code.store(code.fma(finish, code.load(memory, i), code.load(average, i)), average, i)
        )
        return cost

    def _average_loss(self) -> Value:
        """The loss of the paper's footnote. Its gradient with respect to the mixed likelihoods replaces these."""
        code, parts = self.code, self.parts

        def cell(c: Value, loss: list[Value]) -> list[Value]:
            mixed, share = code.load(parts["mixed"], c), code.load(parts["shares"], c)
            weight = code.mul(self.block.seeds[LOSS], share)
            code.store(log_slope(code, mixed, weight, self.block.epsilon), parts["mixed"], c)
            return [code.sub(loss[0], log_share(code, mixed, share, self.block.epsilon))]

        return code.repeat(self.shape.size, cell, [code.number(0.0)])[0]

    # After the last step

    def _report(self, outcomes: list[Value]) -> None:
        """Return the outcomes, and the most probable value of every cell of the averaged memory."""
        code, shape, parts, buffers = self.code, self.shape, self.parts, self.block.buffers
        for row, values in enumerate(outcomes):
            code.store(values, parts["numbers"], row)
        found = parts["received"]  # the backward pass has not begun, so this room is free
        code.each(shape.size, lambda c: self._store_best(c, found), together=1)

        def write(lane: Value, _: list[Value]) -> list[Value]:
            position = code.at.add(self.block.first, lane)
            with code.at.if_then(code.at.icmp_signed("<", position, code.index(shape.batch))):
                example = self._example(position)
                for row in range(len(outcomes)):
                    value = code.load_scalar(code.row(parts["numbers"], row), lane)
                    offset = code.at.add(code.index(row * shape.batch), example)
                    code.store_scalar(value, buffers["outcomes"], offset)
                start = code.at.mul(example, code.index(shape.size))

                def cell(c: Value, _: list[Value]) -> list[Value]:
                    value = code.load_whole(found, code.at.add(code.at.mul(c, code.index(code.width)), lane))
                    code.store_whole(value, buffers["predicted"], code.at.add(start, c))
                    return []

                code.repeat(shape.size, cell)
            return []

        code.repeat(code.width, write)

    def _store_best(self, c: Value, found: Value) -> None:
        """The most probable value of a cell, the first if there are several."""
        code, size = self.code, self.shape.size
        row = code.row(self.parts["average"], code.at.mul(c, code.index(size)))

        def compare(v: Value, carried: list[Value]) -> list[Value]:
            (best, value), here = carried, code.load(row, v)
            better = code.above(here, best)
            return [code.choose(better, here, best), code.choose(better, code.spread(code.at.trunc(v, I32)), value)]

        value = code.repeat(size, compare, [code.load(row), code.whole(0)], first=1)[1]
        code.store_whole(value, found, code.at.mul(c, code.index(code.width)))
