"""What a kernel is made for, and where everything lies in its workspace.

Three kinds of storage, all in vectors of one lane per example:

slots       what the gradients of the weights are made of, a slot per step: the inputs of every layer, and the
            gradients with respect to its outputs. They are summed over all examples at the end.
records     what the backward pass of one block of examples needs of one step: wire weights, values, arguments.
the block   what there is once per block: expected outputs, running gradients, the memory's versions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from nram.machine.wiring import Wiring
from nram.modules import MODULES

Precision = Literal["float32", "float64"]
BYTES = {"float32": 4, "float64": 8}

Support = Literal["all", "truth"] | int
"""Which numbers a value can be: any; 0 or 1; or always this one."""

CONSTANTS: dict[str, int] = {"ZERO": 0, "ONE": 1, "TWO": 2, "WRITE": 0}
TRUTHS = ("LESS-THAN", "LESS-OR-EQUAL-THAN", "EQUALITY-TEST")
COVERED = frozenset({"READ", "INC", "ADD", "SUB", "DEC", "MIN", "MAX", *CONSTANTS, *TRUTHS})

SLOTS = 64  # steps of blocks whose gradients are summed at once: a balance of cache and sums over lanes
ALIGNMENT = 64  # bytes


@dataclass(frozen=True)
class Layer:
    """y = x W + b, and where its input and the gradient of its output stand in a slot."""

    inputs: int
    outputs: int
    x: int
    gradient: int


@dataclass(frozen=True)
class Vectors:
    """Widths for this processor: lanes of a full vector, and how many vectors are at hand for sums."""

    lanes: int
    accumulators: int


@dataclass(frozen=True)
class KernelShape:
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
    vectors: Vectors

    def with_gradient(self, gradient: bool) -> KernelShape:
        return replace(self, gradient=gradient)

    @cached_property
    def wiring(self) -> Wiring:
        return Wiring(self.registers, tuple(MODULES[name] for name in self.modules))

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Where each wire's logits begin."""
        lengths = self.wiring.lengths
        return tuple(sum(lengths[:wire]) for wire in range(len(lengths)))

    @property
    def outputs(self) -> int:
        """Of the controller: logits, the halting scalar, the automaton's next state."""
        return self.wiring.logits + 1 + self.states

    # Values

    @cached_property
    def supports(self) -> tuple[Support, ...]:
        found: list[Support] = ["all"] * self.registers
        for name in self.modules:
            found.append("truth" if name in TRUTHS else CONSTANTS.get(name, "all"))
        return tuple(found)

    @cached_property
    def value_rows(self) -> tuple[int, ...]:
        """Where each value begins among the values of a record; a constant has no row."""
        rows, free = [], 0
        for support in self.supports:
            rows.append(free)
            free += {"all": self.size, "truth": 2}.get(support, 0) if isinstance(support, str) else 0
        return (*rows, free)

    @property
    def argument_wires(self) -> int:
        return self.wiring.wires - self.registers

    @property
    def writes(self) -> int:
        return self.modules.count("WRITE")

    @property
    def cells(self) -> int:
        return self.size * self.size

    # Slots

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        inputs, hidden = self.registers + self.states, self.hidden
        if self.controller == "lstm":
            widths = [(inputs, hidden), (2 * hidden, 4 * hidden), (hidden, self.outputs)]
        else:
            widths = [(inputs, hidden), (hidden, hidden), (hidden, self.outputs)]
        layers, free = [], 0
        for before, after in widths:
            layers.append(Layer(before, after, free, free + before))
            free += before + after
        return tuple(layers)

    @property
    def slot(self) -> int:
        """Vectors of a slot."""
        return sum(layer.inputs + layer.outputs for layer in self.layers)

    @property
    def tail(self) -> int:
        """Lanes of the last block: as narrow as its examples allow, 0 if there is none."""
        left, lanes = self.batch % self.vectors.lanes, self.vectors.lanes
        if not left:
            return 0
        return next(width for width in (lanes // 4, lanes // 2, lanes) if left <= width and width >= 2)

    @property
    def slots(self) -> int:
        if not self.gradient:
            return 1
        packed = self.vectors.lanes // self.tail if self.tail else 1
        needed = (self.batch // self.vectors.lanes) * self.steps + (-(-self.steps // packed) if self.tail else 0)
        return min(needed, max(self.steps, SLOTS))

    # Records: rows of vectors

    @cached_property
    def record(self) -> dict[str, int]:
        """Where the parts of a record begin; the last entry is its length."""
        own = {"lstm": 6 * self.hidden, "automaton": self.states, "mlp": 0}[self.controller]
        return _laid_out(
            weights=self.wiring.logits,
            norms=self.wiring.wires,
            values=self.value_rows[-1],
            arguments=self.argument_wires * self.size,
            seen=self.size,
            halting=4,
            controller=own,
        )

    @cached_property
    def block(self) -> dict[str, int]:
        carried = {"lstm": 2 * self.hidden, "automaton": self.states, "mlp": 0}[self.controller]
        return _laid_out(
            numbers=4,
            shares=self.size,
            wanted=self.size,  # integers
            average=self.cells,
            mixed=self.size,
            fresh=self.registers * self.size,
            double=2 * self.size,
            state=carried,
            register_gradient=self.registers * self.size,
            memory_gradient=self.cells,
            received=self.wiring.wires * self.size,
            output_gradient=self.size,
            choice=self.wiring.logits,
            input_gradient=max(layer.inputs for layer in self.layers),
            state_gradient=carried,
        )

    @property
    def records(self) -> int:
        return self.steps + 1 if self.gradient else 1

    @property
    def versions(self) -> int:
        """Of the memory: one after every WRITE, and the first."""
        return self.steps * self.writes + 1 if self.gradient else 1

    @cached_property
    def workspace(self) -> dict[str, int]:
        """Where the parts of the workspace begin, in vectors of full width."""
        return _laid_out(
            slots=self.slots * self.slot,
            records=self.records * self.record["end"],
            versions=self.versions * self.cells,
            block=self.block["end"],
        )

    @property
    def workspace_scalars(self) -> int:
        spare = ALIGNMENT // BYTES[self.precision]  # so that it can begin at an aligned address
        return self.workspace["end"] * self.vectors.lanes + spare


def _laid_out(**lengths: int) -> dict[str, int]:
    places, free = {}, 0
    for name, length in lengths.items():
        places[name] = free
        free += length
    return places | {"end": free}
