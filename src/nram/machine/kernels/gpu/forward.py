"""The forward pass of an example: from its memory to its outcomes. It keeps what the backward pass needs."""

from __future__ import annotations

from nram.llvm import Value
from nram.machine.kernels.common.halting import Halting, likelihood, log_share
from nram.machine.kernels.common.vector_math import logistic
from nram.machine.kernels.gpu.arrangement import QUAD
from nram.machine.kernels.gpu.episode import Episode, Example
from nram.machine.kernels.gpu.shape import LANES
from nram.machine.kernels.gpu.warps import Columns

RUNNING, WILLING, FINISH, COST = range(4)  # what `halting` holds in a record
AT_ONCE = 6  # steps whose WRITEs are loaded together for the prediction, so that loads wait together


class ForwardPass:
    """The code of the forward pass."""

    def __init__(self, episode: Episode, example: Example):
        self.episode, self.example = episode, example
        self.code, self.shape, self.own = episode.code, episode.shape, episode.own

    def run(self) -> Columns:
        """All steps and the outcomes; returns the averaged likelihoods, for the loss of the paper's footnote."""
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
            offset = code.at.add(self.episode.frame.example, code.index(row * shape.batch))
            code.store_uniform(value, self.episode.frame.buffers["outcomes"], offset)
        self._predict()
        return mixed

    def _write_memory(self) -> list[Columns]:
        """Store the tape at the start; returns its rows if they stay in registers."""
        code, shape = self.code, self.shape

        def store(cell: Value, _: list[Value]) -> list[Value]:
            self._store_row(cell, self._first_memory(cell))
            return []

        if shape.tape_held:  # a small tape stays in registers, and the copy in shared memory serves the loss
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
        offset = code.at.mul(cell, code.index(shape.row))
        code.store_columns(row, self.own["tape"], offset)
        if shape.gradient:
            code.store_columns(row, self.episode.versions, offset)

    def _step(self, step: Value, carried: list[Value]) -> list[Value]:
        """One step. Carried are the sums of `Halting.add`, the averaged likelihoods, the machine's registers, the tape
        (if the GPU's registers hold it), and the controller's state."""
        code, shape, episode = self.code, self.shape, self.episode
        sums, rest = carried[:4], carried[4:]
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
            episode.wires.harden()  # after the record was written: the backward pass is soft
        # The circuit runs first, then f_t decides: the flags before the step chose both.
        registers = self._circuit(step, registers, tape, record)
        halting = Halting(code, shape, self.example.limit, step)
        willing = logistic(code, halt)
        stop = halting.stop(willing)
        finish = code.mul(sums[RUNNING], stop)
        code.sync()  # the lanes read cells that other lanes wrote
        seen = [
            code.load_each(self.own["tape"], target, there)
            for target, there in zip(self.example.targets, self.example.cells, strict=True)
        ]
        cost = code.nothing
        if shape.loss == "average":
            mixed = [code.fma(finish, column, total) for column, total in zip(seen, mixed, strict=True)]
        else:
            cost = self._cost([likelihood(code, shape, column) for column in seen])
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
        """The registers after a step; the tape changes in place."""
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
            writes += module.memory == "writes"
        if shape.gradient:
            for v, row in shape.value_rows.items():
                code.store_columns(values[v], episode.part(record, "values", row))
        fresh = [episode.wires.mixed(wire + register, values) for register in range(shape.registers)]
        return [episode.fuzzy.renormalised(register) for register in fresh]

    def _cost(self, seen: Columns) -> Value:
        """The loss: the negative log-likelihood of the expected values."""
        pairs = zip(seen, self.example.shares, strict=True)
        terms = [log_share(self.code, column, share, self.episode.epsilon) for column, share in pairs]
        return self.code.at.fneg(self.code.total(terms))

    def _predict(self) -> None:
        """The most probable value of every cell of the memory averaged with the weights p_t.

        The averaged memory is not kept from step to step, because it would be a second tape. A cell's average is a sum
        over all WRITEs: the value written, times the pointer's weight there, times the share of it that is left at the
        end. That share is the sum over the later steps t of p_t times all that the WRITEs in between leave. We sum from
        the last WRITE to the first, and add what is left of the first memory."""
        code, shape = self.code, self.shape
        last = code.at.sub(self.example.steps, code.index(1))
        code.sync()
        for column in range(shape.columns):
            rows = min(LANES, shape.rows - column * LANES)

            def add(index: Value, carried: list[Value], column=column, rows=rows) -> list[Value]:
                loaded = []
                for ahead in range(AT_ONCE):
                    step = code.at.sub(last, code.at.add(index, code.index(ahead)))
                    loaded.append(self._writes_of(step, column))
                left, *sums = carried
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
        """p_t, and the WRITEs of a step from the last to the first: a column of the pointer, and the value. For steps
        before the first, p_t and the pointers are 0."""
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
        """Add to each of up to 32 sums a row times the weight that the lane of the same index holds."""
        code = self.code
        code.publish([weights], self.own["room"])
        quads = [code.quad(self.own["room"], start) for start in range(0, len(rows), QUAD)]
        scales = [weight for quad in quads for weight in quad]
        columns = [(weight, column) for weight, row in zip(scales, rows, strict=True) for column in row]
        return [code.fma(weight, column, total) for (weight, column), total in zip(columns, sums, strict=True)]

    def _first_memory(self, cell: Value) -> Columns:
        """The distribution of a cell at the start."""
        code, shape = self.code, self.shape
        value, one = self.episode.memory_value(cell), code.number(1.0)
        numbers = [code.at.add(code.lane, code.whole(column * LANES)) for column in range(shape.columns)]
        hits = [code.choose(code.at.icmp_signed("==", number, value), one, code.nothing) for number in numbers]
        return [code.part(hit, shape.size, column) for column, hit in enumerate(hits)]

    def _store_best(self, column: int, averages: list[Columns]) -> None:
        """Predict the most probable value of 32 cells, one per lane: the lowest if there are several. Rows of padding
        have no lane to be stored from."""
        code, shape = self.code, self.shape
        found = code.whole(0)
        for lane, average in enumerate(averages):
            top = code.largest_chance(average)
            equal = [code.at.fcmp_ordered("==", part, top) for part in average]
            there = [code.at.and_(part, code.before(shape.size, index)) for index, part in enumerate(equal)]
            found = code.choose(code.only(lane), code.first_lane(there, shape.size - 1), found)
        start = code.at.mul(self.episode.frame.example, code.index(shape.size))
        offset = code.at.add(code.spread(code.at.add(start, code.index(column * LANES))), code.lane)
        predicted, cells = self.episode.frame.buffers["predicted"], code.before(shape.size, column)
        code.store_each(found, predicted, offset, cells, whole=True)
