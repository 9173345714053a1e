"""The kernels against the plain path: the same outcomes and gradients, whatever the machine and the batch."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.against_plain import Case, by_kernel, controller_and_inputs, distance, plain

from nram.machine import run_hard
from nram.machine.kernels.common.outcomes import Batch, outcomes, outcomes_and_gradient
from nram.machine.kernels.cpu.choice import kernel_shape
from nram.machine.kernels.cpu.shape import Vectors
from nram.modules import MODULE_NAMES


@dataclass(frozen=True)
class CpuCase(Case):
    def shape(self, controller):
        return kernel_shape(
            self.kind,  # pyright: ignore[reportArgumentType]
            self.wiring,
            hidden=controller.output.weight.shape[0],
            states=getattr(controller, "states", 0),
            size=self.size,
            steps=self.steps,
            batch=self.batch,
            renormalising=self.renormalising,
            loss=self.loss,  # pyright: ignore[reportArgumentType]
            hard=self.hard,
            precision=self.precision,  # pyright: ignore[reportArgumentType]
        )


@pytest.fixture
def make(random_controllers):
    """A case's controller and inputs."""
    return partial(controller_and_inputs, random_controllers)


def random_case(seed: int) -> CpuCase:
    rng = np.random.default_rng(1000 + seed)
    # Without READ nothing in the registers depends on the example: the plain path has them once for all examples, and
    # crops the sum of their gradients.
    names = ("READ", *map(str, rng.choice(MODULE_NAMES, rng.integers(2, 6))))
    return CpuCase(
        seed,
        modules=tuple(map(str, rng.permutation(names))) * int(rng.integers(1, 3)),
        kind=("mlp", "lstm", "automaton")[seed % 3],
        registers=int(rng.integers(1, 7)),
        size=int(rng.integers(3, 20)),
        steps=int(rng.integers(1, 7)),
        batch=int(rng.integers(1, 30)),
        loss=("expected", "average")[seed % 2],
        clip=float(rng.choice([0.01, 0.1, np.inf])),
        renormalising=bool(rng.random() < 0.7),
    )


ALL_MODULES = CpuCase(9, modules=MODULE_NAMES, registers=3, size=5, steps=4, batch=11, clip=0.05)


@pytest.mark.parametrize("case", [*map(random_case, range(4)), ALL_MODULES], ids=lambda case: case.seed)
def test_in_float64_outcomes_and_gradient_are_those_of_the_plain_path(case, make, float64, quick_jit):
    controller, inputs = make(case)
    expected, expected_gradient = plain(case, controller, inputs, quick_jit)
    found, gradient = by_kernel(case, controller, inputs)
    assert distance(expected[:3], found[:3]) < 1e-9
    assert distance(expected_gradient, gradient) < 1e-9
    assert max(float(jnp.max(jnp.abs(leaf))) for leaf in jax.tree.leaves(gradient)) > 1e-6


HARD = [
    CpuCase(21, modules=MODULE_NAMES, registers=3, size=5, steps=4, batch=11, clip=0.05, hard=True),  # runs on
    CpuCase(
        22,
        modules=("READ", "ADD", "WRITE"),
        kind="lstm",
        registers=4,
        size=6,
        steps=5,
        batch=9,
        hard=True,
        halt_bias=0.0,
    ),  # stops
]


AVERAGE = CpuCase(23, kind="automaton", size=5, batch=7, clip=0.05, loss="average", hard=True, halt_bias=0.2)


@pytest.mark.parametrize("case", [*HARD, AVERAGE], ids=lambda case: case.kind)
def test_a_hard_forward_pass_and_its_gradient_are_those_of_the_plain_path(case, make, float64, quick_jit):
    controller, inputs = make(case)
    expected, expected_gradient = plain(case, controller, inputs, quick_jit)
    found, gradient = by_kernel(case, controller, inputs)
    assert distance(expected[:3], found[:3]) < 1e-9
    assert distance(expected_gradient, gradient) < 1e-9
    assert max(float(jnp.max(jnp.abs(leaf))) for leaf in jax.tree.leaves(gradient)) > 1e-6


@pytest.mark.parametrize("case", HARD, ids=lambda case: case.kind)
def test_a_hard_forward_pass_is_the_discrete_machine(case, make, float64):
    controller, inputs = make(case)
    found, _ = by_kernel(case, controller, inputs)
    run = jax.jit(jax.vmap(lambda memory, limit: run_hard(controller, case.wiring, memory, limit)))
    ends = run(inputs.memory, inputs.limits)
    np.testing.assert_array_equal(found.predicted, ends.memory)
    np.testing.assert_allclose(found.time, ends.steps / inputs.limits)
    assert np.all(ends.halted) == (case.kind == "lstm") and np.any(ends.memory != inputs.memory)


