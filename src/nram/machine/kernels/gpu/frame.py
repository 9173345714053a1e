"""Where a warp finds everything: buffers of its member, its shared memory, its records, its tables."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from nram.llvm import I32, I64, Value
from nram.machine.kernels.common.specification import INTEGERS
from nram.machine.kernels.gpu.shape import WarpShape
from nram.machine.kernels.gpu.warps import Warps


@dataclass(frozen=True)
class Tables:
    """Constants in memory."""

    wires: Value  # `WarpShape.table`
    sources: Value  # `WarpShape.sources`


@dataclass(frozen=True)
class Position:
    """Which warp this is: uniform integers."""

    member: Value
    block: Value  # of the member
    warp: Value  # of the block


class Frame:
    """One warp of one block."""

    def __init__(
        self,
        code: Warps,
        shape: WarpShape,
        buffers: dict[str, Value],
        tables: Tables,
        shared: Value,
        position: Position,
    ):
        self.code = code
        self.shape = shape
        self.tables = tables
        self.shared = shared
        self.block, self.warp = position.block, position.warp
        self.buffers = {
            name: self._part(buffers[name], name in INTEGERS, position.member, prod(lengths))
            for name, lengths in shape.buffers.items()
        }
        begin = code.at.add(code.at.mul(self.warp, code.index(shape.warp["end"])), code.index(shape.common))
        self.own = {name: code.place(code.place(shared, begin), offset) for name, offset in shape.warp.items()}
        self.example = code.at.add(code.at.mul(self.block, code.index(shape.warps)), self.warp)

    def _part(self, buffer: Value, whole: bool, index: Value, length: int) -> Value:
        """One of the parts of this length in a buffer. Its offset may exceed 32 bits."""
        code = self.code
        offset = code.at.mul(code.at.zext(index, I64), I64(length))
        return code.place(buffer, offset, I32 if whole else code.scalar)

    def storage(self, example: Value, part: str) -> Value:
        """The records or the versions of an example."""
        begin = self._part(self.buffers["workspace"], False, example, self.shape.example["end"])
        return self.code.place(begin, self.shape.example[part])

    def record(self, records: Value, step: Value) -> Value:
        return self.code.place(records, self.code.at.mul(step, self.code.index(self.shape.record["end"])))

    def steps(self, example: Value) -> tuple[Value, Value]:
        """The limit of an example, and how many steps it runs."""
        code = self.code
        limit = code.load_scalar(self.buffers["limits"], example, I32)
        low, high = code.index(1), code.index(self.shape.steps)
        steps = code.at.select(code.at.icmp_signed("<", limit, low), low, limit)
        return limit, code.at.select(code.at.icmp_signed(">", steps, high), high, steps)

    def option(self, index: int) -> Value:
        return self.code.spread(self.code.load_scalar(self.buffers["options"], index))
