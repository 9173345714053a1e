"""The kernels as JAX functions: outcomes of a batch of examples, and the gradient of a cost linear in them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import Array

from nram.machine.controllers import Controller
from nram.machine.kernels.cpu.compiled import registered
from nram.machine.kernels.cpu.shape import KernelShape

if TYPE_CHECKING:
    from nram.machine.kernels.gpu.shape import WarpShape

Shape: TypeAlias = "KernelShape | WarpShape"


class Batch(NamedTuple):
    """Examples, and what the soft machine needs to know besides: every array has a leading axis, an example each."""

    memory: Array  # int32 [B, M]
    wanted: Array  # int32 [B, M]
    shares: Array  # [B, M] weights of the cells in the loss
    limits: Array  # int32 [B]
    clip: Array  # scalar, C1
    epsilon: Array  # scalar


class Raw(NamedTuple):
    """What a kernel says of every example."""

    loss: Array  # [B]
    entropy: Array  # [B]
    time: Array  # [B]
    predicted: Array  # int32 [B, M], the most probable value of every cell


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def outcomes(shape: Shape, controller: Controller, batch: Batch) -> Raw:
    """The outcomes alone; differentiating them runs the examples again."""
    raw, _ = _call(shape, False, controller, batch, jnp.zeros((3, shape.batch), shape.precision))
    return raw


def _outcomes_forward(shape: Shape, controller: Controller, batch: Batch):
    return outcomes(shape, controller, batch), (controller, batch)


def _outcomes_backward(shape: Shape, residuals, gradients: Raw):
    controller, batch = residuals
    seeds = jnp.stack([gradients.loss, gradients.entropy, gradients.time])
    _, gradient = _call(shape, True, controller, batch, seeds)
    return gradient, jax.tree.map(_no_gradient, batch)


outcomes.defvjp(_outcomes_forward, _outcomes_backward)


def outcomes_and_gradient(shape: Shape, controller: Controller, batch: Batch, seeds: Array) -> tuple[Raw, Controller]:
    """The outcomes, and the gradient of the sum of `seeds` [loss, entropy, time; B] times them."""
    return _call(shape, True, controller, batch, seeds)


def _no_gradient(leaf: Array) -> Any:
    return jnp.zeros_like(leaf) if jnp.issubdtype(leaf.dtype, jnp.floating) else None


def _call(shape: Shape, gradient: bool, controller: Any, batch: Batch, seeds: Array) -> tuple[Raw, Any]:
    if not isinstance(shape, KernelShape):
        from nram.machine.kernels.gpu.outcomes import called

        return called(shape, gradient, controller, batch, seeds)
    shape = shape.with_gradient(gradient)
    number = jnp.dtype(shape.precision)
    leaves, tree = jax.tree.flatten(controller)
    examples, size = shape.batch, shape.size
    results = [
        jax.ShapeDtypeStruct((3, examples), number),
        jax.ShapeDtypeStruct((examples, size), jnp.int32),
        *([jax.ShapeDtypeStruct(leaf.shape, number) for leaf in leaves] if gradient else []),
        jax.ShapeDtypeStruct((shape.workspace_scalars,), number),
    ]
    call = jax.ffi.ffi_call(registered(shape), results, vmap_method="sequential")
    epsilon = batch.epsilon.astype(number)
    measured, predicted, *rest = call(
        *leaves,
        jnp.argsort(batch.limits).astype(jnp.int32),
        batch.memory.astype(jnp.int32),
        batch.wanted.astype(jnp.int32),
        batch.shares.astype(number),
        batch.limits.astype(jnp.int32),
        seeds.astype(number),
        jnp.stack([batch.clip.astype(number), epsilon, jnp.log(epsilon)]),
    )
    raw = Raw(measured[0], measured[1], measured[2], predicted)
    return raw, jax.tree.unflatten(tree, rest[:-1]) if gradient else None