@pytest.mark.parametrize("kind", ["mlp", "lstm"])
def test_in_float32_the_difference_is_rounding(kind, make, quick_jit):
    names = ("READ", "ADD", "MIN", "LESS-THAN", "WRITE")
    case = CpuCase(12, names, kind, registers=3, size=5, steps=4, batch=11, precision="float32")
    controller, inputs = make(case)
    with jax.enable_x64(True):
        exact, inputs64 = make(replace(case, precision="float64"))
        exact = jax.tree.map(lambda leaf: jnp.asarray(leaf, "float64"), controller)
        inputs64.seeds = inputs.seeds.astype("float64")
        expected, expected_gradient = plain(replace(case, precision="float64"), exact, inputs64, quick_jit)
    found, gradient = by_kernel(case, controller, inputs)
    assert distance(expected[:3], found[:3]) < 1e-5
    assert distance(expected_gradient, gradient) < 3e-5


def test_predictions_are_those_of_the_plain_path(make, quick_jit):
    case = CpuCase(3, steps=6, batch=40, precision="float32", sharpness=6.0)
    controller, inputs = make(case)
    expected, _ = plain(case, controller, inputs, quick_jit, differentiate=lambda total: total)
    found, _ = by_kernel(case, controller, inputs)
    exact = ~np.any((np.asarray(found.predicted) != inputs.wanted) & inputs.cells, axis=1)
    np.testing.assert_array_equal(exact, np.asarray(expected.exact))
    assert len(np.unique(np.asarray(found.predicted))) == case.size


@pytest.mark.parametrize("batch", [1, 4, 9, 16, 21])
def test_every_size_of_batch_gives_the_same_as_one_example_at_a_time(batch, make):
    case = CpuCase(5, precision="float32", batch=batch)
    controller, inputs = make(case)
    found, gradient = by_kernel(case, controller, inputs)
    single, total = replace(case, batch=1), jax.tree.map(jnp.zeros_like, controller)
    shape = single.shape(controller)
    run = jax.jit(lambda *given: outcomes_and_gradient(shape, *given))
    for place in range(batch):
        rows = inputs.batch._replace(
            **{name: getattr(inputs.batch, name)[place : place + 1] for name in Batch._fields[:4]}
        )
        own, part = run(controller, rows, inputs.seeds[:, place : place + 1])
        for name in ("loss", "entropy", "time"):
            np.testing.assert_allclose(getattr(found, name)[place], getattr(own, name)[0], rtol=2e-5)
        total = jax.tree.map(jnp.add, total, part)
    assert distance(total, gradient) < 2e-5


def test_more_steps_than_are_summed_at_once_count_all_the_same(make, float64, quick_jit):
    case = CpuCase(6, modules=("READ", "DEC"), registers=1, size=3, steps=90, batch=19)
    controller, inputs = make(case)
    expected, expected_gradient = plain(case, controller, inputs, quick_jit)
    found, gradient = by_kernel(case, controller, inputs)
    assert distance(expected[:3], found[:3]) < 1e-9
    assert distance(expected_gradient, gradient) < 1e-9


def test_outcomes_alone_are_the_same_and_can_be_differentiated(make, float64):
    case = CpuCase(7, kind="automaton", batch=9)
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


@pytest.mark.parametrize("kind", ["mlp", "lstm", "automaton"])
def test_a_weight_that_is_not_a_number_makes_the_loss_and_the_gradient_so(kind, make):
    case = CpuCase(8, kind=kind, precision="float32")
    controller, inputs = make(case)
    leaves, tree = jax.tree.flatten(controller)
    leaves[-1] = leaves[-1].at[0].set(jnp.nan)  # the logit of a wire, in the output layer's bias
    found, gradient = by_kernel(case, jax.tree.unflatten(tree, leaves), inputs)
    assert np.all(np.isnan(found.loss))
    assert not all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(gradient))


def test_the_same_call_gives_the_same_bits(make):
    case = CpuCase(10, precision="float32", batch=21)
    controller, inputs = make(case)
    first, second = (by_kernel(case, controller, inputs) for _ in range(2))
    for one, other in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("vectors", [Vectors(8, 12), Vectors(4, 24), Vectors(2, 8)])
def test_processors_with_narrower_vectors_get_the_same(vectors, make):
    case = CpuCase(11, precision="float32", batch=21)
    controller, inputs = make(case)
    expected = by_kernel(case, controller, inputs)
    shape = replace(case.shape(controller), vectors=vectors)
    found = jax.jit(lambda *given: outcomes_and_gradient(shape, *given))(controller, inputs.batch, inputs.seeds)
    assert distance(expected[0][:3], found[0][:3]) < 1e-5
    assert distance(expected[1], found[1]) < 1e-5
