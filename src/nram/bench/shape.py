"""The sizes of a training step that is measured. This file does not import JAX."""

from collections.abc import Iterable
from typing import NamedTuple

from nram.errors import UsageError
from nram.kinds import ControllerKind


class StepShape(NamedTuple):
    """A training step: the defaults are those of `nram bench step`."""

    task: str = "copy"
    memory_size: int = 12
    registers: int = 4
    steps: int = 11
    repeats: int = 1
    controller: ControllerKind = "mlp"
    hidden: int = 65
    states: int = 4
    batch: int = 50
    population: int = 1

    @property
    def example_steps(self) -> int:
        return self.population * self.batch * self.steps


AXES: dict[str, tuple[str, tuple[int, ...]]] = {
    "memory_size": ("M", (6, 12, 24, 48)),
    "steps": ("T", (6, 11, 22, 44)),
    "registers": ("R", (2, 4, 6, 8)),
    "batch": ("batch", (16, 32, 64, 128, 256)),
    "population": ("population", (1, 2, 4, 8)),
    "repeats": ("repetitions of the modules", (1, 2, 3)),
}
"""The sizes that `nram bench scaling` changes: the label in tables and pictures, and the values."""


def check_axes(names: Iterable[str]) -> list[str]:
    """The axes of these names, all if there are none. UsageError for an unknown one."""
    chosen = list(names) or list(AXES)
    for name in chosen:
        if name not in AXES:
            raise UsageError(f"there is no axis '{name}': the axes are {', '.join(AXES)}")
    return chosen
