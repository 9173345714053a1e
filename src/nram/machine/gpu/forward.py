"""The forward pass of an example: from its memory to its outcomes, keeping what the backward pass needs."""

from __future__ import annotations

from nram.machine.gpu.episode import Episode, Example
from nram.machine.gpu.shape import LANES
from nram.machine.gpu.warps import Columns, Value

RUNNING, STOP, FINISH, COST = range(4)  # places of a record's `halting`
AT_ONCE = 2  # steps whose tapes are read at the same time for the prediction


class ForwardPass:
    def __init__(self, episode: Episode, example: Example):
        self.episode, self.example = episode, example
        self.to, self.shape, self.own = episode.to, episode.shape, episode.own

    def run(self) -> Columns:
        """All steps and the outcomes; returns the averaged likelihoods, for the footnote's loss."""
        to, shape = self.to, self.shape
        self._write_memory()
        begin = [to.number(1.0), *[to.nothing] * (3 + shape.columns)]
        begin += [column for _ in range(shape.registers) for column in to.certain(0, shape.columns)]
        begin += self.episode.network.start()
        _, loss, entropy, time, *rest = to.repeat(self.example.steps, self._step, begin)
        mixed = rest[: shape.columns]
        if shape.loss == "average":
            loss = self._cost(mixed)
        limit = self.example.limit
        outcomes = [loss, to.divide(entropy, limit), to.divide(time, limit)]
        for row, value in enumerate(outcomes):
            place = to.at.add(self.episode.frame.example, to.index(row * shape.batch))
            to.store_uniform(value, self.episode.frame.buffers["outcomes"], place)
        self._predict()
        return mixed

    def _write_memory(self) -> None:
        to, shape, tape = self.to, self.shape, self.own["tape"]
        one = to.number(1.0)

        def store(cell: Value, columns: Columns) -> None:
            place = to.at.mul(cell, to.index(shape.row))
            to.store_columns(columns, tape, place)
            to.store_columns(columns, self.episode.versions, place)

        def row(cell: Value, _: list[Value]) -> list[Value]:
            value = self.episode.memory_value(cell)
            places = [to.at.add(to.lane, to.whole(column * LANES)) for column in range(shape.columns)]
            hits = [to.at.icmp_signed("==", place, value) for place in places]
            columns = [to.choose(hit, one, to.nothing) for hit in hits]
            store(cell, [to.part(column, shape.size, number) for number, column in enumerate(columns)])
            return []

        to.repeat(shape.size, row)
        for cell in range(shape.size, shape.rows):
            store(to.index(cell), [to.nothing] * shape.columns)

    def _step(self, step: Value, held: list[Value]) -> list[Value]:
        to, shape, episode = self.to, self.shape, self.episode
        running, loss, entropy, time, *rest = held
        mixed, rest = rest[: shape.columns], rest[shape.columns :]
        width = shape.registers * shape.columns
        registers, state = episode.grouped(rest[:width]), rest[width:]
        record = episode.frame.record(episode.records, step)
        state = episode.network.forward(registers, state, record)
        halt = episode.load_uniform(self.own["wires"], shape.halt_place)
        uncertain = episode.wires.choose()
        if shape.gradient:
            episode.wires.keep(episode.part(record, "weights"))
        registers = self._circuit(step, registers, record)
        number = episode.number(step)
        forced = to.at.fcmp_ordered(">=", number, self.example.limit)
        stop = to.choose(forced, to.number(1.0), to.logistic(halt))
        finish = to.mul(running, stop)
        to.sync()
        seen = [
            to.load_each(self.own["tape"], target, there)
            for target, there in zip(self.example.targets, self.example.cells, strict=True)
        ]
        cost = to.nothing
        if shape.loss == "average":
            mixed = [to.fma(finish, own, total) for own, total in zip(seen, mixed, strict=True)]
        else:
            cost = self._cost(seen)
        if shape.gradient:
            to.store_columns(seen, episode.part(record, "seen"))
        for place, value in enumerate((running, stop, finish, cost)):
            to.store_uniform(value, episode.part(record, "halting"), place)
        counted = to.at.fcmp_ordered("<=", number, self.example.limit)
        mean = to.mul(uncertain, to.number(1.0 / shape.wiring.wires))
        return [
            to.mul(running, to.sub(to.number(1.0), stop)),
            to.fma(finish, cost, loss),
            to.add(entropy, to.choose(counted, mean, to.nothing)),
            to.fma(finish, number, time),
            *mixed,
            *[column for register in registers for column in register],
            *state,
        ]

    def _circuit(self, step: Value, registers: list[Columns], record: Value) -> list[Columns]:
        to, shape, episode = self.to, self.shape, self.episode
        values, wire, writes = list(registers), 0, 0
        for module in shape.wiring.modules:
            arguments = []
            for _ in range(module.arity):
                arguments.append(episode.wires.mixed(wire, values))
                if shape.gradient:
                    to.store_columns(arguments[-1], episode.part(record, "arguments", wire))
                wire += 1
            values.append(episode.fuzzy.forward(module.name, arguments, episode.tapes(step, writes)))
            writes += module.name == "WRITE"
        if shape.gradient:
            for v, row in shape.value_rows.items():
                to.store_columns(values[v], episode.part(record, "values", row))
        fresh = [episode.wires.mixed(wire + number, values) for number in range(shape.registers)]
        return [episode.fuzzy.renormalised(register) for register in fresh]

    def _cost(self, seen: Columns) -> Value:
        """The negative log-likelihood of what is expected."""
        to, terms = self.to, []
        for own, share in zip(seen, self.example.shares, strict=True):
            log = to.logarithm(to.at_least(own, self.episode.epsilon))
            terms.append(to.mul(log, share))
        return to.at.fneg(to.total(terms))

    def _predict(self) -> None:
        """The most probable value of every cell of the memory averaged with the weights p_t."""
        to, shape, episode = self.to, self.shape, self.episode
        last = to.at.sub(self.example.steps, to.index(1))
        to.sync()
        for column in range(shape.columns):
            begin = column * LANES * shape.row
            rows = min(LANES, shape.rows - column * LANES)

            def add(step: Value, sums: list[Value], begin=begin, rows=rows) -> list[Value]:
                for ahead in range(AT_ONCE):
                    here = to.at.add(step, to.index(ahead))
                    over = to.at.icmp_signed(">", here, last)
                    here = to.at.select(over, last, here)
                    record = episode.frame.record(episode.records, here)
                    finish = episode.load_uniform(episode.part(record, "halting"), FINISH)
                    finish = to.choose(to.spread(over), to.nothing, finish)
                    version = episode.version(here, shape.writes)
                    there = to.columns(to.place(version, begin), 0, rows * shape.columns)
                    sums = [to.fma(finish, own, total) for own, total in zip(there, sums, strict=True)]
                return sums

            sums = to.repeat(self.example.steps, add, [to.nothing] * (rows * shape.columns), step=AT_ONCE)
            self._store_best(column, episode.grouped(sums))

    def _store_best(self, column: int, averages: list[Columns]) -> None:
        """The lowest of the most probable values of 32 cells, a lane each; tapes have more for padding."""
        to, shape = self.to, self.shape
        found = to.whole(0)
        for number, average in enumerate(averages):
            top = to.largest_chance(average)
            equal = [to.at.fcmp_ordered("==", own, top) for own in average]
            there = [to.at.and_(own, to.before(shape.size, place)) for place, own in enumerate(equal)]
            found = to.choose(to.only(number), to.first_lane(there, shape.size - 1), found)
        start = to.at.mul(self.episode.frame.example, to.index(shape.size))
        place = to.at.add(to.spread(to.at.add(start, to.index(column * LANES))), to.lane)
        predicted, cells = self.episode.frame.buffers["predicted"], to.before(shape.size, column)
        to.store_each(found, predicted, place, cells, whole=True)
