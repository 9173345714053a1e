"""The forward pass of an example: from its memory to its outcomes, keeping what the backward pass needs."""

from __future__ import annotations

from nram.llvm import Value
from nram.machine.kernels.common.halting import Halting, likelihood, log_share
from nram.machine.kernels.gpu.arrangement import QUAD
from nram.machine.kernels.gpu.episode import Episode, Example
from nram.machine.kernels.gpu.shape import LANES
from nram.machine.kernels.gpu.warps import Columns

RUNNING, WILLING, FINISH, COST = range(4)  # what `halting` holds in a record
AT_ONCE = 6  # steps whose WRITEs are read at the same time for the prediction


class ForwardPass:
    def __init__(self, episode: Episode, example: Example):
        self.episode, self.example = episode, example
        self.to, self.shape, self.own = episode.code, episode.shape, episode.own

    def run(self) -> Columns:
        """All steps and the outcomes; returns the averaged likelihoods, for the footnote's loss."""
        to, shape = self.to, self.shape
        tape = self._write_memory()
        begin = [to.number(1.0), *[to.nothing] * (3 + shape.columns)]
        begin += [column for _ in range(shape.registers) for column in to.certain(0, shape.columns)]
        begin += [column for row in tape for column in row] + self.episode.network.start()
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

    def _write_memory(self) -> list[Columns]:
        """The tape at the start; returns its rows if they are to be held in registers."""
        to, shape = self.to, self.shape

        def store(cell: Value, _: list[Value]) -> list[Value]:
            self._store_row(cell, self._first_memory(cell))
            return []

        if shape.tape_held:
            rows = [self._first_memory(to.index(cell)) for cell in range(shape.size)]
            rows += [[to.nothing] * shape.columns] * (shape.rows - shape.size)
            for cell, row in enumerate(rows):
                self._store_row(to.index(cell), row)
            return rows
        to.repeat(shape.size, store)
        for cell in range(shape.size, shape.rows):
            self._store_row(to.index(cell), [to.nothing] * shape.columns)
        return []

    def _store_row(self, cell: Value, row: Columns) -> None:
        to, shape = self.to, self.shape
        place = to.at.mul(cell, to.index(shape.row))
        to.store_columns(row, self.own["tape"], place)
        if shape.gradient:
            to.store_columns(row, self.episode.versions, place)

    def _step(self, step: Value, held: list[Value]) -> list[Value]:
        to, shape, episode = self.to, self.shape, self.episode
        sums, rest = held[:4], held[4:]
        mixed, rest = rest[: shape.columns], rest[shape.columns :]
        width = shape.registers * shape.columns
        registers, rest = episode.grouped(rest[:width]), rest[width:]
        width = shape.rows * shape.columns if shape.tape_held else 0
        tape, state = episode.grouped(rest[:width]), rest[width:]
        record = episode.frame.record(episode.records, step)
        state = episode.network.forward(registers, state, record)
        halt = episode.load_uniform(self.own["wires"], shape.arrangement.end)
        uncertain = episode.wires.choose()
        if shape.gradient:
            episode.wires.keep(episode.part(record, "weights"))
        if shape.hard:
            to.sync()
            episode.wires.harden()  # after the record: backwards the wires are soft
        registers = self._circuit(step, registers, tape, record)
        halting = Halting(to, shape, self.example.limit, step)
        willing = to.logistic(halt)
        stop = halting.stop(willing)
        finish = to.mul(sums[RUNNING], stop)
        to.sync()
        seen = [
            to.load_each(self.own["tape"], target, there)
            for target, there in zip(self.example.targets, self.example.cells, strict=True)
        ]
        cost = to.nothing
        if shape.loss == "average":
            mixed = [to.fma(finish, own, total) for own, total in zip(seen, mixed, strict=True)]
        else:
            cost = self._cost([likelihood(to, shape, own) for own in seen])
        if shape.gradient:
            to.store_columns(seen, episode.part(record, "seen"))
        for index, value in enumerate((sums[RUNNING], willing, finish, cost)):
            to.store_uniform(value, episode.part(record, "halting"), index)
        return [
            *halting.add(sums, stop, finish, cost, uncertain),
            *mixed,
            *[column for row in (*registers, *tape) for column in row],
            *state,
        ]

    def _circuit(self, step: Value, registers: list[Columns], tape: list[Columns], record: Value) -> list[Columns]:
        """The registers after a step; the tape is changed in its place."""
        to, shape, episode = self.to, self.shape, self.episode
        values, wire, writes = list(registers), 0, 0
        for module in shape.wiring.modules:
            arguments = []
            for _ in range(module.arity):
                arguments.append(episode.wires.mixed(wire, values))
                if wire in shape.kept_wires:
                    to.store_columns(arguments[-1], episode.part(record, "arguments", shape.kept_wires[wire]))
                wire += 1
            values.append(episode.fuzzy.forward(module, arguments, episode.tapes(step, writes, tape)))
            writes += module.name == "WRITE"
        if shape.gradient:
            for v, row in shape.value_rows.items():
                to.store_columns(values[v], episode.part(record, "values", row))
        fresh = [episode.wires.mixed(wire + number, values) for number in range(shape.registers)]
        return [episode.fuzzy.renormalised(register) for register in fresh]

    def _cost(self, seen: Columns) -> Value:
        """The negative log-likelihood of what is expected."""
        pairs = zip(seen, self.example.shares, strict=True)
        terms = [log_share(self.to, own, share, self.episode.epsilon) for own, share in pairs]
        return self.to.at.fneg(self.to.total(terms))

    def _predict(self) -> None:
        """The most probable value of every cell of the memory averaged with the weights p_t.

        A cell's average is a sum over all WRITEs of the value written, times the pointer's weight there, times how much
        of it is left at the end of the episode: the sum of p_t over the steps t from this one on, each p_t times all
        that later WRITEs up to t left. It is summed up from the last WRITE to the first, and what is left of the first
        memory is added."""
        to, shape = self.to, self.shape
        last = to.at.sub(self.example.steps, to.index(1))
        to.sync()
        for column in range(shape.columns):
            rows = min(LANES, shape.rows - column * LANES)

            def add(number: Value, held: list[Value], column=column, rows=rows) -> list[Value]:
                loaded = []
                for ahead in range(AT_ONCE):
                    here = to.at.sub(last, to.at.add(number, to.index(ahead)))
                    loaded.append(self._writes_of(here, column))
                left, *sums = held
                for finish, writes in loaded:
                    left = to.add(left, finish)
                    for pointer, value in writes:
                        share = to.mul(left, pointer)
                        left = to.sub(left, share)
                        sums = self._add_rows(share, [value] * rows, sums)
                return [left, *sums]

            begin = [to.nothing] * (1 + rows * shape.columns)
            left, *sums = to.repeat(self.example.steps, add, begin, step=AT_ONCE)
            at_first = [
                self._first_memory(to.index(column * LANES + row))
                for row in range(min(rows, shape.size - column * LANES))
            ]
            at_first += [[to.nothing] * shape.columns] * (rows - len(at_first))
            self._store_best(column, self.episode.grouped(self._add_rows(left, at_first, sums)))

    def _writes_of(self, step: Value, column: int) -> tuple[Value, list[tuple[Value, Columns]]]:
        """p_t, and the WRITEs of a step from the last to the first: a column of the pointer, and the value. Before the
        first step p_t and pointers are 0."""
        to, shape, episode = self.to, self.shape, self.episode
        before = to.at.icmp_signed("<", step, to.index(0))
        record = episode.frame.record(episode.records, to.at.select(before, to.index(0), step))
        missing, writes = to.spread(before), []
        for wire in shape.write_wires:
            rows = (shape.kept_wires[wire], shape.kept_wires[wire + 1])
            pointer = to.load(episode.part(record, "arguments", rows[0]), column * LANES)
            value = to.columns(episode.part(record, "arguments", rows[1]), 0, shape.columns)
            writes.append((to.choose(missing, to.nothing, pointer), value))
        finish = episode.load_uniform(episode.part(record, "halting"), FINISH)
        return to.choose(missing, to.nothing, finish), writes[::-1]

    def _add_rows(self, weights: Value, rows: list[Columns], sums: list[Value]) -> list[Value]:
        """The sums of 32 rows or less, each with a row times the weight that a lane has for it."""
        to, width = self.to, self.shape.columns
        to.publish([weights], self.own["room"])
        quads = [to.quad(self.own["room"], start) for start in range(0, len(rows), QUAD)]
        own = [weight for quad in quads for weight in quad]
        found = []
        for number, (weight, row) in enumerate(zip(own, rows, strict=True)):
            found += [
                to.fma(weight, part, total)
                for part, total in zip(row, sums[number * width : (number + 1) * width], strict=True)
            ]
        return found

    def _first_memory(self, cell: Value) -> Columns:
        """A cell at the start."""
        to, shape = self.to, self.shape
        value, one = self.episode.memory_value(cell), to.number(1.0)
        places = [to.at.add(to.lane, to.whole(column * LANES)) for column in range(shape.columns)]
        hits = [to.choose(to.at.icmp_signed("==", place, value), one, to.nothing) for place in places]
        return [to.part(hit, shape.size, number) for number, hit in enumerate(hits)]

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
