"""What a controller decides about: how many wires there are, how long each is, and nothing beyond."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nram.extensions import select_modules
from nram.machine import Wiring, init_controller
from nram.machine.distributions import choose
from nram.modules import MODULE_NAMES

KINDS = ["mlp", "lstm", "automaton"]
HIDDEN, STATES = 8, 3  # of the random controllers
ARITIES = [1, 0, 0, 0, 1, 2, 2, 1, 2, 2, 2, 2, 2, 2]  # of the paper's modules


def _wiring(registers: int = 3, repeats: int = 1) -> Wiring:
    return Wiring(registers, select_modules(MODULE_NAMES, repeats))


@pytest.mark.parametrize("repeats", [1, 2])
@pytest.mark.parametrize("registers", [1, 4])
def test_an_argument_of_module_i_chooses_among_the_registers_and_the_modules_before(registers, repeats):
    wiring = _wiring(registers, repeats)
    arities = ARITIES * repeats
    expected = []
    for before, arity in enumerate(arities):
        expected += [registers + before] * arity
    expected += [registers + len(arities)] * registers
    assert wiring.lengths == tuple(expected)
    assert wiring.wires == sum(arities) + registers
    assert wiring.values == registers + len(arities)
    assert wiring.logits == sum(expected)


def test_the_layout_places_the_logits_wire_by_wire():
    wiring = Wiring(2, select_modules(["READ", "ONE", "WRITE"]))
    expected = [
        [0, 1, -1, -1, -1],  # READ's pointer: r1 r2
        [2, 3, 4, 5, -1],  # WRITE's pointer: r1 r2 READ ONE
        [6, 7, 8, 9, -1],  # WRITE's value
        [10, 11, 12, 13, 14],  # r1
        [15, 16, 17, 18, 19],  # r2
    ]
    np.testing.assert_array_equal(wiring.layout, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_every_wire_is_a_softmax_over_exactly_its_own_values(kind, naive, quick_jit, random_controllers):
    """And the raw output layer, cut into pieces of the wires' lengths, gives the same probabilities."""
    wiring = _wiring()
    controller = random_controllers(kind, wiring, 0)

    @quick_jit
    def decide(flags):
        raw, _ = naive.network(kind, controller, flags, controller.start())
        decision, _ = controller.prepare(wiring).decide(wiring, flags, controller.start())
        return raw, decision, choose(decision.logits, jnp.float32(1e-6))[0]

    raw, decision, weights = jax.tree.map(np.asarray, decide(jnp.array([0.3, 1.0, 0.8])))
    assert weights.shape == (wiring.wires, wiring.values)
    start = 0
    for wire, length in enumerate(wiring.lengths):
        exponents = np.exp(raw[start : start + length])
        np.testing.assert_allclose(weights[wire, :length], exponents / exponents.sum(), rtol=1e-5)
        assert (weights[wire, :length] > 0).all()
        assert (weights[wire, length:] == 0).all()  # exactly
        start += length
    np.testing.assert_allclose(decision.halt, raw[start], rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("registers", "repeats"), [(2, 1), (4, 2)])
def test_the_number_of_parameters_follows_from_the_circuit_alone(kind, registers, repeats, random_controllers):
    """Nothing of it depends on M or T: neither is known when a controller is made."""
    wiring = _wiring(registers, repeats)
    arities = ARITIES * repeats
    outputs = 1 + registers * (registers + len(arities))
    outputs += sum(arity * (registers + before) for before, arity in enumerate(arities))

    def layer(inputs, outputs):
        return (inputs + 1) * outputs

    expected = {
        "mlp": layer(registers, HIDDEN) + layer(HIDDEN, HIDDEN) + layer(HIDDEN, outputs),
        "lstm": layer(registers, HIDDEN) + layer(2 * HIDDEN, 4 * HIDDEN) + layer(HIDDEN, outputs),
        "automaton": layer(registers + STATES, HIDDEN) + layer(HIDDEN, HIDDEN) + layer(HIDDEN, outputs + STATES),
    }
    assert sum(leaf.size for leaf in jax.tree.leaves(random_controllers(kind, wiring, 0))) == expected[kind]


def test_fresh_weights_have_variance_one_over_fan_in_and_biases_are_zero(quick_jit):
    make = partial(init_controller, "lstm", _wiring(), hidden=64, states=1)
    fresh, sharper = quick_jit(lambda key: (make(key=key), make(key=key, output_scale=4.0)))(jax.random.key(1))
    for dense in (fresh.gates, fresh.output):
        np.testing.assert_allclose(dense.weight.std() * len(dense.weight) ** 0.5, 1, rtol=0.05)
    np.testing.assert_array_equal(fresh.output.bias, 0)
    np.testing.assert_array_equal(fresh.gates.bias.reshape(4, 64)[:, 0], [0, 1, 0, 0])  # remembers at first
    np.testing.assert_allclose(sharper.output.weight, 4 * fresh.output.weight, rtol=1e-6)
    np.testing.assert_array_equal(sharper.gates.weight, fresh.gates.weight)


def test_an_automaton_starts_in_state_0_and_goes_on_in_a_distribution(random_controllers):
    wiring = _wiring()
    controller = random_controllers("automaton", wiring, 0)
    (start,) = controller.start()
    np.testing.assert_array_equal(start, [1, 0, 0])
    _, (after,) = controller.prepare(wiring).decide(wiring, jnp.ones(3), (start,))
    assert after.shape == (STATES,)
    np.testing.assert_allclose(jnp.sum(after), 1, rtol=1e-6)
    assert (after > 0).all()


def test_hardening_takes_the_most_probable_state_and_of_equals_the_first(random_controllers):
    controller = random_controllers("automaton", _wiring(), 0)
    for state, expected in (([0.2, 0.5, 0.3], [0, 1, 0]), ([0.2, 0.4, 0.4], [0, 1, 0]), ([0.4, 0.2, 0.4], [1, 0, 0])):
        np.testing.assert_array_equal(controller.harden((jnp.array(state),))[0], expected)


@pytest.mark.parametrize(("kind", "depends"), [("mlp", False), ("lstm", True), ("automaton", True)])
def test_what_a_controller_remembers_changes_its_decisions(kind, depends, random_controllers):
    wiring = _wiring()
    controller = random_controllers(kind, wiring, 0)
    ready = controller.prepare(wiring)
    flags = jnp.array([1.0, 0.0, 1.0])
    first, state = ready.decide(wiring, flags, controller.start())
    second, _ = ready.decide(wiring, flags, state)
    assert bool(jnp.any(jnp.abs(first.logits - second.logits) > 1e-3)) == depends
