"""Small operations on distributions, and the backward passes that the paper asks for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nram.machine.distributions import certain, choose, limited_log, renormalise


def test_renormalising_rescales_to_a_sum_of_one():
    x = np.random.default_rng(0).uniform(0.1, 3, size=(5, 7)).astype(np.float32)
    np.testing.assert_allclose(renormalise(jnp.asarray(x)), x / x.sum(-1, keepdims=True), rtol=1e-6)


def test_renormalising_is_the_identity_backward():
    x = jnp.array([[0.5, 2.0, 0.1], [0.2, 0.2, 0.2]])
    gradient = jnp.array([[1.0, -5.0, 3.0], [0.0, 7.0, 2.0]])
    _, pull = jax.vjp(renormalise, x)
    np.testing.assert_array_equal(pull(gradient)[0], gradient)


def test_certain_values_have_probability_one():
    np.testing.assert_array_equal(certain(jnp.array([2, 0]), 3), [[0, 0, 1], [1, 0, 0]])


def test_logarithms_are_limited_from_below():
    x = jnp.array([0.0, 1e-9, 1e-3, 0.5])
    np.testing.assert_allclose(limited_log(x, 1e-3), np.log([1e-3, 1e-3, 1e-3, 0.5]), rtol=1e-6)
    slopes = jax.vmap(jax.grad(lambda x: limited_log(x, 1e-3)))(x)
    np.testing.assert_allclose(slopes, [0, 0, slopes[2], 2], rtol=1e-6)


@pytest.mark.parametrize("epsilon", [1e-6, 0.2])
def test_choosing_is_softmax_and_mean_entropy_with_their_true_gradients(epsilon, float64):
    """At 0.2 the limit of the logarithm bites: most of the probabilities are below it."""
    rng = np.random.default_rng(3)
    logits = jnp.asarray(rng.normal(scale=2, size=(4, 6)))
    gradient = jnp.asarray(rng.normal(size=(4, 6))), jnp.asarray(1.7)

    def plainly(logits, epsilon):
        weights = jnp.exp(logits) / jnp.sum(jnp.exp(logits), -1, keepdims=True)
        return weights, jnp.mean(-jnp.sum(weights * jnp.log(jnp.maximum(weights, epsilon)), -1))

    expected, expected_pull = jax.vjp(plainly, logits, jnp.asarray(epsilon))
    found, pull = jax.vjp(choose, logits, jnp.asarray(epsilon))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-13)
    np.testing.assert_allclose(pull(gradient)[0], expected_pull(gradient)[0], rtol=0, atol=1e-13)
    assert (np.asarray(found[0]) < 0.2).mean() > 0.5
