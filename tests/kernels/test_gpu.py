"""The mathematics of the GPU's kernels, run on a CPU: the same outcomes and gradients as the plain path."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.against_plain import Case, by_kernel, controller_and_inputs, distance, plain

from nram.machine.kernels.common.outcomes import outcomes, outcomes_and_gradient
from nram.machine.kernels.gpu.choice import warp_shape
from nram.modules import MODULE_NAMES


@dataclass(frozen=True)
class WarpCase(Case):
    warps: int = 0  # of a block; 0: as many as fit
    gathered: int = 32

    def shape(self, controller):
        chosen: Any = {"loss": self.loss, "precision": self.precision, "renormalising": self.renormalising}
        shape = warp_shape(
            self.kind,  # pyright: ignore[reportArgumentType]
            self.wiring,
            hidden=controller.output.weight.shape[-2],
            states=getattr(controller, "states", 0),
            size=self.size,
            steps=self.steps,
            batch=self.batch,
            platform="cpu",
            hard=self.hard,
            **chosen,
        )
        return replace(shape, warps=self.warps or shape.warps, gathered=self.gathered)


@pytest.fixture
def make(random_controllers):
    """A case's controller and inputs."""
    return partial(controller_and_inputs, random_controllers)


MANY_WIRES = ("READ", *["EQUALITY-TEST"] * 14, "WRITE")  # more than there are lanes
TWO_COLUMNS = ("READ", "SUB", "MAX", "DEC")
MUCH_MEMORY = ("READ", "READ", "READ", "WRITE", "ADD", "READ", "WRITE", "LESS-THAN")  # some wait for a WRITE to come
CASES = [
    WarpCase(1, MODULE_NAMES, size=5, batch=7, clip=0.05, warps=3),
    WarpCase(2, ("READ", "ADD", "TWO", "WRITE"), "automaton", size=3, loss="average", clip=0.05),
    WarpCase(3, MANY_WIRES, "lstm", size=7, steps=2, batch=2, registers=3, clip=0.02, renormalising=False),
    WarpCase(4, TWO_COLUMNS, size=41, steps=2, batch=3, clip=0.05, registers=1),
    WarpCase(10, MUCH_MEMORY, registers=3, size=6, batch=4, clip=0.05, gathered=8),
    WarpCase(5, ("WRITE", "READ", "WRITE", "MAX"), registers=3, size=32, clip=0.01, loss="average"),
    WarpCase(11, MODULE_NAMES, size=5, batch=7, clip=0.05, hard=True),
    WarpCase(12, ("READ", "ADD", "WRITE"), "lstm", registers=4, size=6, steps=5, batch=9, hard=True, halt_bias=0.5),
    WarpCase(13, size=5, batch=7, clip=0.05, loss="average", hard=True, halt_bias=0.2),
]


@pytest.mark.parametrize(
    "case", CASES, ids=lambda case: f"{case.kind} M{case.size} x{len(case.modules)}{' hard' * case.hard}"
)
def test_in_float64_outcomes_and_gradient_are_those_of_the_plain_path(case, make, float64, quick_jit):
    controller, inputs = make(case)
    expected, expected_gradient = plain(case, controller, inputs, quick_jit)
    found, gradient = by_kernel(case, controller, inputs)
    assert distance(expected[:3], found[:3]) < 1e-9
    assert distance(expected_gradient, gradient) < 1e-9
    assert max(float(jnp.max(jnp.abs(leaf))) for leaf in jax.tree.leaves(gradient)) > 1e-6
    exact = ~np.any((np.asarray(found.predicted) != inputs.wanted) & inputs.cells, axis=1)
    np.testing.assert_array_equal(exact, np.asarray(expected.exact))


def test_in_float32_the_difference_is_rounding(make, quick_jit):
    case = WarpCase(6, ("READ", "ADD", "MIN", "WRITE"), size=6, steps=4, precision="float32")
    controller, inputs = make(case)
    with jax.enable_x64(True):
        exact = jax.tree.map(lambda leaf: jnp.asarray(leaf, "float64"), controller)
        wide = replace(case, precision="float64")
        _, inputs64 = make(wide)
        inputs64.seeds = inputs.seeds.astype("float64")
        expected, expected_gradient = plain(wide, exact, inputs64, quick_jit)
    found, gradient = by_kernel(case, controller, inputs)
    assert distance(expected[:3], found[:3]) < 1e-5
    assert distance(expected_gradient, gradient) < 3e-5


def test_members_under_vmap_get_what_each_would_get_alone(make):
    case = WarpCase(7, precision="float32", warps=2)
    controllers, inputs = make(case, (3,))
    shape = case.shape(controllers)

    def run(*given):
        return outcomes_and_gradient(shape, *given)

    together = jax.jit(jax.vmap(run))(controllers, inputs.batch, inputs.seeds)
    alone = jax.jit(run)
    for member in range(3):
        own = alone(*jax.tree.map(lambda leaf, member=member: leaf[member], (controllers, inputs.batch, inputs.seeds)))
        for one, other in zip(jax.tree.leaves(own), jax.tree.leaves(together), strict=True):
            np.testing.assert_array_equal(one, other[member])


def test_outcomes_alone_are_the_same_and_can_be_differentiated(make, float64):
    case = WarpCase(8, kind="automaton")
    controller, inputs = make(case)
    shape = case.shape(controller)
    found, gradient = by_kernel(case, controller, inputs)

    def total(controller):
        own: Any = outcomes(shape, controller, inputs.batch)
        return jnp.sum(inputs.seeds * jnp.stack([own.loss, own.entropy, own.time])), own

    again, own = jax.jit(jax.grad(total, has_aux=True))(controller)
    assert distance(found[:3], own[:3]) < 1e-12
    np.testing.assert_array_equal(found.predicted, own.predicted)
    assert distance(gradient, again) < 1e-12


def test_a_weight_that_is_not_a_number_makes_the_loss_and_the_gradient_so(make):
    case = WarpCase(9, precision="float32")
    controller, inputs = make(case)
    leaves, tree = jax.tree.flatten(controller)
    leaves[-1] = leaves[-1].at[0].set(jnp.nan)  # the logit of a wire, in the output layer's bias
    found, gradient = by_kernel(case, jax.tree.unflatten(tree, leaves), inputs)
    assert np.all(np.isnan(found.loss))
    assert not all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(gradient))
