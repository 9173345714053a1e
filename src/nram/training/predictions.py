"""What the soft machine answers on many instances, by the kernel of the CPU: for evaluation, without gradients.

Such a kernel depends on the machine and on M alone. It takes few instances at a time. They are dealt out to the cores
in the order of their step limits, so that instances with similar limits run together. The CPU evaluates even where a
GPU trains: this takes a second or two, most of it to compile, and a CPU compiles faster.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nram.machine import Controller
from nram.machine.kernels.common.choice import choose_kernel, compiled_kernel
from nram.machine.kernels.common.outcomes import Batch, Raw, outcomes
from nram.machine.kernels.common.specification import BYTES, Shape
from nram.runtime import Device
from nram.training.config import MachineConfig, TrainConfig
from nram.training.mapping import mapped
from nram.training.member import wiring_of

BATCH = 16  # instances of one call: a vector or two
UNBOUNDED = 2**30  # steps of a kernel; without a gradient they cost no memory
WORKSPACE_BYTES = 2**30  # on all cores together


def cpu_devices() -> list[Device]:
    """The CPU's devices, also where JAX works on a GPU; none if JAX was told not to use the CPU."""
    try:
        return jax.devices("cpu")
    except (RuntimeError, AssertionError):  # the latter is JAX's answer to some JAX_PLATFORMS
        return []


def kernel_predictions(
    config: TrainConfig, controller: Controller, memories: np.ndarray, limits: np.ndarray
) -> np.ndarray | None:
    """The most probable memories [N, M] after so many steps, or None where there is no kernel."""
    devices, (count, size) = cpu_devices(), memories.shape
    shape = _kernel(config.machine, size, devices) if devices else None
    if shape is None:
        return None
    room = WORKSPACE_BYTES // (shape.workspace_scalars * BYTES[shape.precision])
    shards = min(len(devices), room, -(-count // BATCH))
    if shards == 0:
        return None
    order = _dealt(limits, shards)
    batches = order.reshape(-1, BATCH)
    run = _compiled(shape, config.epsilon, tuple(devices[:shards]), len(batches))
    controllers = jax.tree.map(lambda leaf: np.broadcast_to(leaf, (len(batches), *np.shape(leaf))), controller)
    with jax.default_device(devices[0]):
        found = run(controllers, memories[batches].astype(np.int32), limits[batches].astype(np.int32))
    predicted = np.empty((count, size), np.int32)
    predicted[order] = np.asarray(found).reshape(-1, size)
    return predicted


def _kernel(machine: MachineConfig, size: int, devices: list[Device]) -> Shape | None:
    """The kernel without gradient, ready to be called."""
    kernel = choose_kernel(
        devices,
        wiring_of(machine),
        controller=machine.controller,
        hidden=machine.hidden,
        states=machine.states,
        size=size,
        steps=UNBOUNDED,
        batch=BATCH,
        renormalising=machine.renormalise,
        loss="expected",
        gradient=False,
    )
    return compiled_kernel(kernel).shape


def _dealt(limits: np.ndarray, shards: int) -> np.ndarray:
    """Instances in the order in which they run, whole batches for every shard: some of the quickest run again."""
    order = np.argsort(limits, kind="stable")
    missing = -len(order) % (BATCH * shards)
    order = np.concatenate([np.resize(order, missing), order])
    return order.reshape(-1, shards, BATCH).swapaxes(0, 1).reshape(-1)


@lru_cache(maxsize=64)
def _compiled(shape: Shape, epsilon: float, devices: tuple[Device, ...], batches: int) -> Any:
    def one(controller: Controller, memories: Array, limits: Array) -> Array:
        nothing = jnp.zeros(memories.shape, jnp.float32)  # neither the loss nor the expected memories matter
        batch = Batch(memories, memories, nothing, limits, jnp.float32(jnp.inf), jnp.float32(epsilon))
        raw: Raw = outcomes(shape, controller, batch)
        return raw.predicted

    return mapped(one, list(devices), batches)
