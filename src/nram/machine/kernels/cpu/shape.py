"""How a CPU runs a kernel, and where everything lies in its workspace.

Three kinds of storage, all in vectors with one lane per example:

slots       what the gradients of the weights are computed from, one slot per step: the inputs of every layer, and the
            gradients with respect to its outputs. They are summed over all examples at the end.
records     what the backward pass of one block of examples needs to know about one step: wire weights, values,
            arguments.
the block   what exists once per block: expected outputs, running gradients, the versions of the memory.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from nram.machine.kernels.common.specification import BYTES, NoKernel, Precision, Shape, Specification, extend, offsets

SLOTS = 64  # steps of blocks whose gradients are summed at once: a balance of cache use and sums over lanes
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
    """The vectors of a processor: lanes of a full vector, and how many vectors can be held in registers for sums."""

    lanes: int
    accumulators: int


@dataclass(frozen=True, kw_only=True)
class KernelShape(Shape):
    """A kernel with examples in the lanes of vectors."""

    vmap_method: ClassVar[str] = "sequential"  # one member at a time: its data stays in the cache
    extra_inputs: ClassVar[tuple[str, ...]] = ("order",)  # the examples by their step limits

    vectors: Vectors

    def registered(self) -> str:
        from nram.machine.kernels.cpu.kernel import registered  # needs LLVM, which may not work everywhere

        return registered(self)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Where each wire's logits begin."""
        lengths = self.wiring.lengths
        return tuple(sum(lengths[:wire]) for wire in range(len(lengths)))

    @cached_property
    def value_rows(self) -> tuple[int, ...]:
        """Where each value begins among the values of a record; a constant has no row."""
        rows, free = [], 0
        for support in self.supports:
            rows.append(free)
            free += {"all": self.size, "truth": 2}.get(support, 0) if isinstance(support, str) else 0
        return (*rows, free)

    @property
    def cells(self) -> int:
        return self.size * self.size

    # Slots

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        layers, free = [], 0
        for inputs, outputs in self.layer_sizes:
            layers.append(Layer(inputs, outputs, free, free + inputs))
            free += inputs + outputs
        return tuple(layers)

    @property
    def slot(self) -> int:
        """The vectors of a slot."""
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
        """How many slots there are. A narrow last block packs several of its steps into one."""
        if not self.gradient:
            return 1
        packed = self.vectors.lanes // self.tail if self.tail else 1
        needed = (self.batch // self.vectors.lanes) * self.steps + (-(-self.steps // packed) if self.tail else 0)
        return min(needed, max(self.steps, SLOTS))

    # Records: rows of vectors

    @cached_property
    def record(self) -> dict[str, int]:
        """Where the parts of a record begin; the last entry is its length."""
        return offsets(
            weights=self.wiring.logits,
            norms=self.wiring.wires,
            values=self.value_rows[-1],
            arguments=self.argument_wires * self.size,
            seen=self.size,
            halting=4,
            controller={"lstm": 6 * self.hidden, "automaton": self.states, "mlp": 0}[self.controller],
        )

    @property
    def carried(self) -> int:
        """The length of the state that the controller carries from step to step."""
        return {"lstm": 2 * self.hidden, "automaton": self.states, "mlp": 0}[self.controller]

    @cached_property
    def block(self) -> dict[str, int]:
        """Where the parts of a block begin."""
        return offsets(
            numbers=4,
            shares=self.size,
            wanted=self.size,  # integers
            average=self.cells,
            mixed=self.size,
            fresh=self.registers * self.size,
            double=2 * self.size,
            state=self.carried,
            register_gradient=self.registers * self.size,
            memory_gradient=self.cells,
            received=self.wiring.wires * self.size,
            output_gradient=self.size,
            choice=self.wiring.logits,
            input_gradient=max(layer.inputs for layer in self.layers),
            state_gradient=self.carried,
        )

    @property
    def records(self) -> int:
        return self.steps + 1 if self.gradient else 1

    @property
    def versions(self) -> int:
        """How many versions of the memory are kept: one after every WRITE, and the first."""
        return self.steps * self.writes + 1 if self.gradient else 1

    @cached_property
    def workspace(self) -> dict[str, int]:
        """Where the parts of the workspace begin, in vectors of full width."""
        return offsets(
            slots=self.slots * self.slot,
            records=self.records * self.record["end"],
            versions=self.versions * self.cells,
            block=self.block["end"],
        )

    @property
    def workspace_scalars(self) -> int:
        spare = ALIGNMENT // BYTES[self.precision]  # so that it can begin at an aligned address
        return self.workspace["end"] * self.vectors.lanes + spare


def lane_shape(specification: Specification) -> KernelShape:
    """How this processor runs the specification; raises `NoKernel` if it cannot."""
    vectors = host_vectors(specification.precision)
    if vectors is None:
        raise NoKernel("this processor has no fused multiply-add on vectors")
    return extend(KernelShape, specification, vectors=vectors)


def host_vectors(precision: Precision) -> Vectors | None:
    """The vectors of this processor; None where it has no fused multiply-add on vectors."""
    try:
        from llvmlite import binding
    except (ImportError, OSError) as error:  # what llvmlite raises where LLVM is missing
        raise NoKernel(f"llvmlite does not work here: {error}") from error
    features, halves = binding.get_host_cpu_features(), BYTES[precision] // BYTES["float32"]
    if all(features.get(name) for name in ("avx512f", "avx512vl", "avx512dq")):
        return Vectors(16 // halves, 24)
    if features.get("avx2") and features.get("fma"):
        return Vectors(8 // halves, 12)
    if platform.machine() in ("aarch64", "arm64"):
        return Vectors(4 // halves, 24)
    return None
