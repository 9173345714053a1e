"""The kernels as JAX functions: outcomes of a batch of examples, and the gradient of a cost linear in them.

The same as `nram.machine.fast.outcomes`, whose types it shares. Members are a batch axis: under `vmap` all of them are
one launch.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from nram.machine.controllers import Controller
from nram.machine.fast.outcomes import Batch, Raw
from nram.machine.gpu.compiled import registered
from nram.machine.gpu.frame import WHOLE, buffer_shapes, given
from nram.machine.gpu.shape import WarpShape


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def outcomes(shape: WarpShape, controller: Controller, batch: Batch) -> Raw:
    """The outcomes alone; differentiating them runs the examples again."""
    raw, _ = called(shape, False, controller, batch, jnp.zeros((3, shape.batch), shape.precision))
    return raw


def _outcomes_forward(shape: WarpShape, controller: Controller, batch: Batch):
    return outcomes(shape, controller, batch), (controller, batch)


def _outcomes_backward(shape: WarpShape, residuals, gradients: Raw):
    controller, batch = residuals
    seeds = jnp.stack([gradients.loss, gradients.entropy, gradients.time])
    _, gradient = called(shape, True, controller, batch, seeds)
    return gradient, jax.tree.map(_no_gradient, batch)


outcomes.defvjp(_outcomes_forward, _outcomes_backward)


def outcomes_and_gradient(
    shape: WarpShape, controller: Controller, batch: Batch, seeds: Array
) -> tuple[Raw, Controller]:
    """The outcomes, and the gradient of the sum of `seeds` [loss, entropy, time; B] times them."""
    return called(shape, True, controller, batch, seeds)


def _no_gradient(leaf: Array) -> Any:
    return jnp.zeros_like(leaf) if jnp.issubdtype(leaf.dtype, jnp.floating) else None


def called(shape: WarpShape, gradient: bool, controller: Any, batch: Batch, seeds: Array) -> tuple[Raw, Any]:
    """The outcomes, and the gradient if it is asked for."""
    shape = shape.with_gradient(gradient)
    leaves, tree = jax.tree.flatten(controller)
    options = jnp.stack([batch.clip, batch.epsilon])
    arguments = [*leaves, batch.memory, batch.wanted, batch.shares, batch.limits, seeds, options]
    kinds = {
        name: jax.ShapeDtypeStruct(own, jnp.int32 if name in WHOLE else shape.precision)
        for name, own in buffer_shapes(shape).items()
    }
    names = list(kinds)
    arguments = [jnp.asarray(value, kinds[name].dtype) for value, name in zip(arguments, names, strict=False)]
    results = [kinds[name] for name in names[given(shape) :]]

    call = jax.ffi.ffi_call(registered(shape), results, vmap_method="broadcast_all")
    outcomes, predicted, *parts, _workspace = call(*arguments)
    raw = Raw(outcomes[0], outcomes[1], outcomes[2], predicted)
    # A block of warps leaves the sum over its own examples.
    return raw, jax.tree.unflatten(tree, [jnp.sum(part, axis=0) for part in parts]) if gradient else None
