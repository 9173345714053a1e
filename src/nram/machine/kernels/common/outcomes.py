"""The kernels as JAX functions: the outcomes of a batch of examples, and the gradient of a cost linear in them."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from nram.machine.controllers import Controller
from nram.machine.kernels.common.specification import INTEGERS, Shape


class Batch(NamedTuple):
    """Examples, and the settings of the soft machine. The first four arrays have an entry for each example."""

    memory: Array  # int32 [B, M]
    wanted: Array  # int32 [B, M]
    shares: Array  # [B, M] weights of the cells in the loss
    limits: Array  # int32 [B]
    clip: Array  # scalar, C1
    epsilon: Array  # scalar


class Raw(NamedTuple):
    """What a kernel computes for every example."""

    loss: Array  # [B]
    entropy: Array  # [B]
    time: Array  # [B]
    predicted: Array  # int32 [B, M], the most probable value of every cell


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def outcomes(shape: Shape, controller: Controller, batch: Batch) -> Raw:
    """The outcomes alone. Differentiating them runs the examples again."""
    raw, _ = _call(shape.with_gradient(False), controller, batch, jnp.zeros((3, shape.batch), shape.precision))
    return raw


def _outcomes_forward(shape: Shape, controller: Controller, batch: Batch):
    return outcomes(shape, controller, batch), (controller, batch)


def _outcomes_backward(shape: Shape, residuals, gradients: Raw):
    controller, batch = residuals
    seeds = jnp.stack([gradients.loss, gradients.entropy, gradients.time])
    _, gradient = outcomes_and_gradient(shape, controller, batch, seeds)
    return gradient, jax.tree.map(_no_gradient, batch)


outcomes.defvjp(_outcomes_forward, _outcomes_backward)


def _no_gradient(leaf: Array) -> Any:
    return jnp.zeros_like(leaf) if jnp.issubdtype(leaf.dtype, jnp.floating) else None


def outcomes_and_gradient(shape: Shape, controller: Controller, batch: Batch, seeds: Array) -> tuple[Raw, Controller]:
    """The outcomes, and the gradient of the sum of `seeds` [loss, entropy, time; B] times them."""
    return _call(shape.with_gradient(True), controller, batch, seeds)


def _call(shape: Shape, controller: Any, batch: Batch, seeds: Array) -> tuple[Raw, Any]:
    kinds = {
        name: jax.ShapeDtypeStruct(lengths, jnp.int32 if name in INTEGERS else shape.precision)
        for name, lengths in shape.buffers.items()
    }
    leaves, tree = jax.tree.flatten(controller)
    epsilon = jnp.asarray(batch.epsilon, shape.precision)
    given = {f"parameter{i}": leaf for i, leaf in enumerate(leaves)} | batch._asdict() | {"seeds": seeds}
    given |= {"options": jnp.stack([jnp.asarray(batch.clip, shape.precision), epsilon, jnp.log(epsilon)])}
    if "order" in kinds:
        given["order"] = jnp.argsort(batch.limits)
    names = list(kinds)
    arguments = [jnp.asarray(given[name], kinds[name].dtype) for name in names[: shape.arguments]]
    for name, argument in zip(names, arguments, strict=False):
        # Machine code trusts the sizes: with others it would read and write out of bounds.
        if argument.shape != kinds[name].shape:
            raise ValueError(f"the kernel's {name} has shape {argument.shape}, not {kinds[name].shape}")
    results = [kinds[name] for name in names[shape.arguments :]]
    call = jax.ffi.ffi_call(shape.registered(), results, vmap_method=shape.vmap_method)
    measured, predicted, *parts, _workspace = call(*arguments)
    raw = Raw(measured[0], measured[1], measured[2], predicted)
    if not shape.gradient:
        return raw, None
    axes = tuple(range(len(shape.gradient_parts)))
    return raw, jax.tree.unflatten(tree, [jnp.sum(part, axis=axes) if axes else part for part in parts])
