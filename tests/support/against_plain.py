"""Kernels against the plain path: machines with batches of random examples, run by either, and compared."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nram.extensions import select_modules
from nram.machine import Options, Wiring
from nram.machine.kernels.common.outcomes import Batch, outcomes_and_gradient
from nram.tasks.base import TracedInstance
from nram.training.loss import soft_outcome

EPSILON = 1e-3  # large, so that many probabilities lie below it


@dataclass(frozen=True)
class Case(ABC):
    """A machine, a controller and a batch of random examples."""

    seed: int
    modules: tuple[str, ...] = ("READ", "INC", "WRITE")
    kind: str = "mlp"
    registers: int = 2
    size: int = 4
    steps: int = 3
    batch: int = 5
    loss: str = "expected"
    clip: float = np.inf
    renormalising: bool = True
    hard: bool = False
    precision: str = "float64"
    sharpness: float = 2.0
    halt_bias: float = -1.0

    @property
    def wiring(self) -> Wiring:
        return Wiring(self.registers, select_modules(self.modules))

    @abstractmethod
    def shape(self, controller) -> Any:
        """What the kernel is made for."""


class Inputs:
    """Random examples for a case, with the seeds of a gradient; `members` of them stacked where there are any."""

    def __init__(self, case: Case, members: tuple[int, ...] = ()):
        rng = np.random.default_rng(case.seed)
        shape = (*members, case.batch, case.size)
        self.memory, self.wanted = (rng.integers(0, case.size, shape).astype(np.int32) for _ in range(2))
        self.cells = rng.random(shape) < 0.6
        self.cells[..., rng.integers(case.size)] = True
        self.limits = rng.integers(1, case.steps + 1, shape[:-1]).astype(np.int32)
        self.seeds = rng.normal(size=(*members, 3, case.batch)).astype(case.precision)
        shares = self.cells / np.sum(self.cells, axis=-1, keepdims=True)
        self.batch = Batch(
            jnp.asarray(self.memory),
            jnp.asarray(self.wanted),
            jnp.asarray(shares.astype(case.precision)),
            jnp.asarray(self.limits),
            jnp.full(members, case.clip, case.precision),
            jnp.full(members, EPSILON, case.precision),
        )


def controller_and_inputs(random_controllers, case: Case, members: tuple[int, ...] = ()):
    controller = random_controllers(
        case.kind, case.wiring, case.seed, members, output_scale=case.sharpness, halt_bias=case.halt_bias
    )
    return jax.tree.map(lambda leaf: leaf.astype(case.precision), controller), Inputs(case, members)


def gradient_and_outcomes(total):
    return jax.grad(total, has_aux=True)


def plain(case: Case, controller, inputs: Inputs, jit, differentiate=gradient_and_outcomes):
    """Outcomes and gradient by the plain path."""
    options = Options(case.clip, EPSILON, case.renormalising, case.hard)

    def total(controller, memory, wanted, cells, limits, seeds):
        def one(memory, wanted, cells, limit):
            instance = TracedInstance(memory, wanted, cells, cells)
            return soft_outcome(
                controller, case.wiring, instance, limit, case.steps, options, kind=case.loss, dtype=case.precision
            )

        found = jax.vmap(one)(memory, wanted, cells, limits)
        return jnp.sum(seeds * jnp.stack([found.loss, found.entropy, found.time])), found

    run = jit(differentiate(total))
    gradient, found = run(controller, inputs.memory, inputs.wanted, inputs.cells, inputs.limits, inputs.seeds)
    return found, gradient


def by_kernel(case: Case, controller, inputs: Inputs):
    shape = case.shape(controller)
    return jax.jit(lambda *given: outcomes_and_gradient(shape, *given))(controller, inputs.batch, inputs.seeds)


def distance(a, b) -> float:
    """The largest difference in any part, relative to the size of that part."""
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return max(float(np.max(np.abs(np.asarray(x) - np.asarray(y))) / (np.max(np.abs(x)) + 1e-300)) for x, y in pairs)
