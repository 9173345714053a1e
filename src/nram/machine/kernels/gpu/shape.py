"""How a GPU runs a kernel, and where everything lies.

A warp runs one example. Its lanes are the values 0..31 of a distribution; for M up to 64 a distribution has two
columns of 32. Lanes beyond M hold 0. A block of warps runs some examples of one member.

shared memory   the member's weights and the tables of the wires, then for every warp: its tape (in the backward pass
                the tape's gradient), the wires (arrangement.py), the gradients of some of them as [wire, value], a
                record's values, and room for a layer's input or some distributions
records         in global memory, one per step: what the backward pass needs, and what the weights' gradients are
                computed from
versions        in global memory, for the backward pass: the tape at the start and after every WRITE

Strides: lanes that read four numbers of their own rows at once do not meet in a bank if the stride is four times an odd
number. Everything in global memory begins at multiples of 32 numbers, so that a warp reads or writes whole lines of the
cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

from nram.machine.kernels.common.specification import BYTES, NoKernel, Shape, Specification, extend, offsets
from nram.machine.kernels.gpu.arrangement import GROUP, QUAD, Arrangement

LANES = 32
LARGEST_SIZE = 2 * LANES
SHARED_BYTES = 227 * 1024  # that a block of an H100 or H200 may have
RESERVED_BYTES = 1024  # that every block takes besides, of the 228 KiB of a multiprocessor
MOST_WARPS = 16  # of a multiprocessor: 128 registers per thread are left then
MOST_GATHERED = 32  # wires
MOST_PENDING = 2  # READs
MOST_SUMMED = 16  # examples over which one warp sums the gradient of the weights


def up(count: int, unit: int) -> int:
    """Rounded up to a multiple."""
    return -(-count // unit) * unit


def quad_stride(count: int) -> int:
    """The least odd number of quads that holds so many numbers, in numbers."""
    return QUAD * (-(-count // QUAD) | 1)


@dataclass(frozen=True)
class Layer:
    """y = x W + b. In shared memory W has `deep` rows, `stride` apart, from `weight` on. In a record, x and the
    gradient of y are rows of full warps. The output layer has more columns in memory than the controller gives."""

    inputs: int
    outputs: int
    given: int
    weight: int
    bias: int
    x: int
    gradient: int

    @property
    def deep(self) -> int:
        return up(self.inputs, QUAD)

    @property
    def stride(self) -> int:
        return quad_stride(self.outputs)

    @property
    def input_tiles(self) -> int:
        return -(-self.inputs // LANES)

    @property
    def output_tiles(self) -> int:
        return -(-self.outputs // LANES)


@dataclass(frozen=True, kw_only=True)
class WarpShape(Shape):
    """A kernel with one warp per example."""

    vmap_method: ClassVar[str] = "broadcast_all"  # all members are in the same launches

    warps: int = 1  # of a block
    gathered: int = MOST_GATHERED  # wires whose gradients wait in shared memory for those of their weights; by eights

    def registered(self) -> str:
        from nram.machine.kernels.gpu.launch import registered  # needs LLVM, which may not work everywhere

        return registered(self)

    @property
    def blocks(self) -> int:
        """The blocks of one member."""
        return -(-self.batch // self.warps)

    @property
    def columns(self) -> int:
        return -(-self.size // LANES)

    @property
    def row(self) -> int:
        """The numbers of a distribution, padding included."""
        return self.columns * LANES

    @property
    def rows(self) -> int:
        """The rows of a tape, padding included."""
        return up(self.size, QUAD)

    @property
    def tape(self) -> int:
        return self.rows * self.row

    @property
    def tape_held(self) -> bool:
        """Whether the forward pass also has its tape in registers."""
        return self.rows * self.columns <= LANES

    @cached_property
    def kept_wires(self) -> dict[int, int]:
        """The wires whose arguments a record keeps, and their rows there. WRITE's arguments tell how memory changed."""
        written = [wire + number for wire in self.write_wires for number in range(2)]
        return {wire: row for row, wire in enumerate(range(self.argument_wires) if self.gradient else written)}

    @property
    def write_wires(self) -> list[int]:
        """The first wire of every WRITE."""
        firsts, wire = [], 0
        for module in self.wiring.modules:
            firsts += [wire] * (module.name == "WRITE")
            wire += module.arity
        return firsts

    @property
    def pending(self) -> int:
        """How many READs may leave the memory's gradient to the next WRITE of the backward pass."""
        return min(self.modules.count("READ"), MOST_PENDING) if self.gradient else 0

    # Values

    @cached_property
    def value_rows(self) -> dict[int, int]:
        """The row of each value among the values of a record; constants have no row."""
        kept = [v for v, support in enumerate(self.supports) if isinstance(support, str)]
        return {v: row for row, v in enumerate(kept)}

    @cached_property
    def dense(self) -> tuple[int, ...]:
        """The values that may be any number."""
        return tuple(v for v, support in enumerate(self.supports) if support == "all")

    @cached_property
    def value_places(self) -> dict[int, int]:
        """The offset of each value in shared memory: first the dense values, then four numbers for each truth value."""
        rows = {v: row * self.gradient_stride for row, v in enumerate(self.dense)}
        truths, free = (v for v in self.value_rows if v not in rows), len(rows) * self.gradient_stride
        return rows | {v: free + QUAD * number for number, v in enumerate(truths)}

    @property
    def value_end(self) -> int:
        """Where the last value ends."""
        return len(self.dense) * self.gradient_stride + QUAD * (len(self.value_rows) - len(self.dense))

    # Wires

    @cached_property
    def arrangement(self) -> Arrangement:
        return Arrangement(self.wiring, self.supports, self.states)

    @property
    def gradient_stride(self) -> int:
        """The stride of the wires' gradients and of the values."""
        return quad_stride(self.rows)

    @property
    def chunk(self) -> int:
        """The largest number of wires that are gathered."""
        return min(self.gathered, up(self.wiring.wires, GROUP))

    @property
    def wire_groups(self) -> int:
        """Groups of wires whose softmaxes are computed at the same time, one per lane."""
        return -(-self.wiring.wires // LANES)

    # The controller

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        layers, shared, kept = [], 0, 0
        for number, (inputs, given) in enumerate(self.layer_sizes):
            outputs = self.arrangement.width if number == 2 else given
            bias = shared + up(inputs, QUAD) * quad_stride(outputs) + LANES
            layers.append(Layer(inputs, outputs, given, shared, bias, kept, kept + up(inputs, LANES)))
            shared = bias + up(outputs, LANES)
            kept += up(inputs, LANES) + up(outputs, LANES)
        return tuple(layers)

    @property
    def sources(self) -> tuple[int, ...]:
        """For each column of the output layer the controller's output that belongs there, or -1."""
        return self.arrangement.sources(up(self.layers[-1].stride, LANES))

    @property
    def table(self) -> tuple[int, ...]:
        """What the lanes look up about the wires: two rows, each as long as a whole number of warps."""
        return tuple(number for row in self.arrangement.tables(self.wire_groups * LANES) for number in row)

    @property
    def table_place(self) -> int:
        """Where the table begins in shared memory."""
        return self.layers[-1].bias + up(self.layers[-1].outputs, LANES)

    @property
    def common(self) -> int:
        """The numbers of shared memory that all warps of a block use together."""
        return self.table_place + 2 * self.wire_groups * LANES

    # Storage, in numbers

    @cached_property
    def warp(self) -> dict[str, int]:
        """Where the parts of a warp's shared memory begin; the last entry is its length."""
        widest = max(up(layer.inputs, LANES) for layer in self.layers)
        arrangement = self.arrangement
        wires = max(up(arrangement.width, LANES), max(arrangement.starts) + up(self.wiring.values, QUAD))
        if self.controller == "lstm":
            widest = max(widest, 4 * self.hidden + LANES)  # the gates pass through it
        return offsets(
            QUAD,
            tape=self.tape,
            wires=max(wires, arrangement.state_place + LANES) if self.states else wires,
            received=self.chunk * self.gradient_stride if self.gradient else 0,
            values=self.value_end if self.gradient else 0,
            room=max(widest + LANES, self.row, (1 + self.pending) * self.rows),
        )

    @property
    def shared(self) -> int:
        return self.common + self.warps * self.warp["end"]

    @property
    def shared_bytes(self) -> int:
        return self.shared * BYTES[self.precision]

    @property
    def together(self) -> int:
        """Blocks that a multiprocessor runs at the same time."""
        fitting = (SHARED_BYTES + RESERVED_BYTES) // (self.shared_bytes + RESERVED_BYTES)
        return min(fitting, max(1, MOST_WARPS // self.warps))

    @cached_property
    def record(self) -> dict[str, int]:
        """Where the parts of a record begin; the last entry is its length."""
        if not self.gradient:
            return offsets(LANES, halting=LANES, arguments=len(self.kept_wires) * self.row)
        return offsets(
            LANES,
            layers=self.layers[-1].gradient + up(self.layers[-1].outputs, LANES),
            arguments=len(self.kept_wires) * self.row,
            weights=up(self.arrangement.end, LANES),
            values=len(self.value_rows) * self.row,
            halting=LANES,
            seen=self.row,
            state=6 * up(self.hidden, LANES) if self.controller == "lstm" else up(self.states, LANES),
        )

    @property
    def versions(self) -> int:
        return self.steps * self.writes + 1 if self.gradient else 0

    @cached_property
    def example(self) -> dict[str, int]:
        """Where the records and the versions of an example begin in its part of the workspace."""
        return offsets(LANES, records=self.steps * self.record["end"], versions=self.versions * self.tape)

    @property
    def workspace_scalars(self) -> int:
        return self.batch * self.example["end"]

    @property
    def parts(self) -> int:
        """Parts of the batch: the gradient is summed over the examples of each of them separately."""
        return -(-self.batch // MOST_SUMMED)

    @property
    def gradient_parts(self) -> tuple[int, ...]:
        return (self.parts,)


def warp_shape(specification: Specification) -> WarpShape:
    """How a GPU runs the specification; raises `NoKernel` if it cannot."""
    if specification.size > LARGEST_SIZE:
        raise NoKernel(f"the kernels for GPUs are for memories of up to {LARGEST_SIZE} cells")
    if specification.registers + specification.states > LANES:
        raise NoKernel(f"the kernels for GPUs are for up to {LANES} registers and states together")
    shape, batch = extend(WarpShape, specification), specification.batch
    fitting = [warps for warps in range(1, min(MOST_WARPS, batch) + 1) if any(_arranged(replace(shape, warps=warps)))]
    if not fitting:
        raise NoKernel(f"the weights and one example do not fit into the {SHARED_BYTES // 1024} KiB of a block")
    # The same number of blocks, with the examples spread evenly.
    blocks = -(-batch // fitting[-1])
    shape = replace(shape, warps=-(-batch // blocks))
    return max(_arranged(shape), key=lambda one: (one.together, one.gathered))


def _arranged(shape: WarpShape) -> Iterator[WarpShape]:
    """The shape with each number of gathered wires with which it fits into a block."""
    for count in range(MOST_GATHERED, 0, -GROUP):
        arranged = replace(shape, gathered=count)
        if arranged.shared_bytes <= SHARED_BYTES:
            yield arranged
