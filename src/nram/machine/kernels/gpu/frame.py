"""Where a warp finds everything: buffers of its member, its shared memory, its records, its tables."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from nram.machine.kernels.gpu.shape import WarpShape
from nram.machine.kernels.gpu.warps import I32, I64, Value, Warps

WHOLE = ("memory", "wanted", "limits", "predicted")  # buffers of integers
LOSS, ENTROPY, TIME = range(3)  # rows of seeds and outcomes
CLIP, EPSILON = range(2)  # options


def buffer_shapes(shape: WarpShape) -> dict[str, tuple[int, ...]]:
    """The buffers of a member in order: those given, those returned."""
    examples, size = shape.batch, shape.size
    weights = [pair for layer in shape.layers for pair in ((layer.inputs, layer.given), (layer.given,))]
    shapes: dict[str, tuple[int, ...]] = {f"parameter{i}": own for i, own in enumerate(weights)}
    shapes |= {"memory": (examples, size), "wanted": (examples, size), "shares": (examples, size)}
    shapes |= {"limits": (examples,), "seeds": (3, examples), "options": (2,)}
    shapes |= {"outcomes": (3, examples), "predicted": (examples, size)}
    if shape.gradient:
        shapes |= {f"gradient{i}": (shape.parts, *own) for i, own in enumerate(weights)}
    return shapes | {"workspace": (shape.workspace_scalars,)}


def given(shape: WarpShape) -> int:
    """How many of the buffers are arguments."""
    return list(buffer_shapes(shape)).index("outcomes")


@dataclass(frozen=True)
class Tables:
    """Constants in memory."""

    wires: Value  # `WarpShape.table`
    sources: Value  # of the output layer's columns


class Frame:
    """One warp of one block."""

    def __init__(
        self,
        to: Warps,
        shape: WarpShape,
        buffers: dict[str, Value],
        tables: Tables,
        member: Value,
        block: Value,
        warp: Value,
        shared: Value | None,
    ):
        self.to = to
        self.shape = shape
        self.tables = tables
        self.block = block
        self.warp = warp
        self.buffers = {
            name: self._part(buffers[name], name in WHOLE, member, prod(own))
            for name, own in buffer_shapes(shape).items()
        }
        # Without shared memory, on a CPU, the end of the workspace stands for it.
        workspace = self.buffers["workspace"]
        self.shared = to.place(workspace, shape.batch * shape.example["end"]) if shared is None else shared
        begin = to.at.add(to.at.mul(warp, to.index(shape.warp["end"])), to.index(shape.common))
        self.own = {name: to.place(to.place(self.shared, begin), offset) for name, offset in shape.warp.items()}
        self.example = self.example_of(warp)

    def _part(self, buffer: Value, whole: bool, number: Value, length: int) -> Value:
        to = self.to
        offset = to.at.mul(to.at.zext(number, I64), I64(length))
        return to.place(buffer, offset, I32 if whole else to.scalar)

    def example_of(self, warp: Value) -> Value:
        return self.to.at.add(self.to.at.mul(self.block, self.to.index(self.shape.warps)), warp)

    def storage(self, example: Value, part: str) -> Value:
        """The records or the versions of an example."""
        begin = self._part(self.buffers["workspace"], False, example, self.shape.example["end"])
        return self.to.place(begin, self.shape.example[part])

    def record(self, records: Value, step: Value) -> Value:
        return self.to.place(records, self.to.at.mul(step, self.to.index(self.shape.record["end"])))

    def steps(self, example: Value) -> tuple[Value, Value]:
        """The limit of an example, and how many steps it runs."""
        to = self.to
        limit = to.load_scalar(self.buffers["limits"], example, I32)
        low, high = to.index(1), to.index(self.shape.steps)
        steps = to.at.select(to.at.icmp_signed("<", limit, low), low, limit)
        return limit, to.at.select(to.at.icmp_signed(">", steps, high), high, steps)

    def option(self, number: int) -> Value:
        return self.to.spread(self.to.load_scalar(self.buffers["options"], number))
