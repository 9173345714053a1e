"""One table of cases for all kernels: machines with batches of random examples, and what the plain path says of them.

The kernels are: that of the CPU, that of the GPU emulated on a CPU, and, where there is a GPU, that of the GPU itself.
Every array is exact in float32, so that the same numbers can be given to kernels of either precision.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nram.extensions import select_modules
from nram.machine import Options, Wiring
from nram.machine.kernels.common.outcomes import Batch, Raw, outcomes_and_gradient
from nram.machine.kernels.common.specification import Precision, Shape, Specification, specify
from nram.machine.kernels.cpu.shape import lane_shape
from nram.machine.kernels.gpu.shape import warp_shape
from nram.modules import MODULE_NAMES
from nram.tasks.base import TracedInstance
from nram.training.loss import soft_outcome
from support.emulated_gpu import emulated_shape
from support.random_controllers import random_controllers

EPSILON = float(np.float32(1e-3))  # large, so that many probabilities lie below it
HIDDEN, STATES = 8, 3  # of the random controllers


@dataclass(frozen=True)
class Case:
    """A machine, a controller and a batch of random examples."""

    name: str
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
    straight_through: bool = False
    sharpness: float = 2.0
    halt_bias: float = -1.0
    warps: int = 0  # of a GPU's block; 0: as many as fit
    gathered: int = 0  # wires of a GPU's warp; 0: as many as fit

    @property
    def wiring(self) -> Wiring:
        return Wiring(self.registers, select_modules(self.modules))

    def specification(self, precision: Precision) -> Specification:
        return specify(
            self.wiring,
            controller=self.kind,
            hidden=HIDDEN,
            states=STATES,
            size=self.size,
            steps=self.steps,
            batch=self.batch,
            renormalising=self.renormalising,
            loss=self.loss,
            straight_through=self.straight_through,
            precision=precision,
        )


def _random_case(index: int) -> Case:
    rng = np.random.default_rng(1000 + index)
    # Without READ nothing in the registers depends on the example: the plain path has them once for all examples, and
    # crops the sum of their gradients.
    names = ("READ", *map(str, rng.choice(MODULE_NAMES, rng.integers(2, 6))))
    return Case(
        f"random {index}",
        seed=index,
        modules=tuple(map(str, rng.permutation(names))) * int(rng.integers(1, 3)),
        kind=("mlp", "lstm", "automaton")[index % 3],
        registers=int(rng.integers(1, 7)),
        size=int(rng.integers(3, 20)),
        steps=int(rng.integers(1, 7)),
        batch=int(rng.integers(1, 30)),
        loss=("expected", "average")[index % 2],
        clip=float(rng.choice([0.01, 0.1, np.inf])),
        renormalising=bool(rng.random() < 0.7),
    )


HARD = (
    Case(
        "straight-through, runs on",
        21,
        MODULE_NAMES,
        registers=3,
        size=5,
        steps=4,
        batch=11,
        clip=0.05,
        straight_through=True,
    ),
    Case(
        "straight-through, halts",
        22,
        ("READ", "ADD", "WRITE"),
        "lstm",
        4,
        6,
        steps=5,
        batch=9,
        straight_through=True,
        halt_bias=0.0,
    ),
)
CASES = (
    Case("all modules", 9, MODULE_NAMES, registers=3, size=5, steps=4, batch=11, clip=0.05, warps=3),
    Case("automaton", 2, ("READ", "ADD", "TWO", "WRITE"), "automaton", size=3, loss="average", clip=0.05),
    Case(
        "more wires than lanes of a warp",
        3,
        ("READ", *["EQUALITY-TEST"] * 14, "WRITE"),
        "lstm",
        registers=3,
        size=7,
        steps=2,
        batch=2,
        clip=0.02,
        renormalising=False,
    ),
    Case("more cells than lanes", 4, ("READ", "SUB", "MAX", "DEC"), registers=1, size=41, steps=2, batch=3, clip=0.05),
    Case(
        "READs that wait for a WRITE",
        10,
        ("READ", "READ", "READ", "WRITE", "ADD", "READ", "WRITE", "LESS-THAN"),
        registers=3,
        size=6,
        batch=4,
        clip=0.05,
        gathered=8,
    ),
    Case(
        "as many cells as lanes", 5, ("WRITE", "READ", "WRITE", "MAX"), registers=3, size=32, clip=0.01, loss="average"
    ),
    Case("more steps than slots", 6, ("READ", "DEC"), registers=1, size=3, steps=90, batch=19),
    Case("sharp", 3, steps=6, batch=40, sharpness=6.0),
    *map(_random_case, range(4)),
    *HARD,
    Case(
        "straight-through average", 13, size=5, batch=7, clip=0.05, loss="average", straight_through=True, halt_bias=0.2
    ),
    Case(
        "straight-through automaton",
        23,
        kind="automaton",
        size=5,
        batch=7,
        clip=0.05,
        loss="average",
        straight_through=True,
        halt_bias=0.2,
    ),
)


class Inputs:
    """Random examples for a case, with the seeds of a gradient; `members` of them stacked where there are any."""

    def __init__(self, case: Case, members: tuple[int, ...] = ()):
        rng = np.random.default_rng(case.seed)
        shape = (*members, case.batch, case.size)
        self.memory, self.wanted = (rng.integers(0, case.size, shape).astype(np.int32) for _ in range(2))
        self.cells = rng.random(shape) < 0.6
        self.cells[..., rng.integers(case.size)] = True
        self.limits = rng.integers(1, case.steps + 1, shape[:-1]).astype(np.int32)
        self.seeds = rng.normal(size=(*members, 3, case.batch)).astype(np.float32)
        self.controller = random_controllers(
            case.kind, case.wiring, case.seed, members, output_scale=case.sharpness, halt_bias=case.halt_bias
        )
        self.controller = jax.tree.map(lambda leaf: np.asarray(leaf, np.float32), self.controller)
        shares = self.cells / np.sum(self.cells, axis=-1, keepdims=True)
        clip, epsilon = np.full(members, case.clip), np.full(members, EPSILON)
        # NumPy arrays: JAX gives them the precision that is enabled where they are used.
        self.batch: Any = Batch(*(self.memory, self.wanted, shares, self.limits, clip, epsilon))  # pyright: ignore

    def of(self, precision: Precision) -> tuple[Any, Batch, np.ndarray]:
        """The arguments of a kernel of this precision."""
        controller = jax.tree.map(lambda leaf: leaf.astype(precision), self.controller)
        return controller, self.batch, self.seeds.astype(precision)


class Expected(NamedTuple):
    """What the plain path says of a case, in float64."""

    outcomes: Any
    gradient: Any


@lru_cache(maxsize=len(CASES))
def plain(case: Case) -> Expected:
    """Outcomes and gradient by the plain path; once for all kernels."""
    inputs, options = Inputs(case), Options(case.clip, EPSILON, case.renormalising, case.straight_through)

    def total(controller, memory, wanted, cells, limits, seeds):
        def one(memory, wanted, cells, limit):
            instance = TracedInstance(memory, wanted, cells, cells)
            return soft_outcome(
                controller, case.wiring, instance, limit, case.steps, options, kind=case.loss, dtype="float64"
            )

        found = jax.vmap(one)(memory, wanted, cells, limits)
        return jnp.sum(seeds * jnp.stack([found.loss, found.entropy, found.time])), found

    with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
        controller, _, seeds = inputs.of("float64")
        # It runs for milliseconds: hardly optimised, it compiles faster.
        run = jax.jit(jax.grad(total, has_aux=True), compiler_options={"xla_backend_optimization_level": 0})
        gradient, found = run(controller, inputs.memory, inputs.wanted, inputs.cells, inputs.limits, seeds)
        return Expected(*jax.tree.map(np.asarray, (found, gradient)))


@dataclass(frozen=True)
class Backend:
    """A kernel, and where it runs."""

    name: str
    platform: str
    extend: Callable[[Specification], Shape]
    exact: Precision  # the highest precision it has

    def shape(self, case: Case, precision: Precision | None = None) -> Any:
        shape: Any = self.extend(case.specification(precision or self.exact))
        if self.name == "cpu":
            return shape
        return replace(shape, warps=case.warps or shape.warps, gathered=case.gathered or shape.gathered)

    def run(self, shape: Shape, function: Callable[..., Any], *arguments: Any) -> Any:
        """`function(shape, ...)`, compiled by JAX."""
        with jax.enable_x64(shape.precision == "float64"), jax.default_device(jax.devices(self.platform)[0]):
            return jax.jit(partial(function, shape))(*arguments)

    def outcomes_and_gradient(self, shape: Shape, inputs: Inputs) -> tuple[Raw, Any]:
        return self.run(shape, outcomes_and_gradient, *inputs.of(shape.precision))

    def of_members(self, shape: Shape, inputs: Inputs, function: Callable[..., Any]) -> Any:
        """The function's results for stacked members."""

        def members(shape, *arguments):
            return jax.vmap(partial(function, shape))(*arguments)

        return self.run(shape, members, *inputs.of(shape.precision))


BACKENDS = {
    "cpu": Backend("cpu", "cpu", lane_shape, "float64"),
    "emulated": Backend("emulated", "cpu", emulated_shape, "float64"),
    "gpu": Backend("gpu", "gpu", warp_shape, "float32"),
}


def backend_or_skip(name: str) -> Backend:
    if name == "gpu":
        try:
            jax.devices("gpu")
        except RuntimeError:
            pytest.skip("there is no GPU here, or JAX_PLATFORMS leaves it out")
    return BACKENDS[name]


def distance(a, b) -> float:
    """The largest difference in any part, relative to the size of that part."""
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return max(float(np.max(np.abs(np.asarray(x) - np.asarray(y))) / (np.max(np.abs(x)) + 1e-300)) for x, y in pairs)
