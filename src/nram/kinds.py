"""Names of kinds that the machine, its kernels, training and the benchmarks share."""

from typing import Literal, TypeAlias

ControllerKind: TypeAlias = Literal["mlp", "lstm", "automaton"]
"""What chooses the circuits: two networks, and a network with a finite number of states."""

LossKind: TypeAlias = Literal["expected", "average"]
"""The paper's loss, or the one of its footnote."""
