"""The forward pass of an example: from its memory to its outcomes, keeping what the backward pass needs."""

from __future__ import annotations

from nram.llvm import Value
from nram.machine.kernels.common.halting import Halting, likelihood, log_share
from nram.machine.kernels.common.vector_math import logistic
from nram.machine.kernels.gpu.arrangement import QUAD
from nram.machine.kernels.gpu.episode import Episode, Example
from nram.machine.kernels.gpu.shape import LANES
from nram.machine.kernels.gpu.warps import Columns

RUNNING, WILLING, FINISH, COST = range(4)  # what `halting` holds in a record
AT_ONCE = 6  # steps whose WRITEs are read at the same time for the prediction


class ForwardPass:
    def __init__(self, episode: Episode, example: Example):
        self.episode, self.example = episode, example
        self.code, self.shape, self.own = episode.code, episode.shape, episode.own

    def run(self) -> Columns:
        """All steps and the outcomes; returns the averaged likelihoods, for the footnote's loss."""
        code, shape = self.code, self.shape
        tape = self._write_memory()
        begin = [code.number(1.0), *[code.nothing] * (3 + shape.columns)]
        begin += [column for _ in range(shape.registers) for column in code.certain(0, shape.columns)]
        begin += [column for row in tape for column in row] + self.episode.network.start()
        _, loss, entropy, time, *rest = code.repeat(self.example.steps, self._step, begin)
        mixed = rest[: shape.columns]
        if shape.loss == "average":
            loss = self._cost(mixed)
        limit = self.example.limit
        outcomes = [loss, code.divide(entropy, limit), code.divide(time, limit)]
        for row, value in enumerate(outcomes):
            place = code.at.add(self.episode.frame.example, code.index(row * shape.batch))
            code.store_uniform(value, self.episode.frame.buffers["outcomes"], place)
        self._predict()
        return mixed

    def _write_memory(self) -> list[Columns]:
        """The tape at the start; returns its rows if they are to be held in registers."""
        code, shape = self.code, self.shape

        def store(cell: Value, _: list[Value]) -> list[Value]:
            self._store_row(cell, self._first_memory(cell))
            return []

        if shape.tape_held:
            rows = [self._first_memory(code.index(cell)) for cell in range(shape.size)]
            rows += [[code.nothing] * shape.columns] * (shape.rows - shape.size)
            for cell, row in enumerate(rows):
                self._store_row(code.index(cell), row)
            return rows
        code.repeat(shape.size, store)
        for cell in range(shape.size, shape.rows):
            self._store_row(code.index(cell), [code.nothing] * shape.columns)
        return []

    def _store_row(self, cell: Value, row: Columns) -> None:
        code, shape = self.code, self.shape
        place = code.at.mul(cell, code.index(shape.row))
        code.store_columns(row, self.own["tape"], place)
        if shape.gradient:
            code.store_columns(row, self.episode.versions, place)

    def _step(self, step: Value, held: list[Value]) -> list[Value]:
        code, shape, episode = self.code, self.shape, self.episode
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
        if shape.straight_through:
            code.sync()
            episode.wires.harden()  # after the record: backwards the wires are soft
        registers = self._circuit(step, registers, tape, record)
        halting = Halting(code, shape, self.example.limit, step)
        willing = logistic(code, halt)
        stop = halting.stop(willing)
        finish = code.mul(sums[RUNNING], stop)
        code.sync()
        seen = [
            code.load_each(self.own["tape"], target, there)
            for target, there in zip(self.example.targets, self.example.cells, strict=True)
        ]
        cost = code.nothing
        if shape.loss == "average":
            mixed = [code.fma(finish, own, total) for own, total in zip(seen, mixed, strict=True)]
        else:
            cost = self._cost([likelihood(code, shape, own) for own in seen])
        if shape.gradient:
            code.store_columns(seen, episode.part(record, "seen"))
        for index, value in enumerate((sums[RUNNING], willing, finish, cost)):
            code.store_uniform(value, episode.part(record, "halting"), index)
        return [
            *halting.add(sums, stop, finish, cost, uncertain),
            *mixed,
            *[column for row in (*registers, *tape) for column in row],
            *state,
        ]

    def _circuit(self, step: Value, registers: list[Columns], tape: list[Columns], record: Value) -> list[Columns]:
        """The registers after a step; the tape is changed in its place."""
        code, shape, episode = self.code, self.shape, self.episode
        values, wire, writes = list(registers), 0, 0
        for module in shape.wiring.modules:
            arguments = []
            for _ in range(module.arity):
                arguments.append(episode.wires.mixed(wire, values))
                if wire in shape.kept_wires:
                    code.store_columns(arguments[-1], episode.part(record, "arguments", shape.kept_wires[wire]))
                wire += 1
            values.append(episode.fuzzy.forward(module, arguments, episode.tapes(step, writes, tape)))
            writes += module.name == "WRITE"
        if shape.gradient:
            for v, row in shape.value_rows.items():
                code.store_columns(values[v], episode.part(record, "values", row))
        fresh = [episode.wires.mixed(wire + number, values) for number in range(shape.registers)]
        return [episode.fuzzy.renormalised(register) for register in fresh]

    def _cost(self, seen: Columns) -> Value:
        """The negative log-likelihood of what is expected."""
        pairs = zip(seen, self.example.shares, strict=True)
        terms = [log_share(self.code, own, share, self.episode.epsilon) for own, share in pairs]
        return self.code.at.fneg(self.code.total(terms))

    def _predict(self) -> None:
        """The most probable value of every cell of the memory averaged with the weights p_t.

        A cell's average is a sum over all WRITEs of the value written, times the pointer's weight there, times how much
        of it is left at the end of the episode: the sum of p_t over the steps t from this one on, each p_t times all
        that later WRITEs up to t left. It is summed up from the last WRITE to the first, and what is left of the first
        memory is added."""
        code, shape = self.code, self.shape
        last = code.at.sub(self.example.steps, code.index(1))
        code.sync()
        for column in range(shape.columns):
            rows = min(LANES, shape.rows - column * LANES)

            def add(number: Value, held: list[Value], column=column, rows=rows) -> list[Value]:
                loaded = []
                for ahead in range(AT_ONCE):
                    here = code.at.sub(last, code.at.add(number, code.index(ahead)))
                    loaded.append(self._writes_of(here, column))
                left, *sums = held
                for finish, writes in loaded:
                    left = code.add(left, finish)
                    for pointer, value in writes:
                        share = code.mul(left, pointer)
                        left = code.sub(left, share)
                        sums = self._add_rows(share, [value] * rows, sums)
                return [left, *sums]

            begin = [code.nothing] * (1 + rows * shape.columns)
            left, *sums = code.repeat(self.example.steps, add, begin, step=AT_ONCE)
            at_first = [
                self._first_memory(code.index(column * LANES + row))
                for row in range(min(rows, shape.size - column * LANES))
            ]
            at_first += [[code.nothing] * shape.columns] * (rows - len(at_first))
            self._store_best(column, self.episode.grouped(self._add_rows(left, at_first, sums)))

    def _writes_of(self, step: Value, column: int) -> tuple[Value, list[tuple[Value, Columns]]]:
        """p_t, and the WRITEs of a step from the last to the first: a column of the pointer, and the value. Before the
        first step p_t and pointers are 0."""
        code, shape, episode = self.code, self.shape, self.episode
        before = code.at.icmp_signed("<", step, code.index(0))
        record = episode.frame.record(episode.records, code.at.select(before, code.index(0), step))
        missing, writes = code.spread(before), []
        for wire in shape.write_wires:
            rows = (shape.kept_wires[wire], shape.kept_wires[wire + 1])
            pointer = code.load(episode.part(record, "arguments", rows[0]), column * LANES)
            value = code.columns(episode.part(record, "arguments", rows[1]), 0, shape.columns)
            writes.append((code.choose(missing, code.nothing, pointer), value))
        finish = episode.load_uniform(episode.part(record, "halting"), FINISH)
        return code.choose(missing, code.nothing, finish), writes[::-1]

    def _add_rows(self, weights: Value, rows: list[Columns], sums: list[Value]) -> list[Value]:
        """The sums of 32 rows or less, each with a row times the weight that a lane has for it."""
        code, width = self.code, self.shape.columns
        code.publish([weights], self.own["room"])
        quads = [code.quad(self.own["room"], start) for start in range(0, len(rows), QUAD)]
        own = [weight for quad in quads for weight in quad]
        found = []
        for number, (weight, row) in enumerate(zip(own, rows, strict=True)):
            found += [
                code.fma(weight, part, total)
                for part, total in zip(row, sums[number * width : (number + 1) * width], strict=True)
            ]
        return found

    def _first_memory(self, cell: Value) -> Columns:
        """A cell at the start."""
        code, shape = self.code, self.shape
        value, one = self.episode.memory_value(cell), code.number(1.0)
        places = [code.at.add(code.lane, code.whole(column * LANES)) for column in range(shape.columns)]
        hits = [code.choose(code.at.icmp_signed("==", place, value), one, code.nothing) for place in places]
        return [code.part(hit, shape.size, number) for number, hit in enumerate(hits)]

    def _store_best(self, column: int, averages: list[Columns]) -> None:
        """The lowest of the most probable values of 32 cells, a lane each; tapes have more for padding."""
        code, shape = self.code, self.shape
        found = code.whole(0)
        for number, average in enumerate(averages):
            top = code.largest_chance(average)
            equal = [code.at.fcmp_ordered("==", own, top) for own in average]
            there = [code.at.and_(own, code.before(shape.size, place)) for place, own in enumerate(equal)]
            found = code.choose(code.only(number), code.first_lane(there, shape.size - 1), found)
        start = code.at.mul(self.episode.frame.example, code.index(shape.size))
        place = code.at.add(code.spread(code.at.add(start, code.index(column * LANES))), code.lane)
        predicted, cells = self.episode.frame.buffers["predicted"], code.before(shape.size, column)
        code.store_each(found, predicted, place, cells, whole=True)
