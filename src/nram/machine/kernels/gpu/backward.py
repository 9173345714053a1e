"""The backward pass of an example: from the seeds of the gradient to those of every layer's outputs, in the records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from nram.llvm import Value
from nram.machine.kernels.common.halting import Halting, likelihood, log_slope
from nram.machine.kernels.common.specification import ENTROPY, LOSS, TIME
from nram.machine.kernels.gpu.episode import Episode, Example
from nram.machine.kernels.gpu.forward import COST, FINISH, RUNNING, WILLING
from nram.machine.kernels.gpu.fuzzy import TapesBack, each
from nram.machine.kernels.gpu.shape import LANES
from nram.machine.kernels.gpu.warps import Columns
from nram.modules import Module


@dataclass(frozen=True)
class Call:
    """A module in the circuit."""

    index: int
    module: Module
    wire: int  # its first
    writes: int  # how many WRITEs come before it


@dataclass(frozen=True)
class Kept:
    """What is loaded of a step before its computation begins."""

    halting: list[Value]
    seen: Columns
    weights: list[Value]
    values: list[Columns]
    arguments: list[list[Columns]]  # of the calls of the first stretch
    tape: Callable[[int], Columns]  # the rows that the last of these calls saw


class BackwardPass:
    """The code of the backward pass."""

    def __init__(self, episode: Episode, example: Example, mixed: Columns):
        self.episode, self.example, self.mixed = episode, example, mixed
        self.code, self.shape, self.own = episode.code, episode.shape, episode.own
        self.stretches = list(self._stretches())

    def _stretches(self) -> Iterator[list[Call]]:
        """The modules from the last to the first, cut after each one that touches the memory. What a stretch needs is
        loaded at once."""
        stretch, wire, writes = [], self.shape.argument_wires, self.shape.writes
        for index, module in reversed(list(enumerate(self.shape.wiring.modules))):
            wire -= module.arity
            writes -= module.name == "WRITE"
            if module.arity:
                stretch.append(Call(index, module, wire, writes))
            if module.memory != "nothing":
                yield stretch
                stretch = []
        if stretch:
            yield stretch

    def run(self) -> None:
        """All steps, from the last to the first. The shared memory of the tape now holds its gradient."""
        code, shape = self.code, self.shape
        code.sync()

        def clear(offset: Value, _: list[Value]) -> list[Value]:
            code.store_columns([code.nothing] * shape.columns, self.own["tape"], offset)
            return []

        code.repeat(shape.tape, clear, step=shape.row)
        code.sync()
        # The loss of the footnote takes one logarithm of the average, so its slopes are the same at every step.
        self.seeds = [self._seed(row) for row in (LOSS, ENTROPY, TIME)]
        self.slopes = [self._slope(*pair) for pair in enumerate(self.mixed)] if shape.loss == "average" else []
        last = code.at.sub(self.example.steps, code.index(1))
        carried = (shape.registers + 2 * self._left_pending()) * shape.columns + len(self.episode.network.start())
        begin = [code.nothing] * (1 + carried)
        code.repeat(self.example.steps, lambda index, rest: self._step_back(code.at.sub(last, index), *rest), begin)

    def _left_pending(self) -> int:
        """How many READs are still pending at the end of a step, which is the beginning of its computation."""
        left, cropped = 0, False
        for module in reversed(self.shape.wiring.modules):
            if module.name == "READ" and cropped and left < self.shape.pending:
                left += 1
            elif module.memory != "nothing":
                left, cropped = 0, True
        return left

    def _seed(self, row: int) -> Value:
        code = self.code
        offset = code.at.add(self.episode.frame.example, code.index(row * self.shape.batch))
        return code.spread(code.load_scalar(self.episode.frame.buffers["seeds"], offset))

    def _slope(self, column: int, seen: Value) -> Value:
        """The gradient of the loss with respect to the number that it takes the logarithm of."""
        code = self.code
        return log_slope(code, seen, code.mul(self.seeds[LOSS], self.example.shares[column]), self.episode.epsilon)

    def _step_back(self, step: Value, to_running: Value, *rest: Value) -> list[Value]:
        """One step. `to_running` is the gradient with respect to the probability that the machine runs afterwards; then
        come pointer and gradient of each pending READ, the registers' gradients, and that of the controller's state."""
        code, shape, episode = self.code, self.shape, self.episode
        count = 2 * self._left_pending()
        width = (count + shape.registers) * shape.columns
        rows, to_state = episode.grouped([*rest[:width]]), [*rest[width:]]
        pending = list(zip(rows[:count:2], rows[1:count:2], strict=True))
        to_registers = rows[count:]
        record = episode.frame.record(episode.records, step)
        kept = self._fetch(step, record)
        # Without this, the compiler would move each load to where its number is used, and every load would wait.
        code.sync()
        halting = Halting(code, shape, self.example.limit, step)
        to_finish = code.add(halting.time_back(self.seeds[TIME]), self._observe_back(kept))
        episode.wires.restore(kept.weights, kept.values)
        code.sync()
        to_halt, to_running = halting.back(kept.halting[RUNNING], kept.halting[WILLING], to_finish, to_running)
        to_entropy = halting.entropy_back(self.seeds[ENTROPY])
        to_registers = self._circuit_back(step, record, kept, to_registers, to_entropy, pending)
        rows = episode.network.kept(record)
        to_registers, to_state = episode.network.backward(to_registers, to_halt, to_state, record, rows)
        rows = [*(row for both in pending for row in both), *to_registers]
        return [to_running, *[column for row in rows for column in row], *to_state]

    def _fetch(self, step: Value, record: Value) -> Kept:
        """All loads of a step at once, so that it waits for global memory once."""
        code, shape, episode = self.code, self.shape, self.episode
        width = shape.columns
        halting = code.quad(episode.part(record, "halting"))
        seen = code.columns(episode.part(record, "seen"), 0, width)
        weights = episode.wires.kept(episode.part(record, "weights"))
        values = code.columns(episode.part(record, "values"), 0, len(shape.value_rows) * width)
        first = self.stretches[0] if self.stretches else []
        arguments = self._arguments(record, first)
        tape = self._version(step, first[-1].writes if first else 0)
        return Kept(halting, seen, weights, episode.grouped(values), arguments, tape)

    def _arguments(self, record: Value, stretch: list[Call]) -> list[list[Columns]]:
        code, episode, width = self.code, self.episode, self.shape.columns
        starts = [(episode.part(record, "arguments", call.wire), call.module.arity * width) for call in stretch]
        return [episode.grouped(code.columns(start, 0, count)) for start, count in starts]

    def _version(self, step: Value, writes: int) -> Callable[[int], Columns]:
        """The rows of a version of the tape, loaded at once if the registers have room for them."""
        code, shape, begin = self.code, self.shape, self.episode.version(step, writes)
        # More rows than this would push other values out of the registers.
        if shape.rows * shape.columns > LANES:
            return lambda index: code.columns(begin, index * shape.row, shape.columns)
        return self.episode.grouped(code.columns(begin, 0, shape.rows * shape.columns)).__getitem__

    def _observe_back(self, kept: Kept) -> Value:
        """Add to the memory's gradient; returns the loss's gradient with respect to p_t."""
        code, shape, tape = self.code, self.shape, self.own["tape"]
        likelihoods = [likelihood(code, shape, seen) for seen in kept.seen]
        slopes = self.slopes or [self._slope(*pair) for pair in enumerate(likelihoods)]
        for slope, target, there in zip(slopes, self.example.targets, self.example.cells, strict=True):
            before = code.load_each(tape, target, there)
            code.store_each(code.fma(kept.halting[FINISH], slope, before), tape, target, there)
        if shape.loss == "average":
            return code.total(each(code.mul, slopes, kept.seen))
        return code.mul(self.seeds[LOSS], kept.halting[COST])

    def _circuit_back(
        self,
        step: Value,
        record: Value,
        kept: Kept,
        to_registers: list[Columns],
        to_entropy: Value,
        pending: list[tuple[Columns, Columns]],
    ) -> list[Columns]:
        """The registers' gradients before the step, from those after it. The tape's gradient changes as well."""
        code, shape, fuzzy = self.code, self.shape, self.episode.fuzzy
        to_values: list[Columns] = [[code.nothing] * shape.columns for _ in shape.supports]
        for wire, gradient in enumerate(to_registers, shape.argument_wires):
            self._receive(wire, fuzzy.crop(gradient), to_values, to_entropy)
        # The tape's gradient is clipped once a step, by the first module that touches it on the way back.
        arguments, tape, crop_tape = kept.arguments, kept.tape, True
        for index, stretch in enumerate(self.stretches):
            if index > 0:  # what the first stretch needs is loaded already
                arguments = self._arguments(record, stretch)
                code.sync()
            for call, given in zip(stretch, arguments, strict=True):
                if call.module.memory != "nothing" and index > 0:
                    tape = self._version(step, call.writes)
                gradient = fuzzy.crop(to_values[shape.registers + call.index])
                tapes = TapesBack(self.own["tape"], tape, crop_tape, pending)
                found = fuzzy.backward(call.module, given, gradient, tapes)
                crop_tape = crop_tape and call.module.memory == "nothing"
                for wire, received in enumerate(found, call.wire):
                    self._receive(wire, received, to_values, to_entropy)
        return to_values[: shape.registers]

    def _receive(self, wire: int, gradient: Columns, to_values: list[Columns], to_entropy: Value) -> None:
        """Pass the gradient of a wire on to the values that it chooses from, and gather it for that of its weights."""
        self.episode.wires.pass_back(wire, gradient, to_values)
        self.episode.wires.receive(wire, gradient, to_entropy)
