"""Which choices a controller makes: the wires of the circuit and where their logits stand.

A wire is one softmax: an argument of a module, or the new value of a register. It chooses among the
registers and the outputs of the modules before it (equations 1 and 3 of the paper), so wires have
different lengths. The controller outputs all their logits as one vector, without padding. For
computing they are laid out as a [wires, values] matrix whose unused entries have a probability of 0.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nram.modules import Module

UNREACHABLE = -1e9  # the logit of an entry that does not exist: exp of it is exactly 0


@dataclass(frozen=True)
class Wiring:
    """The shape of every circuit of a machine: its registers and its sequence of modules."""

    registers: int
    modules: tuple[Module, ...]

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """How many values each wire chooses from: module arguments in order, then registers."""
        arguments = [self.registers + i for i, module in enumerate(self.modules) for _ in range(module.arity)]
        return (*arguments, *[self.values] * self.registers)

    @property
    def values(self) -> int:
        """The number of registers and module outputs: everything that a wire could choose from."""
        return self.registers + len(self.modules)

    @property
    def wires(self) -> int:
        return len(self.lengths)

    @property
    def logits(self) -> int:
        """The length of the controller's description of one circuit."""
        return sum(self.lengths)

    @property
    def register_names(self) -> tuple[str, ...]:
        return tuple(f"r{i + 1}" for i in range(self.registers))

    @property
    def value_names(self) -> tuple[str, ...]:
        """The registers, then the modules; a module that stands in the circuit again is called READ#2."""
        return (*self.register_names, *self._module_names)

    @property
    def wire_names(self) -> tuple[str, ...]:
        """The arguments of the modules, like READ.p, then the registers."""
        called = zip(self._module_names, self.modules, strict=True)
        return (
            *(f"{name}.{argument}" for name, module in called for argument in module.arguments),
            *self.register_names,
        )

    @property
    def _module_names(self) -> list[str]:
        names = [module.name for module in self.modules]
        before = [names[:i].count(name) for i, name in enumerate(names)]
        return [f"{name}#{count + 1}" if count else name for name, count in zip(names, before, strict=True)]

    @cached_property
    def layout(self) -> np.ndarray:
        """For each entry of the [wires, values] matrix its index among the logits, or -1."""
        layout = np.full((self.wires, self.values), -1)
        start = 0
        for wire, length in enumerate(self.lengths):
            layout[wire, :length] = np.arange(start, start + length)
            start += length
        return layout
