"""What a kernel computes: the machine, the batch and the loss that it is compiled for.

`cpu` and `gpu` extend the specification by how they run it and where they store everything.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from math import prod
from typing import Any, ClassVar, Literal, TypeVar, cast

from nram.algebra import Formula
from nram.kinds import ControllerKind, LossKind
from nram.machine.wiring import Wiring
from nram.modules import MODULES, PAPER_MODULES, Module

Precision = Literal["float32", "float64"]
BYTES = {"float32": 4, "float64": 8}

Support = Literal["all", "truth"] | int
"""Which numbers a value can be: any number; 0 or 1; or always this one."""

LARGEST_WIRING = 10_000
"""Logits of a circuit. The kernel of a larger one would take minutes to compile."""

PARAMETERS = 6  # weight and bias of three layers
LOSS, ENTROPY, TIME = range(3)  # rows of seeds and outcomes
CLIP, EPSILON, LOG_EPSILON = range(3)  # options
INTEGERS = ("order", "memory", "wanted", "limits", "predicted")  # buffers of 32-bit integers; the others are floats

SOURCES = ("machine", "modules.py", "module_tables.py", "algebra.py", "llvm.py")
"""The Python code that generates kernels: the cache of compiled code depends on all of it, constants included."""


class NoKernel(Exception):
    """The reason why there is no kernel, and the plain path is taken."""


@dataclass(frozen=True)
class Specification:
    """Everything about the computation that is fixed when a kernel is compiled."""

    controller: ControllerKind
    registers: int
    modules: tuple[str, ...]
    size: int  # M
    hidden: int
    states: int  # of the automaton; otherwise 0
    steps: int  # of the longest episode
    batch: int
    renormalising: bool
    loss: LossKind
    straight_through: bool = False  # the forward pass takes the most probable value of every wire
    precision: Precision = "float32"
    gradient: bool = True  # whether there is a backward pass

    @cached_property
    def wiring(self) -> Wiring:
        return Wiring(self.registers, tuple(MODULES[name] for name in self.modules))

    @property
    def argument_wires(self) -> int:
        return self.wiring.wires - self.registers

    @property
    def writes(self) -> int:
        """How many WRITEs a step has."""
        return self.modules.count("WRITE")

    @cached_property
    def supports(self) -> tuple[Support, ...]:
        """For each value, registers first, which numbers it can be."""
        registers: list[Support] = ["all"] * self.registers
        return (*registers, *map(_support, self.wiring.modules))

    @property
    def outputs(self) -> int:
        """The length of the controller's output: logits, the halting scalar, the automaton's next state."""
        return self.wiring.logits + 1 + self.states

    @property
    def layer_sizes(self) -> list[tuple[int, int]]:
        """Inputs and outputs of the controller's three layers."""
        inputs, hidden = self.registers + self.states, self.hidden
        middle = (2 * hidden, 4 * hidden) if self.controller == "lstm" else (hidden, hidden)
        return [(inputs, hidden), middle, (hidden, self.outputs)]


@dataclass(frozen=True)
class Shape(Specification, ABC):
    """A specification, and how one of the back ends runs it."""

    vmap_method: ClassVar[str]  # what JAX does with a batch axis of members
    extra_inputs: ClassVar[tuple[str, ...]] = ()

    def with_gradient(self: S, gradient: bool) -> S:
        return replace(self, gradient=gradient)

    @property
    @abstractmethod
    def workspace_scalars(self) -> int:
        """The length of the workspace."""

    @property
    def gradient_parts(self) -> tuple[int, ...]:
        """Leading axes of the weights' gradients, over which the caller sums."""
        return ()

    @abstractmethod
    def registered(self) -> str:
        """The name under which XLA finds this kernel, which is compiled if need be."""

    @cached_property
    def buffers(self) -> Mapping[str, tuple[int, ...]]:
        """The arrays of one member in order: first those that the kernel is given, then those that it returns."""
        examples, cells = (self.batch,), (self.batch, self.size)
        weights = [shape for size in self.layer_sizes for shape in (size, size[1:])]
        given = {f"parameter{i}": shape for i, shape in enumerate(weights)}
        given |= dict.fromkeys(self.extra_inputs, examples)
        given |= {"memory": cells, "wanted": cells, "shares": cells, "limits": examples}
        given |= {"seeds": (3, *examples), "options": (3,)}
        gradients = {f"gradient{i}": (*self.gradient_parts, *shape) for i, shape in enumerate(weights)}
        returned = {"outcomes": (3, *examples), "predicted": cells} | (gradients if self.gradient else {})
        return given | returned | {"workspace": (self.workspace_scalars,)}

    @cached_property
    def arguments(self) -> int:
        """How many of the buffers are given to the kernel."""
        return list(self.buffers).index("outcomes")

    @property
    def result_scalars(self) -> int:
        """The length of all arrays that the kernel returns for one member, its workspace included."""
        return sum(prod(shape) for shape in list(self.buffers.values())[self.arguments :])


S = TypeVar("S", bound=Shape)


def _support(module: Module) -> Support:
    if module.memory != "nothing":
        return "all" if module.memory == "reads" else 0  # the output of WRITE is 0
    output = cast(Formula, module.fuzzy).output(module.arity)
    if output.operation == "certain":
        return output.operands[0]
    return "truth" if output.operation == "truth" else "all"


def specify(wiring: Wiring, *, controller: Any, states: int, **settings: Any) -> Specification:
    """The specification for circuits of this wiring; raises `NoKernel` if the kernels do not support them.

    `settings` are the other fields of `Specification`.
    """
    unknown = sorted({module.name for module in wiring.modules if module not in PAPER_MODULES})
    if unknown:
        raise NoKernel(f"there is no kernel for the module {unknown[0]}")
    if wiring.logits > LARGEST_WIRING:
        raise NoKernel(f"circuits of {wiring.logits} logits are too large for a kernel")
    modules = tuple(module.name for module in wiring.modules)
    states = states if controller == "automaton" else 0
    return Specification(controller, wiring.registers, modules, states=states, **settings)


def extend(kind: type[S], specification: Specification, **more: Any) -> S:
    """The specification with the fields that a back end adds."""
    return kind(**{field.name: getattr(specification, field.name) for field in fields(specification)} | more)


def offsets(unit: int = 1, **lengths: int) -> dict[str, int]:
    """Where the parts of a piece of memory begin, one after the other, each at a multiple of `unit`.

    The last entry, "end", is the length of the whole.
    """
    found, end = {}, 0
    for name, length in lengths.items():
        found[name] = end
        end += -(-length // unit) * unit
    return found | {"end": end}
