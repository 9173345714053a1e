"""What a kernel is made for, and where everything lies.

A warp runs one example. Its lanes are the values 0..31 of a distribution; for M up to 64 a distribution has two
columns of 32. Lanes beyond M hold 0. A block of warps runs some examples of one member.

shared memory   the member's weights and tables of the wires, then for every warp: its tape (in the backward pass the
                tape's gradient), the wires (arrangement.py), the gradients of some of them as [wire, place], a record's
                values, and room for a layer's input or some distributions
records         in global memory, one a step: what the backward pass needs, and what the weights' gradients are made of
versions        in global memory, for the backward pass: the tape at the start and after every WRITE

Strides: a lane that reads four numbers of its own row at once meets no other lane in a bank if the stride is four
times an odd number. What is in global memory begins at multiples of 32 numbers, so that a warp reads or writes whole
lines of the cache.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from nram.machine.kernels.cpu.shape import BYTES, CONSTANTS, TRUTHS, Precision, Support
from nram.machine.kernels.gpu.arrangement import GROUP, QUAD, Arrangement
from nram.machine.wiring import Wiring
from nram.modules import MODULES

LANES = 32
SHARED_BYTES = 227 * 1024  # that a block of an H100 or H200 may have
MOST_WARPS = 16  # of a block: 128 registers a thread are left then
MOST_GATHERED = 32  # wires
MOST_PENDING = 2  # READs
MOST_SUMMED = 16  # examples over which one warp sums up the gradient of the weights


def up(count: int, unit: int) -> int:
    """Rounded up to a multiple."""
    return -(-count // unit) * unit


def quad_stride(count: int) -> int:
    """The least odd number of quads that holds so many numbers, in numbers."""
    return QUAD * (-(-count // QUAD) | 1)


@dataclass(frozen=True)
class Layer:
    """y = x W + b. In shared memory W has `deep` rows `stride` apart at `weight`; in a record x and the gradient of y
    are rows of full warps. The output layer has some columns more there than are given."""

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


@dataclass(frozen=True)
class WarpShape:
    """All that is fixed when a kernel is compiled."""

    controller: Literal["mlp", "lstm", "automaton"]
    registers: int
    modules: tuple[str, ...]
    size: int  # M
    hidden: int
    states: int  # of the automaton; otherwise 0
    steps: int  # the longest episode
    batch: int
    precision: Precision
    renormalising: bool
    loss: Literal["expected", "average"]
    gradient: bool  # whether there is a backward pass
    hard: bool  # whether, forwards, every wire takes its most probable value and halting is a decision
    platform: Literal["cpu", "gpu"] = "gpu"  # a CPU runs the same code for tests, and slowly
    warps: int = 1  # of a block
    gathered: int = MOST_GATHERED  # wires whose gradients wait in shared memory for those of their weights; by eights

    def with_gradient(self, gradient: bool) -> WarpShape:
        return replace(self, gradient=gradient)

    @cached_property
    def wiring(self) -> Wiring:
        return Wiring(self.registers, tuple(MODULES[name] for name in self.modules))

    @property
    def blocks(self) -> int:
        """Of a member."""
        return -(-self.batch // self.warps)

    @property
    def columns(self) -> int:
        return -(-self.size // LANES)

    @property
    def row(self) -> int:
        """Numbers of a distribution, with its padding."""
        return self.columns * LANES

    @property
    def rows(self) -> int:
        """Of a tape, with its padding."""
        return up(self.size, QUAD)

    @property
    def tape(self) -> int:
        return self.rows * self.row

    @property
    def tape_held(self) -> bool:
        """Whether the forward pass has its tape in registers, too."""
        return self.rows * self.columns <= LANES

    @property
    def writes(self) -> int:
        return self.modules.count("WRITE")

    @cached_property
    def kept_wires(self) -> dict[int, int]:
        """The arguments that a record keeps, and their rows there; WRITE's say what the memory was like."""
        written = [wire + number for wire in self.write_wires for number in range(2)]
        return {wire: row for row, wire in enumerate(range(self.argument_wires) if self.gradient else written)}

    @property
    def write_wires(self) -> list[int]:
        """Of every WRITE the first."""
        firsts, wire = [], 0
        for module in self.wiring.modules:
            firsts += [wire] * (module.name == "WRITE")
            wire += module.arity
        return firsts

    @property
    def pending(self) -> int:
        """How many READs may leave the memory's gradient to the next WRITE of the backward pass."""
        return min(self.modules.count("READ"), MOST_PENDING) if self.gradient else 0

    @property
    def argument_wires(self) -> int:
        return self.wiring.wires - self.registers

    @cached_property
    def supports(self) -> tuple[Support, ...]:
        """Of every value: any number, a truth value, or always this one."""
        found: list[Support] = ["all"] * self.registers
        for name in self.modules:
            found.append("truth" if name in TRUTHS else CONSTANTS.get(name, "all"))
        return tuple(found)

    @cached_property
    def value_rows(self) -> dict[int, int]:
        """Where each value stands among the values of a record; constants are not kept."""
        kept = [v for v, support in enumerate(self.supports) if isinstance(support, str)]
        return {v: row for row, v in enumerate(kept)}

    @cached_property
    def dense(self) -> tuple[int, ...]:
        """The values that may be any number."""
        return tuple(v for v, support in enumerate(self.supports) if support == "all")

    @cached_property
    def value_places(self) -> dict[int, int]:
        """Where each value stands in shared memory: first those that may be any number, then four places of each truth
        value."""
        rows = {v: row * self.gradient_stride for row, v in enumerate(self.dense)}
        truths, free = (v for v in self.value_rows if v not in rows), len(rows) * self.gradient_stride
        return rows | {v: free + QUAD * number for number, v in enumerate(truths)}

    @property
    def value_end(self) -> int:
        """Where the last of them ends."""
        return len(self.dense) * self.gradient_stride + QUAD * (len(self.value_rows) - len(self.dense))

    # Wires

    @cached_property
    def arrangement(self) -> Arrangement:
        return Arrangement(self.wiring, self.supports, self.states)

    @property
    def gradient_stride(self) -> int:
        """Of the wires' gradients and of the values."""
        return quad_stride(self.rows)

    @property
    def chunk(self) -> int:
        """How many wires are gathered at most."""
        return min(self.gathered, up(self.wiring.wires, GROUP))

    @property
    def wire_groups(self) -> int:
        """Softmaxes are computed a lane each."""
        return -(-self.wiring.wires // LANES)

    @property
    def outputs(self) -> int:
        """Of the controller: logits, the halting scalar, the automaton's next state."""
        return self.wiring.logits + 1 + self.states

    # The controller

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        hidden, inputs = self.hidden, self.registers + self.states
        second = (2 * hidden, 4 * hidden) if self.controller == "lstm" else (hidden, hidden)
        widths = [(inputs, hidden, hidden), (*second, second[1]), (hidden, self.arrangement.width, self.outputs)]
        layers, shared, kept = [], 0, 0
        for inputs, outputs, given in widths:
            bias = shared + up(inputs, QUAD) * quad_stride(outputs) + LANES
            layers.append(Layer(inputs, outputs, given, shared, bias, kept, kept + up(inputs, LANES)))
            shared = bias + up(outputs, LANES)
            kept += up(inputs, LANES) + up(outputs, LANES)
        return tuple(layers)

    @property
    def sources(self) -> tuple[int, ...]:
        """For each column of the output layer the output that was given for it, or -1."""
        return self.arrangement.sources(up(self.layers[-1].stride, LANES))

    @property
    def table(self) -> tuple[int, ...]:
        """What the lanes look up about the wires: two rows, each with room for a whole number of warps."""
        return tuple(number for row in self.arrangement.tables(self.wire_groups * LANES) for number in row)

    @property
    def table_place(self) -> int:
        """Where it begins in shared memory."""
        return self.layers[-1].bias + up(self.layers[-1].outputs, LANES)

    @property
    def common(self) -> int:
        """Numbers of the shared memory that all warps of a block use."""
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
        return _laid_out(
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

    @cached_property
    def record(self) -> dict[str, int]:
        if not self.gradient:
            return _laid_out(unit=LANES, halting=LANES, arguments=len(self.kept_wires) * self.row)
        layers = self.layers[-1].gradient + up(self.layers[-1].outputs, LANES)
        return _laid_out(
            unit=LANES,
            layers=layers,
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
        parts = {"records": self.steps * self.record["end"], "versions": self.versions * self.tape}
        return _laid_out(unit=LANES, **parts)

    @property
    def workspace_scalars(self) -> int:
        """Of a member; on a CPU a stand-in for shared memory comes last."""
        return self.batch * self.example["end"] + (self.shared if self.platform == "cpu" else 0)

    @property
    def parts(self) -> int:
        """Of a batch, whose sums of the gradient are computed on their own."""
        return -(-self.batch // MOST_SUMMED)

    @property
    def gradient_scalars(self) -> int:
        """Of a member: the gradient of every part."""
        return self.parts * sum((layer.inputs + 1) * layer.given for layer in self.layers)


def _laid_out(unit: int = QUAD, **lengths: int) -> dict[str, int]:
    places, free = {}, 0
    for name, length in lengths.items():
        places[name] = free
        free += up(length, unit)
    return places | {"end": free}
