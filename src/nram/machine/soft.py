"""The differentiable machine: one timestep and one episode, as pure functions of one example."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from nram.machine.circuit import run_circuit
from nram.machine.controllers import Controller, State
from nram.machine.distributions import certain, choose, renormalise
from nram.machine.wiring import Wiring


class SoftState(NamedTuple):
    """What the machine carries from step to step."""

    controller: State
    registers: Array  # [R, M] distributions
    memory: Array  # [M, M], row i the distribution of cell i


class Options(NamedTuple):
    """Settings of the soft machine; see training/config.py for what they mean."""

    clip: Array | float = jnp.inf  # C1, on gradients of activations; infinite switches it off
    epsilon: Array | float = 1e-6  # inside every logarithm
    renormalising: bool = True
    straight_through: bool = False  # the forward pass takes the most probable value of every wire
    hard: bool = False  # so does the backward pass, and halting and automaton states are certain too
    complete: bool = False  # module outputs are kept; gradients flow through them and through the averaged output


class Step(NamedTuple):
    """The results of one timestep."""

    state: SoftState  # after it
    halt: Array  # x_t, the halting scalar
    willing: Array  # f_t, the willingness to stop after it
    entropy: Array  # mean entropy of the wires
    wires: Array  # [wires, values] the weights by which each wire mixed registers and module outputs
    outputs: Array | None  # [modules, M] of the modules, if `Options.complete`


class Episode(NamedTuple):
    """The results of an episode."""

    output: Array  # [M, M] memory averaged with the weights p_t; no gradient flows through it unless `complete`
    finish: Array  # [T] the probabilities p_t that the output is produced at step t
    observed: Any  # what `observe` returned, per step
    entropy: Array  # [T] mean entropy of the wires chosen at each step
    end: SoftState  # after the last step


def start_soft(controller: Controller, wiring: Wiring, memory: Array, dtype=jnp.float32) -> SoftState:
    """Registers hold 0 with certainty, the memory holds these integers [M] or these distributions [M, M]."""
    size = memory.shape[0]
    registers = certain(jnp.zeros(wiring.registers, jnp.int32), size, dtype)
    tape = certain(memory, size, dtype) if memory.ndim == 1 else memory.astype(dtype)
    return SoftState(controller.start(), registers, tape)


def soft_step(controller: Controller, wiring: Wiring, options: Options, state: SoftState) -> Step:
    """One timestep. `controller` is prepared (`controller.prepare(wiring)`)."""
    flags = state.registers[:, 0]  # P(r_i = 0), all that the controller may see
    decision, controller_state = controller.decide(wiring, flags, state.controller)
    epsilon = jnp.asarray(options.epsilon, flags.dtype)
    weights, entropy = choose(decision.logits, epsilon)
    if options.renormalising:
        weights = renormalise(weights)
    clip = jnp.asarray(options.clip, flags.dtype)
    taken: Array | None = None
    willing = jax.nn.sigmoid(decision.halt)
    if options.hard:
        weights = taken = certain(jnp.argmax(decision.logits, axis=-1), wiring.values, flags.dtype)
        willing = (decision.halt >= 0).astype(flags.dtype)
        controller_state = controller.harden(controller_state)
    elif options.straight_through:
        taken = certain(jnp.argmax(decision.logits, axis=-1), wiring.values, flags.dtype)
        willing = willing + jax.lax.stop_gradient((decision.halt >= 0) - willing)
    registers, memory, outputs = run_circuit(
        wiring, options.renormalising, clip, weights, state.registers, state.memory, taken, options.complete
    )
    wires = weights if taken is None else taken
    return Step(SoftState(controller_state, registers, memory), decision.halt, willing, entropy, wires, outputs)


def run_soft(
    controller: Controller,
    wiring: Wiring,
    memory: Array,
    limit: Array | int,
    steps: int,
    options: Options = Options(),
    observe: Callable[[Step], Any] = lambda step: (),
    dtype=jnp.float32,
) -> Episode:
    """Run `steps` timesteps on one memory, of integers or distributions; the output is forced at step `limit`.

    `steps` is the length of the compiled loop, `limit` <= `steps` may differ from example to example.
    `observe` sees every step.
    """
    ready = controller.prepare(wiring)
    limit = jnp.asarray(limit)

    def body(carry, number):
        state, running, output = carry
        step = soft_step(ready, wiring, options, state)
        # p_t = f_t * prod (1 - f_i); the last step takes the rest.
        stop = jnp.where(number + 1 >= limit, 1.0, step.willing)
        finish = running * stop
        share = finish * step.state.memory
        # Training reads the averaged output and derives nothing from it: its gradient would only cost time.
        output = output + (share if options.complete else jax.lax.stop_gradient(share))
        return (step.state, running * (1 - stop), output), (finish, observe(step), step.entropy)

    size = memory.shape[0]
    carry = (
        start_soft(controller, wiring, memory, dtype),
        jnp.ones((), dtype),
        jnp.zeros((size, size), dtype),
    )
    with jax.default_matmul_precision("highest"):  # a GPU would otherwise use TF32 for float32 products
        (end, _, output), (finish, observed, entropy) = jax.lax.scan(body, carry, jnp.arange(steps))
    return Episode(output, finish, observed, entropy, end)
