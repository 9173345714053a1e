"""The call of a GPU's kernel, behind the functions of `nram.machine.kernels.common.outcomes`.

Members are a batch axis: under `vmap` all of them are in the same launches.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from nram.machine.kernels.common.outcomes import Batch, Raw
from nram.machine.kernels.gpu.compiled import registered
from nram.machine.kernels.gpu.frame import WHOLE, buffer_shapes, given
from nram.machine.kernels.gpu.shape import WarpShape


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
    # Parts of a batch are summed up on their own.
    return raw, jax.tree.unflatten(tree, [jnp.sum(part, axis=0) for part in parts]) if gradient else None
