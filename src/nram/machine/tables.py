"""The discretised machine as a table of small integers: what the controller decides in every situation.

An MLP sees R flags, so it has 2^R situations. An automaton is also in one of S states, so it has S 2^R. An LSTM carries
a real vector from step to step and has no table.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nram.machine.controllers import Controller, State
from nram.machine.wiring import Wiring

SMALL = jnp.int16  # the numbers of a table


def decisions(ready: Controller, wiring: Wiring, flags: Array, state: State) -> tuple[Array, Array, Array]:
    """The choices for each row of flags in one state: the sources of all wires, whether it halts, the next state.

    `ready` is a prepared MLP or automaton. Of equal wires the lowest is chosen, as in `hard_step`.
    """

    def one(row: Array) -> tuple[Array, Array, Array]:
        decision, after = ready.decide(wiring, row, state)
        following = jnp.argmax(after[0]) if after else jnp.zeros((), int)
        return _leading(decision.logits), decision.halt >= 0, following

    with jax.default_matmul_precision("highest"):
        return jax.vmap(one)(flags)


def _leading(logits: Array) -> Array:
    """The argmax of the last axis. On a CPU this compiles to code that is twice as fast as that of `jnp.argmax`."""
    best, chosen = logits[..., 0], jnp.zeros(logits.shape[:-1], jnp.int32)
    for value in range(1, logits.shape[-1]):
        larger = logits[..., value] > best
        best, chosen = jnp.where(larger, logits[..., value], best), jnp.where(larger, value, chosen)
    return chosen


def discrete_table(controller: Controller, wiring: Wiring) -> Array:
    """int16 [S 2^R, wires + 2]: in each row the sources of all wires, whether it halts, and the next state.

    Row s 2^R + sum_i 2^i [r_i = 0] is for state s and these registers.
    """
    ready = controller.prepare(wiring)
    flags = jnp.asarray(np.arange(1 << wiring.registers)[:, None] >> np.arange(wiring.registers) & 1, jnp.float32)
    start = controller.start()
    if start:
        found = jax.vmap(lambda state: decisions(ready, wiring, flags, (state,)))(jnp.eye(len(start[0])))
        chosen, *rest = (part.reshape(-1, *part.shape[2:]) for part in found)
    else:
        chosen, *rest = decisions(ready, wiring, flags, ())
    return jnp.concatenate([chosen.astype(SMALL), *(part.astype(SMALL)[:, None] for part in rest)], axis=1)
