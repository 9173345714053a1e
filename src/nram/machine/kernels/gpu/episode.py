"""One example through an episode: what its forward and its backward pass share."""

from __future__ import annotations

from dataclasses import dataclass

from nram.machine.kernels.gpu.cells import CellNetwork
from nram.machine.kernels.gpu.frame import CLIP, EPSILON, Frame
from nram.machine.kernels.gpu.fuzzy import Fuzzy, Tapes
from nram.machine.kernels.gpu.networks import Network
from nram.machine.kernels.gpu.shape import LANES
from nram.machine.kernels.gpu.warps import I32, Columns, Value
from nram.machine.kernels.gpu.wires import Wires


@dataclass(frozen=True)
class Example:
    """What is known of an example before it runs."""

    limit: Value  # as a number
    steps: Value
    targets: list[Value]  # for every cell where its expected value stands in a tape
    cells: list[Value]  # which lanes have a cell
    shares: Columns


class Episode:
    """An example's warp in the function that runs it."""

    def __init__(self, frame: Frame):
        self.frame, self.to, self.shape, self.own = frame, frame.to, frame.shape, frame.own
        self.epsilon = frame.option(EPSILON)
        self.fuzzy = Fuzzy(self.to, self.shape, self.own["room"], frame.option(CLIP))
        self.wires = Wires(self.to, self.shape, self.own, frame.shared, self.epsilon)
        network = CellNetwork if self.shape.controller == "lstm" else Network
        self.network = network(self.to, self.shape, frame.shared, self.own)
        self.records = frame.storage(frame.example, "records")
        self.versions = frame.storage(frame.example, "versions")

    def read(self) -> Example:
        to, shape, buffers = self.to, self.shape, self.frame.buffers
        limit, steps = self.frame.steps(self.frame.example)
        start = to.spread(to.at.mul(self.frame.example, to.index(shape.size)))
        targets, cells, shares = [], [], []
        for column in range(shape.columns):
            cell = to.at.add(to.lane, to.whole(column * LANES))
            there = to.before(shape.size, column)
            wanted = to.load_each(buffers["wanted"], to.at.add(start, cell), there, whole=True)
            beyond = to.at.icmp_unsigned(">", wanted, to.whole(shape.size - 1))
            wanted = to.choose(beyond, to.whole(shape.size - 1), wanted)
            targets.append(to.at.add(to.at.mul(cell, to.whole(shape.row)), wanted))
            cells.append(there)
            shares.append(to.load_each(buffers["shares"], to.at.add(start, cell), there))
        return Example(to.spread(to.at.sitofp(limit, to.scalar)), steps, targets, cells, shares)

    def version(self, step: Value, writes: int) -> Value:
        """The tape in step t after so many WRITEs, in global memory."""
        to, shape = self.to, self.shape
        number = to.at.add(to.at.mul(step, to.index(shape.writes)), to.index(writes))
        return to.place(self.versions, to.at.mul(number, to.index(shape.tape)))

    def tapes(self, step: Value, writes: int, rows: list[Columns]) -> Tapes:
        return Tapes(self.own["tape"], rows, self.version(step, writes + 1) if self.shape.gradient else None)

    def part(self, record: Value, name: str, row: int = 0) -> Value:
        """A row of distributions in a record."""
        return self.to.place(record, self.shape.record[name] + row * self.shape.row)

    def grouped(self, values: list[Value]) -> list[Columns]:
        """What a loop carries as single warps, as distributions."""
        width = self.shape.columns
        return [values[start : start + width] for start in range(0, len(values), width)]

    def load_uniform(self, pointer: Value, offset: int) -> Value:
        return self.to.spread(self.to.load_scalar(pointer, offset))

    def memory_value(self, cell: Value) -> Value:
        """The integer in a cell at the start."""
        to = self.to
        place = to.at.add(to.at.mul(self.frame.example, to.index(self.shape.size)), cell)
        return to.spread(to.load_scalar(self.frame.buffers["memory"], place, I32))
