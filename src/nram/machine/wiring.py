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

    @cached_property
    def layout(self) -> np.ndarray:
        """For each entry of the [wires, values] matrix its index among the logits, or -1."""
        layout = np.full((self.wires, self.values), -1)
        start = 0
        for wire, length in enumerate(self.lengths):
            layout[wire, :length] = np.arange(start, start + length)
            start += length
        return layout
