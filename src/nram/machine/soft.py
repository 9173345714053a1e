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


class Episode(NamedTuple):
    """The results of an episode."""

    output: Array  # [M, M] memory averaged with the weights p_t; no gradient flows through it
    finish: Array  # [T] the probabilities p_t that the output is produced at step t
    observed: Any  # what `observe` returned, per step
    entropy: Array  # [T] mean entropy of the wires chosen at each step


def start_soft(controller: Controller, wiring: Wiring, memory: Array, dtype=jnp.float32) -> SoftState:
    """Registers hold 0 with certainty, the memory holds these integers."""
    size = memory.shape[0]
    registers = certain(jnp.zeros(wiring.registers, jnp.int32), size, dtype)
    return SoftState(controller.start(), registers, certain(memory, size, dtype))


def soft_step(
    controller: Controller, wiring: Wiring, options: Options, state: SoftState
) -> tuple[SoftState, Array, Array]:
    """One timestep: the new state, the halting scalar x_t and the mean entropy of the wires.

    `controller` is prepared (`controller.prepare(wiring)`).
    """
    flags = state.registers[:, 0]  # P(r_i = 0), all that the controller may see
    decision, controller_state = controller.decide(wiring, flags, state.controller)
    epsilon = jnp.asarray(options.epsilon, flags.dtype)
    weights, entropy = choose(decision.logits, epsilon)
    if options.renormalising:
        weights = renormalise(weights)
    clip = jnp.asarray(options.clip, flags.dtype)
    taken = None
    if options.straight_through:
        taken = certain(jnp.argmax(decision.logits, axis=-1), wiring.values, flags.dtype)
    registers, memory = run_circuit(wiring, options.renormalising, clip, weights, state.registers, state.memory, taken)
    return SoftState(controller_state, registers, memory), decision.halt, entropy


def run_soft(
    controller: Controller,
    wiring: Wiring,
    memory: Array,
    limit: Array | int,
    steps: int,
    options: Options = Options(),
    observe: Callable[[Array], Any] = lambda memory: (),
    dtype=jnp.float32,
) -> Episode:
    """Run `steps` timesteps on one memory of integers; the output is forced at step `limit`.

    `steps` is the length of the compiled loop, `limit` <= `steps` may differ from example to example.
    `observe` sees the memory after every step.
    """
    ready = controller.prepare(wiring)
    limit = jnp.asarray(limit)

    def body(carry, step):
        state, running, output = carry
        state, halt, entropy = soft_step(ready, wiring, options, state)
        # p_t = f_t * prod (1 - f_i); the last step takes the rest.
        willing = jax.nn.sigmoid(halt)
        if options.straight_through:
            willing = willing + jax.lax.stop_gradient((halt >= 0) - willing)
        stop = jnp.where(step + 1 >= limit, 1.0, willing)
        finish = running * stop
        output = output + jax.lax.stop_gradient(finish * state.memory)
        return (state, running * (1 - stop), output), (finish, observe(state.memory), entropy)

    size = memory.shape[0]
    carry = (
        start_soft(controller, wiring, memory, dtype),
        jnp.ones((), dtype),
        jnp.zeros((size, size), dtype),
    )
    with jax.default_matmul_precision("highest"):  # a GPU would otherwise use TF32 for float32 products
        (_, _, output), (finish, observed, entropy) = jax.lax.scan(body, carry, jnp.arange(steps))
    return Episode(output, finish, observed, entropy)
