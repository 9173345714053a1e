"""One example through an episode: what its forward and its backward pass share."""

from __future__ import annotations

from dataclasses import dataclass

from nram.llvm import I32, Value
from nram.machine.kernels.common.specification import CLIP, EPSILON
from nram.machine.kernels.gpu.cells import CellNetwork
from nram.machine.kernels.gpu.frame import Frame
from nram.machine.kernels.gpu.fuzzy import Fuzzy, Tapes
from nram.machine.kernels.gpu.networks import Network
from nram.machine.kernels.gpu.shape import LANES
from nram.machine.kernels.gpu.warps import Columns
from nram.machine.kernels.gpu.wires import Wires


@dataclass(frozen=True)
class Example:
    """What is known of an example before it runs."""

    limit: Value  # as a number
    steps: Value
    targets: list[Value]  # for every cell the offset of its expected value in a tape
    cells: list[Value]  # which lanes have a cell
    shares: Columns


class Episode:
    """An example's warp in the function that runs it."""

    def __init__(self, frame: Frame):
        self.frame, self.code, self.shape, self.own = frame, frame.code, frame.shape, frame.own
        self.epsilon = frame.option(EPSILON)
        self.fuzzy = Fuzzy(self.code, self.shape, self.own["room"], frame.option(CLIP))
        self.wires = Wires(self.code, self.shape, self.own, frame.shared, self.epsilon)
        network = CellNetwork if self.shape.controller == "lstm" else Network
        self.network = network(self.code, self.shape, frame.shared, self.own)
        self.records = frame.storage(frame.example, "records")
        self.versions = frame.storage(frame.example, "versions")

    def read(self) -> Example:
        code, shape, buffers = self.code, self.shape, self.frame.buffers
        limit, steps = self.frame.steps(self.frame.example)
        start = code.spread(code.at.mul(self.frame.example, code.index(shape.size)))
        targets, cells, shares = [], [], []
        for column in range(shape.columns):
            cell = code.at.add(code.lane, code.whole(column * LANES))
            there = code.before(shape.size, column)
            wanted = code.load_each(buffers["wanted"], code.at.add(start, cell), there, whole=True)
            beyond = code.at.icmp_unsigned(">", wanted, code.whole(shape.size - 1))
            wanted = code.choose(beyond, code.whole(shape.size - 1), wanted)
            targets.append(code.at.add(code.at.mul(cell, code.whole(shape.row)), wanted))
            cells.append(there)
            shares.append(code.load_each(buffers["shares"], code.at.add(start, cell), there))
        return Example(code.spread(code.at.sitofp(limit, code.scalar)), steps, targets, cells, shares)

    def version(self, step: Value, writes: int) -> Value:
        """The version of the tape in step t after so many WRITEs, in global memory."""
        code, shape = self.code, self.shape
        number = code.at.add(code.at.mul(step, code.index(shape.writes)), code.index(writes))
        return code.place(self.versions, code.at.mul(number, code.index(shape.tape)))

    def tapes(self, step: Value, writes: int, rows: list[Columns]) -> Tapes:
        return Tapes(self.own["tape"], rows, self.version(step, writes + 1) if self.shape.gradient else None)

    def part(self, record: Value, name: str, row: int = 0) -> Value:
        """A row of distributions in a record."""
        return self.code.place(record, self.shape.record[name] + row * self.shape.row)

    def grouped(self, values: list[Value]) -> list[Columns]:
        """Distributions, from the single warps that a loop carries."""
        width = self.shape.columns
        return [values[start : start + width] for start in range(0, len(values), width)]

    def load_uniform(self, pointer: Value, offset: int) -> Value:
        return self.code.spread(self.code.load_scalar(pointer, offset))

    def memory_value(self, cell: Value) -> Value:
        """The integer in a cell at the start."""
        code = self.code
        place = code.at.add(code.at.mul(self.frame.example, code.index(self.shape.size)), cell)
        return code.spread(code.load_scalar(self.frame.buffers["memory"], place, I32))
