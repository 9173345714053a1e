"""What the continuous machine answers on many instances, by the kernel of the CPU: for judging, without gradients.

Such a kernel depends on the machine and on M alone. It takes few instances at a time, which are dealt out to the cores
in the order of their step limits, so that those of like limits run together. Also where a GPU trains, the CPU judges:
it takes a second or two, and most of that to compile, at which a CPU is faster.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nram.machine import Controller
from nram.machine.kernels.cpu.choice import NoKernel, check_wanted, kernel_shape, make
from nram.machine.kernels.cpu.shape import BYTES, KernelShape
from nram.runtime import Device
from nram.training.config import MachineConfig, TrainConfig
from nram.training.member import wiring_of
from nram.training.population import mapped

BATCH = 16  # instances of one call: a vector or two
UNBOUNDED = 2**30  # steps of a kernel; without a gradient they cost no memory
WORKSPACE_BYTES = 2**30  # on all cores together


def cpu_devices() -> list[Device]:
    """The CPU's devices, also where JAX works on a GPU; none if it was told to leave the CPU alone."""
    try:
        return jax.devices("cpu")
    except (RuntimeError, AssertionError):  # the latter is JAX's answer to some JAX_PLATFORMS
        return []


def kernel_predictions(
    config: TrainConfig, controller: Controller, memories: np.ndarray, limits: np.ndarray
) -> np.ndarray | None:
    """The most probable memories [N, M] after so many steps, or None where there is no kernel."""
    devices, (count, size) = cpu_devices(), memories.shape
    if not devices:
        return None
    try:
        check_wanted()
        shape = _kernel(config.machine, size)
    except NoKernel:
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


@lru_cache(maxsize=32)
def _kernel(machine: MachineConfig, size: int) -> KernelShape:
    """The kernel, ready to be called; raises `NoKernel` where there is none."""
    shape = kernel_shape(
        machine.controller,
        wiring_of(machine),
        hidden=machine.hidden,
        states=machine.states,
        size=size,
        steps=UNBOUNDED,
        batch=BATCH,
        renormalising=machine.renormalise,
        loss="expected",
    ).with_gradient(False)
    make(shape)
    return shape


def _dealt(limits: np.ndarray, shards: int) -> np.ndarray:
    """Instances in the order in which they run, whole batches for every shard: some of the quickest run again."""
    order = np.argsort(limits, kind="stable")
    missing = -len(order) % (BATCH * shards)
    order = np.concatenate([np.resize(order, missing), order])
    return order.reshape(-1, shards, BATCH).swapaxes(0, 1).reshape(-1)


@lru_cache(maxsize=64)
def _compiled(shape: KernelShape, epsilon: float, devices: tuple[Device, ...], batches: int) -> Any:
    from nram.machine.kernels.common.outcomes import Batch, Raw, outcomes

    def one(controller: Controller, memories: Array, limits: Array) -> Array:
        nothing = jnp.zeros(memories.shape, jnp.float32)  # the loss is of no interest, nor what is wanted
        batch = Batch(memories, memories, nothing, limits, jnp.float32(jnp.inf), jnp.float32(epsilon))
        raw: Raw = outcomes(shape, controller, batch)
        return raw.predicted

    return mapped(one, list(devices), batches)
