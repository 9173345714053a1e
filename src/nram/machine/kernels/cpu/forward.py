"""The forward pass of a block: from the examples to their outcomes, keeping what the backward pass needs."""

from __future__ import annotations

from llvmlite import ir

from nram.llvm import I32, I64, Value
from nram.machine.kernels.common.halting import Halting, likelihood, log_share, log_slope
from nram.machine.kernels.common.specification import ENTROPY, LOSS, TIME
from nram.machine.kernels.common.vector_math import logistic
from nram.machine.kernels.cpu.block import Block


class ForwardPass:
    def __init__(self, block: Block):
        self.block = block
        self.to, self.shape, self.own = block.code, block.shape, block.parts

    # Before the first step

    def prepare(self) -> Value:
        """Read the examples into their lanes; returns the number of steps."""
        to, shape, own = self.to, self.shape, self.own
        self.block.clear(self.block.versions, shape.cells)
        self.block.clear(own["average"], shape.cells)
        self.block.clear(own["mixed"], shape.size)
        last = to.index(shape.batch - 1)

        def lane(number: Value, held: list[Value]) -> list[Value]:
            here = to.at.add(self.block.first, number)
            idle = to.at.icmp_signed(">", here, last)
            example = self._example(to.at.select(idle, last, here))
            limit = to.load_whole(self.block.buffers["limits"], example)
            to.store_scalar(to.at.sitofp(limit, to.scalar), to.row(own["numbers"], 3), number)
            for row in (LOSS, ENTROPY, TIME):
                seed = to.load_scalar(self.block.buffers["seeds"], to.at.add(to.index(row * shape.batch), example))
                seed = to.at.select(idle, ir.Constant(to.scalar, 0.0), seed)
                to.store_scalar(seed, to.row(own["numbers"], row), number)
            start = to.at.mul(example, to.index(shape.size))

            def cell(c: Value, _: list[Value]) -> list[Value]:
                index = to.at.add(start, c)
                row = to.at.mul(c, to.index(shape.size))
                value = to.at.zext(to.load_whole(self.block.buffers["memory"], index), I64)
                with to.at.if_then(to.at.icmp_unsigned("<", value, to.index(shape.size))):
                    to.store_scalar(ir.Constant(to.scalar, 1.0), self.block.versions, self._lane_of(row, value, number))
                wanted = to.at.zext(to.load_whole(self.block.buffers["wanted"], index), I64)
                beyond = to.at.icmp_unsigned(">", wanted, to.index(shape.size - 1))
                wanted = to.at.select(beyond, to.index(shape.size - 1), wanted)
                place = to.at.add(to.at.mul(c, to.index(to.width)), number)
                to.store_whole(to.at.trunc(self._lane_of(row, wanted, number), I32), own["wanted"], place)
                to.store_scalar(to.load_scalar(self.block.buffers["shares"], index), own["shares"], place)
                return []

            to.repeat(shape.size, cell)
            steps = to.at.sext(limit, I64)
            return [to.at.select(to.at.icmp_signed(">", steps, held[0]), steps, held[0])]

        longest = to.repeat(to.width, lane, [to.index(1)])[0]
        too_long = to.at.icmp_signed(">", longest, to.index(shape.steps))
        steps = to.at.select(too_long, to.index(shape.steps), longest)
        self.block.limit = to.load(own["numbers"], 3)
        self.block.seeds = [to.load(own["numbers"], row) for row in (LOSS, ENTROPY, TIME)]
        registers = self.block.record(to.index(0))["values"]
        self.block.clear(registers, shape.registers * shape.size)
        for register in range(shape.registers):
            to.store(to.number(1.0), registers, register * shape.size)
        self.block.network.start(self.block.places(to.index(0)))
        if shape.gradient and to.width < shape.vectors.lanes:
            self._clear_last_slot(steps)
        return steps

    def _clear_last_slot(self, steps: Value) -> None:
        """The last slot of a narrow block may not be filled, and is summed all the same."""
        to, shape = self.to, self.shape
        slot = self.block.slot(to.at.sub(steps, to.index(1)))
        lanes = shape.vectors.lanes
        packed = lanes // to.width
        begin = to.row(slot, to.at.sub(to.index(0), to.at.urem(to.at.sub(steps, to.index(1)), to.index(packed))))
        self.block.clear(begin, shape.slot * packed)

    def _example(self, place: Value) -> Value:
        """The number of the example at a place in the order in which they are run."""
        return self.to.at.zext(self.to.load_whole(self.block.buffers["order"], place), I64)

    def _lane_of(self, row: Value, value: Value, lane: Value) -> Value:
        to = self.to
        return to.at.add(to.at.mul(to.at.add(row, value), to.index(to.width)), lane)

    # Steps

    def run(self, steps: Value) -> None:
        """All steps, and the outcomes."""
        to, nothing = self.to, self.to.number(0.0)
        held = [to.number(1.0), nothing, nothing, nothing]
        _, loss, entropy, time = to.repeat(steps, self._step, held)
        if self.shape.loss == "average":
            loss = self._average_loss()
        limit = self.block.limit
        self._report([loss, to.divide(entropy, limit), to.divide(time, limit)])

    def _step(self, step: Value, held: list[Value]) -> list[Value]:
        to, shape = self.to, self.shape
        running = held[0]
        record, places = self.block.record(step), self.block.places(step)
        self.block.network.forward(places)
        logits = self.block.network.unit(places, shape.layers[2].gradient)
        uncertain = to.number(0.0)
        for group in filter(None, self.block.wire_groups):
            arguments = [self.block.options(), *self.block.wires(group, logits, record)]
            uncertain = to.add(uncertain, to.at.call(self.block.choose[len(group)], arguments))
        self._circuit(step, record)
        halting = Halting(to, shape, self.block.limit, step)
        willing = logistic(to, to.load(to.row(logits, shape.wiring.logits, self.block.network.stride)))
        stop = halting.stop(willing)
        finish = to.mul(running, stop)
        cost = self._observe(step, record, finish)
        for index, value in enumerate((running, willing, finish, cost)):
            to.store(value, record["halting"], index)
        return halting.add(held, stop, finish, cost, uncertain)

    def _circuit(self, step: Value, record: dict[str, Value]) -> None:
        to, shape = self.to, self.shape
        writes = 0
        for index, module in enumerate(shape.wiring.modules):
            wires = self.block.wire_groups[index]
            if not wires:
                continue
            arguments = [to.row(record["arguments"], wire * shape.size) for wire in wires]
            self.block.mixing.mix(wires, record["weights"], record["values"], arguments)
            out = to.row(record["values"], shape.value_rows[shape.registers + index])
            after = writes + (module.name == "WRITE")
            self.block.fuzzy.forward(
                module, arguments, out, self.block.memory(step, writes), self.block.memory(step, after)
            )
            writes = after
        for wires in self.block.wire_groups[len(shape.modules) :]:
            numbers = [wire - shape.argument_wires for wire in wires]
            fresh = [to.row(self.own["fresh"], number * shape.size) for number in numbers]
            self.block.mixing.mix(wires, record["weights"], record["values"], fresh)
            for row in fresh:
                self.block.fuzzy.renormalise(row)
        following = self.block.record(to.at.add(step, to.index(1)))["values"]
        self.block.network.copy(self.own["fresh"], following, to.width, shape.registers * shape.size)

    def _observe(self, step: Value, record: dict[str, Value], finish: Value) -> Value:
        """The likelihood of every expected value, the step's loss, and the averaged memory."""
        to, shape, own = self.to, self.shape, self.own
        memory = self.block.memory(step, shape.writes)
        self.block.each_wanted(lambda place, at: to.store_scalar(to.load_scalar(memory, place), record["seen"], at))

        def cell(c: Value, held: list[Value]) -> list[Value]:
            seen = to.load(record["seen"], c)
            if shape.loss == "average":
                to.store(to.fma(finish, seen, to.load(own["mixed"], c)), own["mixed"], c)
                return held
            share = to.load(own["shares"], c)
            return [to.sub(held[0], log_share(to, likelihood(to, shape, seen), share, self.block.epsilon))]

        cost = to.repeat(shape.size, cell, [to.number(0.0)])[0]

        def share(place: Value) -> None:
            to.store(to.fma(finish, to.load(memory, place), to.load(own["average"], place)), own["average"], place)

        to.each(shape.cells, share)
        return cost

    def _average_loss(self) -> Value:
        """The footnote's loss; what is left at `mixed` is its gradient with respect to the mixed likelihoods."""
        to, own = self.to, self.own

        def cell(c: Value, held: list[Value]) -> list[Value]:
            mixed, share = to.load(own["mixed"], c), to.load(own["shares"], c)
            weight = to.mul(self.block.seeds[LOSS], share)
            to.store(log_slope(to, mixed, weight, self.block.epsilon), own["mixed"], c)
            return [to.sub(held[0], log_share(to, mixed, share, self.block.epsilon))]

        return to.repeat(self.shape.size, cell, [to.number(0.0)])[0]

    def _report(self, outcomes: list[Value]) -> None:
        """Outcomes, and the most probable value of every cell of the averaged memory."""
        to, shape, own = self.to, self.shape, self.own
        for row, values in enumerate(outcomes):
            to.store(values, own["numbers"], row)

        found = own["received"]  # room that is free as yet

        def cell(c: Value) -> None:
            row = to.row(own["average"], to.at.mul(c, to.index(shape.size)))

            def value(v: Value, held: list[Value]) -> list[Value]:
                best, which = held
                here = to.load(row, v)
                better = to.above(here, best)
                number = to.spread(to.at.trunc(v, I32))
                return [to.choose(better, here, best), to.choose(better, number, which)]

            which = to.repeat(shape.size, value, [to.load(row), to.whole(0)], first=1)[1]
            to.store_whole(which, found, to.at.mul(c, to.index(to.width)))

        to.each(shape.size, cell, together=1)

        def lane(number: Value, _: list[Value]) -> list[Value]:
            here = to.at.add(self.block.first, number)
            with to.at.if_then(to.at.icmp_signed("<", here, to.index(shape.batch))):
                example = self._example(here)
                for row in range(len(outcomes)):
                    place = to.at.add(to.index(row * shape.batch), example)
                    value = to.load_scalar(to.row(own["numbers"], row), number)
                    to.store_scalar(value, self.block.buffers["outcomes"], place)
                start = to.at.mul(example, to.index(shape.size))

                def one(c: Value, _: list[Value]) -> list[Value]:
                    value = to.load_whole(found, to.at.add(to.at.mul(c, to.index(to.width)), number))
                    to.store_whole(value, self.block.buffers["predicted"], to.at.add(start, c))
                    return []

                to.repeat(shape.size, one)
            return []

        to.repeat(to.width, lane)
