"""All kernels against the plain path: the same outcomes and gradients, whatever the machine and the batch."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.kernel_cases import BACKENDS, CASES, HARD, Case, Inputs, distance, plain

from nram.machine import run_hard
from nram.machine.kernels.common.outcomes import Batch, outcomes, outcomes_and_gradient
from nram.machine.kernels.cpu.shape import Vectors

TOLERANCES = {"float64": (1e-9, 1e-9), "float32": (1e-5, 3e-5)}  # of outcomes and gradients


def check_against_plain(case: Case, found, gradient, precision) -> None:
    expected, (outcome_error, gradient_error) = plain(case), TOLERANCES[precision]
    assert distance(expected.outcomes[:3], found[:3]) < outcome_error
    assert distance(expected.gradient, gradient) < gradient_error
    assert max(float(np.max(np.abs(leaf))) for leaf in jax.tree.leaves(gradient)) > 1e-6
    inputs = Inputs(case)
    exact = ~np.any((np.asarray(found.predicted) != inputs.wanted) & inputs.cells, axis=1)
    np.testing.assert_array_equal(exact, expected.outcomes.exact)


def some(cases: tuple[Case, ...]) -> list[Any]:
    """The cases. Random ones but the first are slow: the others were chosen to reach every part."""
    late = ("random 1", "random 2", "random 3")
    return [pytest.param(case, marks=pytest.mark.slow if case.name in late else (), id=case.name) for case in cases]


@pytest.mark.parametrize("case", some(CASES))
def test_outcomes_and_gradient_are_those_of_the_plain_path(case, backend):
    shape = backend.shape(case)
    found, gradient = backend.outcomes_and_gradient(shape, Inputs(case))
    check_against_plain(case, found, gradient, shape.precision)


@pytest.mark.parametrize("name", ["all modules", "more wires than lanes of a warp", "automaton"])
def test_in_float32_the_difference_is_rounding(name, backend):
    case = next(case for case in CASES if case.name == name)
    shape = backend.shape(case, "float32")
    found, gradient = backend.outcomes_and_gradient(shape, Inputs(case))
    check_against_plain(case, found, gradient, "float32")


@pytest.mark.parametrize("case", HARD, ids=lambda case: case.name)
def test_a_hard_forward_pass_is_the_discrete_machine(case, backend):
    inputs = Inputs(case)
    found, _ = backend.outcomes_and_gradient(backend.shape(case), inputs)
    controller, *_ = inputs.of("float32")
    run = jax.jit(jax.vmap(lambda memory, limit: run_hard(controller, case.wiring, memory, limit)))
    ends = run(inputs.memory, inputs.limits)
    np.testing.assert_array_equal(found.predicted, ends.memory)
    np.testing.assert_allclose(found.time, ends.steps / inputs.limits, rtol=1e-6)
    assert np.all(ends.halted) == (case.kind == "lstm") and np.any(ends.memory != inputs.memory)


def test_predictions_are_of_many_kinds():
    """So that comparing them says something."""
    case = next(case for case in CASES if case.name == "sharp")
    backend = BACKENDS["cpu"]
    found, _ = backend.outcomes_and_gradient(backend.shape(case), Inputs(case))
    assert len(np.unique(np.asarray(found.predicted))) == case.size


@pytest.mark.parametrize("batch", [1, 4, 9, 16, 21])
def test_every_size_of_batch_gives_the_same_as_one_example_at_a_time(batch, backend):
    case = Case("batches", 5, batch=batch)
    inputs, single = Inputs(case), backend.shape(replace(case, batch=1), "float32")
    found, gradient = backend.outcomes_and_gradient(backend.shape(case, "float32"), inputs)
    controller, rows, seeds = inputs.of("float32")

    def one_by_one(shape, controller, rows, seeds):
        def one(example):
            given = {name: getattr(rows, name)[example][None] for name in Batch._fields[:4]}
            return outcomes_and_gradient(shape, controller, rows._replace(**given), seeds[:, example][:, None])

        raw, parts = jax.lax.map(one, jnp.arange(batch))
        return raw, jax.tree.map(lambda leaf: jnp.sum(leaf, axis=0), parts)

    alone, total = backend.run(single, one_by_one, controller, rows, seeds)
    for name in ("loss", "entropy", "time"):
        np.testing.assert_allclose(getattr(found, name), getattr(alone, name)[:, 0], rtol=2e-5)
    assert distance(total, gradient) < 2e-5


def test_members_under_vmap_get_what_each_would_get_alone(backend):
    case = Case("members", 7, warps=2)
    shape, inputs = backend.shape(case, "float32"), Inputs(case, (3,))
    given = inputs.of("float32")
    all_of_them = backend.of_members(shape, inputs, outcomes_and_gradient)
    for member in range(3):
        own = jax.tree.map(lambda leaf, member=member: leaf[member], given)
        alone = backend.run(shape, outcomes_and_gradient, *own)
        for one, other in zip(jax.tree.leaves(alone), jax.tree.leaves(all_of_them), strict=True):
            np.testing.assert_array_equal(one, other[member])


def test_arrays_of_another_shape_are_refused(backend):
    """Machine code trusts the sizes: it would read and write out of bounds."""
    case = CASES[0]
    shape = backend.shape(case)
    for inputs in (Inputs(case, members=(2,)), Inputs(replace(case, batch=case.batch + 1))):
        with pytest.raises(ValueError, match="the kernel's .* has shape"):
            backend.outcomes_and_gradient(shape, inputs)


def test_outcomes_alone_are_the_same_and_can_be_differentiated(backend):
    case = Case("outcomes alone", 8, kind="automaton", batch=9)
    shape, inputs = backend.shape(case), Inputs(case)
    found, gradient = backend.outcomes_and_gradient(shape, inputs)

    def differentiated(shape, controller, batch, seeds):
        def total(controller):
            own: Any = outcomes(shape, controller, batch)
            return jnp.sum(seeds * jnp.stack([own.loss, own.entropy, own.time])), own

        return jax.grad(total, has_aux=True)(controller)

    again, own = backend.run(shape, differentiated, *inputs.of(shape.precision))
    closest = 1e-12 if shape.precision == "float64" else 1e-6
    assert distance(found[:3], own[:3]) < closest
    np.testing.assert_array_equal(found.predicted, own.predicted)
    assert distance(gradient, again) < closest


@pytest.mark.parametrize("kind", ["mlp", "lstm", "automaton"])
def test_a_weight_that_is_not_a_number_makes_the_loss_and_the_gradient_so(kind, backend):
    case = Case("not a number", 8, kind=kind)
    inputs = Inputs(case)
    leaves, tree = jax.tree.flatten(inputs.controller)
    leaves[-1] = np.where(np.arange(len(leaves[-1])) == 0, np.float32(np.nan), leaves[-1])  # a logit's bias
    inputs.controller = jax.tree.unflatten(tree, leaves)
    found, gradient = backend.outcomes_and_gradient(backend.shape(case, "float32"), inputs)
    assert np.all(np.isnan(found.loss))
    assert not all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(gradient))


def test_the_same_call_gives_the_same_bits(backend):
    case = Case("twice", 10, batch=21)
    inputs = Inputs(case)
    first, second = (backend.outcomes_and_gradient(backend.shape(case, "float32"), inputs) for _ in range(2))
    for one, other in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("vectors", [Vectors(8, 12), Vectors(4, 24), Vectors(2, 8)])
def test_processors_with_narrower_vectors_get_the_same(vectors):
    backend, case = BACKENDS["cpu"], Case("narrow", 11, batch=21)
    shape, inputs = backend.shape(case, "float32"), Inputs(case)
    expected = backend.outcomes_and_gradient(shape, inputs)
    found = backend.outcomes_and_gradient(replace(shape, vectors=vectors), inputs)
    assert distance(expected[0][:3], found[0][:3]) < 1e-5
    assert distance(expected[1], found[1]) < 1e-5
