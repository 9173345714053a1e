"""The continuous machine under several step limits at once, in one pass.

What a limit changes is where the output is forced: until then two runs of the same machine are the same run. So the
machine runs up to the longest limit, and its output is taken down at each. Two further savings change no answer. A
batch ends early once no probability that is still to come could change the most probable value of an output cell: a
machine that halts is done with then, whatever the limit. And instances of like complexity run together.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nram.machine import Controller, Options, Wiring, soft_step
from nram.machine.soft import SoftState, start_soft
from nram.runtime import Device
from nram.training.config import MachineConfig, TrainConfig
from nram.training.mapping import mapped
from nram.training.member import wiring_of

MOST_LIMITS = 3  # fewer are filled up, so that one compiled program serves all calls of a size
CPU_BATCH = 16  # its memories stay in a core's cache
GPU_BATCH = 1024
GPU_BATCH_BYTES = 2**29  # of memory tapes at once
SURE = 1.01, 1e-5  # a cell is settled if its lead exceeds what is still to come, rounding allowed for


class _Carry(NamedTuple):
    """A batch of episodes under way."""

    step: Array
    state: SoftState
    running: Array  # [B] the probability of not having stopped yet
    output: Array  # [B, M, M] the memory averaged over where it stopped so far
    predicted: Array  # int32 [B, L, M] what came out under each limit
    settled: Array  # bool [B] nothing to come can change an output cell


class SoftRunner:
    """One trained machine on this computer's devices."""

    def __init__(self, config: TrainConfig, controller: Controller, devices: list[Device]):
        self.config, self.controller, self.devices = config, controller, devices

    @property
    def shards(self) -> int:
        """Devices at work: every core of a CPU, or one GPU."""
        return len(self.devices) if self.devices[0].platform == "cpu" else 1

    def at_once(self, size: int) -> int:
        """How many instances one call takes."""
        if self.devices[0].platform == "cpu":
            return CPU_BATCH * self.shards
        return max(1, min(GPU_BATCH, GPU_BATCH_BYTES // (4 * size * size)))

    def predict(self, inputs: np.ndarray, cells: np.ndarray, limits: np.ndarray) -> np.ndarray:
        """The most probable memories [B, L, M] under limits [B, L], to be looked at in the given cells only.

        B is at most `at_once`; fewer are filled up, like the limits.
        """
        (count, size), columns = inputs.shape, limits.shape[1]
        limits = np.pad(limits, [(0, 0), (0, MOST_LIMITS - columns)], mode="edge")
        shards, full = self.shards, self.at_once(size)
        run = _compiled(self.config.machine, self.config.epsilon, tuple(self.devices), shards)
        parts = [np.pad(array, [(0, full - count), (0, 0)], mode="edge") for array in (inputs, cells, limits)]
        controllers = jax.tree.map(lambda leaf: np.broadcast_to(leaf, (shards, *np.shape(leaf))), self.controller)
        predicted = run(controllers, *(part.reshape(shards, full // shards, -1) for part in parts))
        return np.asarray(predicted).reshape(full, MOST_LIMITS, size)[:count, :columns]


@lru_cache(maxsize=32)
def _compiled(machine: MachineConfig, epsilon: float, devices: tuple[Device, ...], shards: int):
    """All that the code depends on: networks of one structure share it, whatever they were trained for."""
    wiring, options = wiring_of(machine), Options(epsilon=epsilon, renormalising=machine.renormalise)
    return mapped(partial(_run_batch, wiring, options), list(devices), shards)


def _run_batch(
    wiring: Wiring, options: Options, controller: Controller, inputs: Array, cells: Array, limits: Array
) -> Array:
    """The predictions of one batch, as `SoftRunner.predict` gives them."""
    ready = controller.prepare(wiring)
    count, size = inputs.shape
    last = jnp.max(limits, axis=1)
    advance = jax.vmap(lambda state: soft_step(ready, wiring, options, state))

    def note(carry: _Carry, memory: Array) -> Array:
        """The predictions, with those whose limit is this step."""
        forced = jnp.argmax(carry.output + carry.running[:, None, None] * memory, axis=-1).astype(jnp.int32)
        due = (limits == carry.step) & ~carry.settled[:, None]
        return jnp.where(due[:, :, None], forced[:, None, :], carry.predicted)

    def settle(carry: _Carry) -> tuple[Array, Array]:
        """Examples that become settled hand in the same under every limit that is left."""
        best = jnp.argmax(carry.output, axis=-1).astype(jnp.int32)
        highest = jnp.max(carry.output, axis=-1)
        others = jnp.where(jnp.arange(size)[None, None, :] == best[:, :, None], -1.0, carry.output)
        lead = highest - jnp.max(others, axis=-1)
        sure = lead > SURE[0] * carry.running[:, None] + SURE[1]
        settled = ~carry.settled & jnp.all(sure | ~cells, axis=-1)
        left = settled[:, None] & (limits > carry.step)
        return carry.settled | settled, jnp.where(left[:, :, None], best[:, None, :], carry.predicted)

    def body(carry: _Carry) -> _Carry:
        state, halt, _ = advance(carry.state)
        carry = carry._replace(step=carry.step + 1, state=state)
        due = jnp.any(limits == carry.step)
        predicted = jax.lax.cond(due, lambda: note(carry, state.memory), lambda: carry.predicted)
        stop = jax.nn.sigmoid(halt)
        finish = (carry.running * stop)[:, None, None]
        carry = carry._replace(
            running=carry.running * (1 - stop), output=carry.output + finish * state.memory, predicted=predicted
        )
        # A lead is at most the probability of having stopped, so before half of it there is nothing to look for.
        hopeful = jnp.any((carry.running < 0.5) & ~carry.settled)
        settled, predicted = jax.lax.cond(hopeful, lambda: settle(carry), lambda: (carry.settled, carry.predicted))
        return carry._replace(settled=settled, predicted=predicted)

    def going(carry: _Carry) -> Array:
        return jnp.any(~carry.settled & (carry.step < last))

    with jax.default_matmul_precision("highest"):  # a GPU would take TF32 for float32 products
        start = _Carry(
            step=jnp.int32(0),
            state=jax.vmap(lambda memory: start_soft(controller, wiring, memory))(inputs),
            running=jnp.ones(count),
            output=jnp.zeros((count, size, size)),
            predicted=jnp.zeros((count, limits.shape[1], size), jnp.int32),
            settled=jnp.zeros(count, bool),
        )
        return jax.lax.while_loop(going, body, start).predicted
