"""Small operations on distributions, with the backward passes that the paper asks for."""

import jax
import jax.numpy as jnp
from jax import Array

DOUBT = 0.1  # added to the likelihoods of a discrete forward pass: they are 0 or 1, and 0 has no logarithm


@jax.custom_vjp
def renormalise(x: Array) -> Array:
    """Rescale to a sum of 1. The backward pass treats it as the identity ('Enforcing Distribution
    Constraints' in the paper): it corrects rounding, and must not change gradients."""
    return x / jnp.sum(x, axis=-1, keepdims=True)


renormalise.defvjp(lambda x: (renormalise(x), None), lambda _, gradient: (gradient,))


def certain(values: Array, size: int, dtype=jnp.float32) -> Array:
    """Distributions that hold these integers with certainty."""
    return jax.nn.one_hot(values, size, dtype=dtype)


def limited_log(x: Array, epsilon: Array | float) -> Array:
    """log(max(x, epsilon)), the paper's guard wherever a logarithm is taken."""
    return jnp.log(jnp.maximum(x, epsilon))


@jax.custom_vjp
def choose(logits: Array, epsilon: Array) -> tuple[Array, Array]:
    """Softmax over the last axis, and the mean entropy of the distributions.

    They are one function because their gradients share terms. As two functions, XLA's CPU code for
    the backward pass takes twice as long.
    """
    return _choose_forward(logits, epsilon)[0]


def _choose_forward(logits, epsilon):
    weights = jax.nn.softmax(logits, axis=-1)
    logs = limited_log(weights, epsilon)
    rows = weights.size // weights.shape[-1]
    return (weights, -jnp.sum(weights * logs) / rows), (weights, logs, epsilon)


def _choose_backward(residuals, gradients):
    weights, logs, epsilon = residuals
    gradient, entropy_gradient = gradients
    rows = weights.size // weights.shape[-1]
    # d/dw of -w log(max(w, epsilon)): the logarithm has a slope only above epsilon.
    slope = logs + (weights > epsilon)
    gradient = gradient - entropy_gradient / rows * slope
    gradient = weights * (gradient - jnp.sum(weights * gradient, axis=-1, keepdims=True))
    return gradient, jnp.zeros_like(epsilon)


choose.defvjp(_choose_forward, _choose_backward)
