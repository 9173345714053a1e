"""Everything that the soft machine does on one memory, step by step, with gradients."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from nram.machine.controllers import Controller, State
from nram.machine.soft import Options, SoftState, Step, run_soft, start_soft
from nram.machine.wiring import Wiring


class Recording(eqx.Module):
    """Everything that the soft machine did in T steps on M cells with R registers.

    Registers, memory and controller state have T + 1 entries: entry t is the start of step t + 1, entry T is the end.
    The wires and values of a machine have names (`SoftMachine.wire_names`, `value_names`). A batch adds an axis in
    front of every array. Gradients flow through all of them.
    """

    output: Array
    """[M, M] the memory averaged with p_t: row i is the distribution of cell i."""
    finish: Array
    """[T] p_t, the probability that the machine stops after step t. The step limit takes what is left."""
    willing: Array
    """[T] f_t, the willingness to stop after step t."""
    registers: Array
    """[T + 1, R, M] the distribution of every register."""
    final_memory: Array
    """[M, M] the memory after step T, whenever the machine stopped."""
    memory: Array | None
    """[T + 1, M, M] the memory; None unless it was asked for (`keep_memory`)."""
    wires: Array
    """[T, wires, values] what every wire mixes: the arguments of all modules in order, then the new registers."""
    module_outputs: Array
    """[T, modules, M] the distribution that every module gives."""
    controller_state: State
    """What the controller carries: [T + 1, S] of an automaton, two [T + 1, hidden] of an LSTM, nothing of an MLP."""
    entropy: Array
    """[T] mean entropy of the wires."""

    @property
    def argument_wires(self) -> Array:
        """[T, arguments, values] which registers and module outputs feed each argument of each module."""
        return self.wires[..., : -self.registers.shape[-2], :]

    @property
    def register_wires(self) -> Array:
        """[T, R, values] which registers and module outputs become the new registers."""
        return self.wires[..., -self.registers.shape[-2] :, :]


def record_soft(
    controller: Controller,
    wiring: Wiring,
    memory: Array,
    limit: Array | int,
    steps: int,
    options: Options = Options(),
    dtype=jnp.float32,
) -> Recording:
    """Run the soft machine as `run_soft` does, and keep everything."""

    def observe(step: Step) -> tuple[SoftState, tuple[Array | None, ...]]:
        return step.state, (step.willing, step.wires, step.outputs)

    options = options._replace(complete=True)
    episode = run_soft(controller, wiring, memory, limit, steps, options, observe, dtype)
    later, (willing, wires, outputs) = episode.observed
    start = start_soft(controller, wiring, memory, dtype)
    kept = jax.tree.map(lambda first, others: jnp.concatenate([first[None], others]), start, later)
    return Recording(
        output=episode.output,
        finish=episode.finish,
        willing=willing,
        registers=kept.registers,
        final_memory=episode.end.memory,
        memory=kept.memory,
        wires=wires,
        module_outputs=outputs,
        controller_state=kept.controller,
        entropy=episode.entropy,
    )
