"""The backward pass of an example: from the seeds of the gradient to those of every layer's outputs, in the records."""

from __future__ import annotations

from nram.machine.gpu.episode import Episode, Example
from nram.machine.gpu.forward import COST, FINISH, RUNNING, STOP
from nram.machine.gpu.frame import ENTROPY, LOSS, TIME
from nram.machine.gpu.warps import Columns, Value


class BackwardPass:
    def __init__(self, episode: Episode, example: Example, mixed: Columns):
        self.episode, self.example, self.mixed = episode, example, mixed
        self.to, self.shape, self.own = episode.to, episode.shape, episode.own
        self.touches_memory = any(name in ("READ", "WRITE") for name in self.shape.modules)

    def run(self) -> None:
        """All steps, from the last to the first; the tape's place now holds its gradient."""
        to, shape = self.to, self.shape
        to.sync()

        def clear(place: Value, _: list[Value]) -> list[Value]:
            to.store_columns([to.nothing] * shape.columns, self.own["tape"], place)
            return []

        to.repeat(shape.tape, clear, step=shape.row)
        to.sync()
        self.seeds = [self._seed(row) for row in (LOSS, ENTROPY, TIME)]
        self.slopes = [self._slope(number) for number in range(shape.columns)] if shape.loss == "average" else []
        last = to.at.sub(self.example.steps, to.index(1))
        carried = shape.registers * shape.columns + len(self.episode.network.start())
        begin = [to.nothing] * (1 + carried)
        to.repeat(self.example.steps, lambda number, held: self._step_back(to.at.sub(last, number), held), begin)

    def _seed(self, row: int) -> Value:
        to = self.to
        place = to.at.add(self.episode.frame.example, to.index(row * self.shape.batch))
        return to.spread(to.load_scalar(self.episode.frame.buffers["seeds"], place))

    def _slope(self, number: int, seen: Value | None = None) -> Value:
        """Of the loss, by what it takes the logarithm of."""
        to = self.to
        seen = self.mixed[number] if seen is None else seen
        slope = to.at.fneg(to.divide(to.mul(self.seeds[LOSS], self.example.shares[number]), seen))
        return to.choose(to.above(seen, self.episode.epsilon), slope, to.nothing)

    def _step_back(self, step: Value, held: list[Value]) -> list[Value]:
        to, shape, episode = self.to, self.shape, self.episode
        to_running, *rest = held  # the gradient with respect to the chance of running on after this step
        width = shape.registers * shape.columns
        to_registers, to_state = episode.grouped(rest[:width]), rest[width:]
        record = episode.frame.record(episode.records, step)
        halting = episode.part(record, "halting")
        running, stop, finish, cost = (episode.load_uniform(halting, i) for i in (RUNNING, STOP, FINISH, COST))
        number = episode.number(step)
        to_finish = to.divide(to.mul(self.seeds[TIME], number), self.example.limit)
        to_finish = to.add(to_finish, self._observe_back(record, finish, cost))
        left = to.sub(to.number(1.0), stop)
        slope = to.mul(to.mul(to.mul(running, to.sub(to_finish, to_running)), stop), left)
        forced = to.at.fcmp_ordered(">=", number, self.example.limit)
        to_halt = to.choose(forced, to.nothing, slope)
        counted = to.at.fcmp_ordered("<=", number, self.example.limit)
        share = to.divide(self.seeds[ENTROPY], to.mul(self.example.limit, to.number(float(shape.wiring.wires))))
        to_entropy = to.choose(counted, share, to.nothing)
        to_registers = self._circuit_back(step, record, to_registers, to_entropy)
        to_registers, to_state = episode.network.backward(to_registers, to_halt, to_state, record)
        to_running = to.fma(stop, to_finish, to.mul(left, to_running))
        return [to_running, *[column for register in to_registers for column in register], *to_state]

    def _observe_back(self, record: Value, finish: Value, cost: Value) -> Value:
        """Add to the memory's gradient; returns the loss's gradient with respect to p_t."""
        to, shape, tape = self.to, self.shape, self.own["tape"]
        seen = to.columns(self.episode.part(record, "seen"), 0, shape.columns)
        slopes = self.slopes or [self._slope(number, own) for number, own in enumerate(seen)]
        to.sync()
        for slope, target, there in zip(slopes, self.example.targets, self.example.cells, strict=True):
            former = to.load_each(tape, target, there)
            to.store_each(to.fma(finish, slope, former), tape, target, there)
        to.sync()
        if shape.loss == "average":
            return to.total([to.mul(slope, own) for slope, own in zip(slopes, seen, strict=True)])
        return to.mul(self.seeds[LOSS], cost)

    def _circuit_back(
        self, step: Value, record: Value, to_registers: list[Columns], to_entropy: Value
    ) -> list[Columns]:
        to, shape, episode = self.to, self.shape, self.episode
        wires, fuzzy = episode.wires, episode.fuzzy
        wires.restore(episode.part(record, "weights"))
        to_values: list[Columns] = [[to.nothing] * shape.columns for _ in shape.supports]
        for number, gradient in enumerate(to_registers):
            self._receive(shape.argument_wires + number, fuzzy.crop(gradient), to_values)
        wire, writes, crop_tape = shape.argument_wires, shape.writes, True
        for index in reversed(range(len(shape.modules))):
            module = shape.wiring.modules[index]
            if not module.arity:
                continue
            wire -= module.arity
            writes -= module.name == "WRITE"
            arguments = [
                to.columns(episode.part(record, "arguments", wire + number), 0, shape.columns)
                for number in range(module.arity)
            ]
            gradient = fuzzy.crop(to_values[shape.registers + index])
            found = fuzzy.backward(module.name, arguments, gradient, episode.tapes(step, writes), crop_tape)
            crop_tape = crop_tape and module.memory == "nothing"
            for number, own in enumerate(found):
                self._receive(wire + number, own, to_values)
        wires.choose_back(self.own["received"], episode.part(record, "values"), to_entropy)
        return to_values[: shape.registers]

    def _receive(self, wire: int, gradient: Columns, to_values: list[Columns]) -> None:
        """The gradient of a wire: stored for that of its weights, passed on to the values it chooses from."""
        self.to.store_columns(gradient, self.own["received"], wire * self.shape.gradient_stride)
        self.episode.wires.pass_back(wire, gradient, to_values)
