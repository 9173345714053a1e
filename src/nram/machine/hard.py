"""The discretised machine: the same weights, with argmax wiring and integers everywhere.

Flags are `r_i == 0`, every wire takes its most probable value (ties: the lowest index), an automaton
is in its most probable state, and the machine halts after the first step with f_t >= 0.5. The cost of
a step does not depend on M, except that a vectorised run copies the memory.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from nram.machine.controllers import Controller, State
from nram.machine.wiring import Wiring
from nram.module_tables import on_arrays


class HardState(NamedTuple):
    """What the machine carries from step to step."""

    controller: State
    registers: Array  # int32 [R]
    memory: Array  # int32 [M]


class HardResult(NamedTuple):
    """How a run ended."""

    memory: Array  # int32 [M]
    registers: Array  # int32 [R]
    steps: Array  # that were executed
    halted: Array  # whether it stopped by itself


def hard_step(
    controller: Controller, wiring: Wiring, state: HardState, size: Array | None = None
) -> tuple[HardState, Array]:
    """One timestep: the new state and whether the machine halts after it. `controller` is prepared.

    `size` is M where the memory is followed by unused cells.
    """
    modulus: Any = state.memory.shape[0] if size is None else size
    flags = (state.registers == 0).astype(jnp.float32)
    decision, controller_state = controller.decide(wiring, flags, state.controller)
    chosen = jnp.argmax(decision.logits, axis=-1)
    memory = state.memory
    values = list(state.registers)
    wire = 0
    for module in wiring.modules:
        arguments = []
        for _ in range(module.arity):
            arguments.append(jnp.stack(values)[chosen[wire]])
            wire += 1
        output = jnp.zeros((), jnp.int32)
        if module.memory == "writes":
            pointer, value = arguments
            memory = memory.at[pointer].set(value)
        elif module.memory == "reads":
            output = module.integer(memory, *arguments)
        else:
            output = jnp.asarray(on_arrays(module, jnp, modulus, *arguments), jnp.int32)
        values.append(output)
    registers = jnp.stack(values)[chosen[wire:]]
    new_state = HardState(controller.harden(controller_state), registers, memory)
    return new_state, decision.halt >= 0


def run_hard(
    controller: Controller, wiring: Wiring, memory: Array, limit: Array | int, size: Array | None = None
) -> HardResult:
    """Run on one memory of integers until the machine halts, at most `limit` steps.

    With `size`, memories of several M run together: only the first `size` cells are used.
    """
    ready = controller.prepare(wiring)
    limit = jnp.asarray(limit, jnp.int32)
    registers = jnp.zeros(wiring.registers, jnp.int32)
    start = HardState(controller.start(), registers, memory.astype(jnp.int32))

    def going(carry):
        _, step, halted = carry
        return ~halted & (step < limit)

    def advance(carry):
        state, step, _ = carry
        state, halts = hard_step(ready, wiring, state, size)
        return state, step + 1, halts

    with jax.default_matmul_precision("highest"):
        state, steps, halted = jax.lax.while_loop(going, advance, (start, jnp.int32(0), jnp.bool_(False)))
    return HardResult(state.memory, state.registers, steps, halted)
