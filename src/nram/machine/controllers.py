"""The controllers: networks that see the register flags and output a circuit and a halting scalar.

Three kinds, all with ReLU and equally wide layers: the paper's MLP with two hidden layers, the
paper's LSTM with a hidden layer before it, and the automaton, an MLP that also carries a
distribution over S states from step to step. None of them has a parameter that depends on M or T.
"""

from typing import NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nram.kinds import ControllerKind
from nram.machine.wiring import UNREACHABLE, Wiring

State = tuple[Array, ...]


class Decision(NamedTuple):
    """What a controller outputs at one step."""

    logits: Array  # [wires, values], UNREACHABLE where there is no such choice
    halt: Array  # scalar x; the willingness to stop is sigmoid(x)


class Controller(Protocol):
    """What the machine needs of a controller. `prepare` returns the same network with its last layer laid out for
    computing, once before the loop over time. The machine calls `decide` on the result."""

    def prepare(self, wiring: Wiring) -> "Controller": ...

    def start(self) -> State: ...

    def decide(self, wiring: Wiring, flags: Array, state: State) -> tuple[Decision, State]: ...

    def harden(self, state: State) -> State: ...


class Dense(eqx.Module):
    """x @ weight + bias."""

    weight: Array
    bias: Array

    def __call__(self, x: Array) -> Array:
        return x @ self.weight + self.bias


def _dense(key: Array, fan_in: int, fan_out: int, scale: float | Array = 1.0) -> Dense:
    weight = scale * jax.random.normal(key, (fan_in, fan_out)) / np.sqrt(fan_in)
    return Dense(weight, jnp.zeros(fan_out))


class MLP(eqx.Module):
    """Two hidden layers; no state."""

    hidden: tuple[Dense, Dense]
    output: Dense

    def prepare(self, wiring: Wiring) -> "MLP":
        return eqx.tree_at(lambda network: network.output, self, _laid_out(wiring, self.output))

    def start(self) -> State:
        return ()

    def decide(self, wiring: Wiring, flags: Array, state: State) -> tuple[Decision, State]:
        decision, _ = _split(wiring, self.output(_two_layers(self.hidden, flags)))
        return decision, state

    def harden(self, state: State) -> State:
        return state


class Automaton(eqx.Module):
    """Two hidden layers over the flags and a distribution over S states; it starts in state 0."""

    hidden: tuple[Dense, Dense]
    output: Dense
    states: int = eqx.field(static=True)

    def prepare(self, wiring: Wiring) -> "Automaton":
        return eqx.tree_at(lambda network: network.output, self, _laid_out(wiring, self.output))

    def start(self) -> State:
        return (jax.nn.one_hot(0, self.states, dtype=self.output.bias.dtype),)

    def decide(self, wiring: Wiring, flags: Array, state: State) -> tuple[Decision, State]:
        x = _two_layers(self.hidden, jnp.concatenate([flags, state[0]]))
        decision, next_state = _split(wiring, self.output(x))
        return decision, (jax.nn.softmax(next_state),)

    def harden(self, state: State) -> State:
        return (jax.nn.one_hot(jnp.argmax(state[0]), self.states, dtype=state[0].dtype),)


class LSTM(eqx.Module):
    """A hidden layer, then LSTM cells, then the output."""

    hidden: Dense
    gates: Dense  # input, forget, cell and output gate from [hidden layer, previous output]
    output: Dense

    def prepare(self, wiring: Wiring) -> "LSTM":
        return eqx.tree_at(lambda network: network.output, self, _laid_out(wiring, self.output))

    def start(self) -> State:
        zeros = jnp.zeros(self.output.weight.shape[0], self.output.bias.dtype)
        return zeros, zeros

    def decide(self, wiring: Wiring, flags: Array, state: State) -> tuple[Decision, State]:
        previous, cell = state
        x = jax.nn.relu(self.hidden(flags))
        admit, keep, fresh, emit = jnp.split(self.gates(jnp.concatenate([x, previous])), 4)
        cell = jax.nn.sigmoid(keep) * cell + jax.nn.sigmoid(admit) * jnp.tanh(fresh)
        previous = jax.nn.sigmoid(emit) * jnp.tanh(cell)
        decision, _ = _split(wiring, self.output(previous))
        return decision, (previous, cell)

    def harden(self, state: State) -> State:
        return state


def init_controller(
    kind: ControllerKind,
    wiring: Wiring,
    *,
    hidden: int,
    states: int,
    output_scale: float | Array = 1.0,
    key: Array,
) -> Controller:
    """A fresh controller. Weights are normal with variance 1/fan-in, biases 0; `output_scale` makes
    the first circuits sharper or softer."""
    first, second, last = jax.random.split(key, 3)
    outputs = wiring.logits + 1
    if kind == "mlp":
        layers = (_dense(first, wiring.registers, hidden), _dense(second, hidden, hidden))
        return MLP(layers, _dense(last, hidden, outputs, output_scale))
    if kind == "automaton":
        layers = (_dense(first, wiring.registers + states, hidden), _dense(second, hidden, hidden))
        return Automaton(layers, _dense(last, hidden, outputs + states, output_scale), states)
    gates = _dense(second, 2 * hidden, 4 * hidden)
    # A forget gate that starts open lets the cell remember from the first update on.
    remembering = jnp.repeat(jnp.array([0.0, 1.0, 0.0, 0.0]), hidden)
    gates = eqx.tree_at(lambda layer: layer.bias, gates, gates.bias + remembering)
    return LSTM(_dense(first, wiring.registers, hidden), gates, _dense(last, hidden, outputs, output_scale))


def _two_layers(layers: tuple[Dense, Dense], x: Array) -> Array:
    for layer in layers:
        x = jax.nn.relu(layer(x))
    return x


def _laid_out(wiring: Wiring, output: Dense) -> Dense:
    """The output layer with a column for every entry of the [wires, values] matrix, then the rest.

    Done to the weights, once an episode, instead of to every output: a gather inside the loop over
    time costs more than the larger product.
    """
    rest = np.arange(wiring.logits, output.bias.shape[0])
    sources = np.concatenate([wiring.layout.ravel(), rest])
    absent = jnp.asarray(sources < 0)
    weight = jnp.where(absent, 0.0, output.weight[:, sources])
    return Dense(weight, jnp.where(absent, UNREACHABLE, output.bias[sources]))


def _split(wiring: Wiring, outputs: Array) -> tuple[Decision, Array]:
    circuit = wiring.wires * wiring.values
    logits = outputs[:circuit].reshape(wiring.wires, wiring.values)
    return Decision(logits, outputs[circuit]), outputs[circuit + 1 :]
