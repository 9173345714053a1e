"""A naive twin of the soft machine to which the real one is held.

The twin is written from the paper: one softmax per wire, wires of their true lengths, a list of values, and
derivatives left to JAX. It shares the table of modules (held to equation 2 in test_modules.py) and nothing
else.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import pytest
from support.random_controllers import random_controllers

Array = Any


class Crops(NamedTuple):
    """C1, for each kind of place where the paper's activation clipping acts; infinite switches it off."""

    registers: Array
    memory: Array  # after a step
    inputs: Array  # of modules
    outputs: Array  # of modules


class NaiveEpisode(NamedTuple):
    finish: Array  # [T] p_t
    memories: Array  # [T, M, M]
    entropy: Array  # [T] mean over the wires


@jax.custom_vjp
def _cropped(x: Array, bound: Array) -> Array:
    """The identity, whose gradient is cropped."""
    return x


_cropped.defvjp(
    lambda x, bound: (x, bound),
    lambda bound, gradient: (jnp.clip(gradient, -bound, bound), jnp.zeros_like(bound)),
)


def _rescaled(x: Array) -> Array:
    """Divided by its sum, the gradient passed on as it is."""
    return x + jax.lax.stop_gradient(x / jnp.sum(x, -1, keepdims=True) - x)


def naive_circuit(
    modules, choices: list[Array], registers: Array, memory: Array, crops: Crops | None, renormalising: bool
) -> tuple[Array, Array]:
    """Equations 1 and 3. `choices` are the softmaxes of all wires: arguments in order, then registers."""
    size = memory.shape[-1]

    def crop(x: Array, place: str) -> Array:
        return x if crops is None else _cropped(x, getattr(crops, place))

    def tidy(x: Array) -> Array:
        return _rescaled(x) if renormalising else x

    choices = list(choices)
    values = list(registers)

    def mixed() -> Array:
        weights = choices.pop(0)
        assert weights.shape == (len(values),)
        return weights @ jnp.stack(values)

    for module in modules:
        arguments = [crop(mixed(), "inputs") for _ in range(module.arity)]
        if module.memory == "writes":
            memory = module.fuzzy(jnp, memory, *arguments)
            output = jnp.zeros(size).at[0].set(1)
        elif module.memory == "reads":
            output = tidy(module.fuzzy(jnp, memory, *arguments))
        else:
            output = tidy(module.fuzzy(jnp, size, *arguments))
        values.append(crop(output, "outputs"))
    new_registers = jnp.stack([crop(tidy(mixed()), "registers") for _ in range(len(registers))])
    assert not choices
    return new_registers, crop(memory, "memory")


def naive_network(kind: str, controller, flags: Array, state: tuple) -> tuple[Array, tuple]:
    """The controller's output vector and next state (for the automaton still without its softmax)."""

    def layer(dense, x: Array) -> Array:
        return dense.weight.T @ x + dense.bias

    def relu(x: Array) -> Array:
        return jnp.where(x > 0, x, 0)

    if kind == "lstm":
        previous, cell = state
        x = relu(layer(controller.hidden, flags))
        gates = layer(controller.gates, jnp.concatenate([x, previous])).reshape(4, -1)
        cell = jax.nn.sigmoid(gates[1]) * cell + jax.nn.sigmoid(gates[0]) * jnp.tanh(gates[2])
        previous = jax.nn.sigmoid(gates[3]) * jnp.tanh(cell)
        return layer(controller.output, previous), (previous, cell)
    x = jnp.concatenate([flags, *state])
    for dense in controller.hidden:
        x = relu(layer(dense, x))
    return layer(controller.output, x), state


def naive_episode(
    kind: str,
    controller,
    modules,
    registers: int,
    memory: Array,
    limit: Array,
    steps: int,
    crops: Crops | None = None,
    renormalising: bool = False,
    epsilon: float = 1e-6,
) -> NaiveEpisode:
    """`steps` timesteps on one memory of integers, with the output forced at step `limit`."""
    size = memory.shape[0]
    lengths = [registers + i for i, module in enumerate(modules) for _ in range(module.arity)]
    lengths += [registers + len(modules)] * registers

    def step(carry, _):
        state, held, memory = carry
        outputs, state = naive_network(kind, controller, held[:, 0], state)
        choices, start = [], 0
        for length in lengths:
            choices.append(jax.nn.softmax(outputs[start : start + length]))
            start += length
        halt, rest = outputs[start], outputs[start + 1 :]
        if kind == "automaton":
            state = (jax.nn.softmax(rest),)
        entropies = [-jnp.sum(choice * jnp.log(jnp.maximum(choice, epsilon))) for choice in choices]
        if renormalising:
            choices = [_rescaled(choice) for choice in choices]
        held, memory = naive_circuit(modules, choices, held, memory, crops, renormalising)
        return (state, held, memory), (halt, memory, jnp.mean(jnp.stack(entropies)))

    if kind == "lstm":
        state = (jnp.zeros_like(controller.hidden.bias),) * 2
    elif kind == "automaton":
        state = (jnp.eye(controller.states)[0],)
    else:
        state = ()
    held = jnp.stack([jnp.eye(size)[0]] * registers)
    _, (halts, memories, entropy) = jax.lax.scan(step, (state, held, jnp.eye(size)[memory]), length=steps)

    # p_t = f_t prod (1 - f_i) before the limit T, and p_T = 1 - sum of those before.
    willing = jax.nn.sigmoid(halts)
    number = jnp.arange(1, steps + 1)
    undecided = jnp.concatenate([jnp.ones(1), jnp.cumprod(1 - willing)[:-1]])
    early = jnp.where(number < limit, willing * undecided, 0)
    return NaiveEpisode(jnp.where(number == limit, 1 - jnp.sum(early), early), memories, entropy)


class Naive(NamedTuple):
    Crops: type[Crops] = Crops
    network: Any = staticmethod(naive_network)
    circuit: Any = staticmethod(naive_circuit)
    episode: Any = staticmethod(naive_episode)


@pytest.fixture(scope="session")
def naive() -> Naive:
    return Naive()


@pytest.fixture(scope="session", name="random_controllers")
def _random_controllers():
    return random_controllers
