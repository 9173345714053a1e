"""One fuzzy circuit and its handwritten backward pass, beside a naive circuit differentiated by JAX."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nram.extensions import select_modules
from nram.machine.circuit import run_circuit
from nram.machine.wiring import Wiring
from nram.modules import MODULE_NAMES

CASES = 20
PAPER = Wiring(3, select_modules(MODULE_NAMES))
# An order in which memory is written before it is read, constants stand last and modules repeat.
MIXED = Wiring(2, select_modules(["WRITE", "MIN", "READ", "ADD", "WRITE", "SUB", "READ", "ONE"]))
WIRINGS = {"paper": (PAPER, 5), "mixed": (MIXED, 4)}
places = pytest.mark.parametrize("place", ["registers", "memory", "inputs", "outputs"])


def _inputs(wiring: Wiring, size: int, slack: float):
    """Random wire weights, registers, memories and gradients of what comes out; sums of the registers'
    probabilities are 1 up to `slack`."""
    rng = np.random.default_rng(7)
    weights = np.zeros((CASES, wiring.wires, wiring.values))
    for wire, length in enumerate(wiring.lengths):
        weights[:, wire, :length] = rng.dirichlet(np.full(length, 0.5), CASES)
    registers = rng.dirichlet(np.ones(size), (CASES, wiring.registers))
    registers *= 1 + slack * rng.uniform(-1, 1, registers.shape[:2])[..., None]
    memory = rng.dirichlet(np.ones(size), (CASES, size))
    gradients = rng.normal(size=registers.shape), rng.normal(size=memory.shape)
    return (weights, registers, memory), gradients


@cache
def _real(jit, wiring, renormalising):
    def run(clip, inputs, gradients):
        outputs, pull = jax.vjp(lambda *x: run_circuit(wiring, renormalising, clip, *x)[:2], *inputs)
        return outputs, pull(gradients)

    return jit(jax.vmap(run, in_axes=(None, 0, 0)))


@cache
def _naive(jit, naive, wiring, renormalising):
    def run(crops, inputs, gradients):
        def circuit(weights, registers, memory):
            choices = [weights[wire, :length] for wire, length in enumerate(wiring.lengths)]
            return naive.circuit(wiring.modules, choices, registers, memory, crops, renormalising)

        outputs, pull = jax.vjp(circuit, *inputs)
        return outputs, pull(gradients)

    return jit(jax.vmap(run, in_axes=(None, 0, 0)))


def _reachable(wiring: Wiring) -> np.ndarray:
    return np.arange(wiring.values)[None, :] < np.array(wiring.lengths)[:, None]


def _assert_equal(wiring, real, expected):
    (registers, memory), (weight_gradient, register_gradient, memory_gradient) = real
    np.testing.assert_allclose(registers, expected[0][0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(memory, expected[0][1], rtol=0, atol=1e-12)
    # What stands at places that do not exist is nobody's concern: the softmax gives them weight 0.
    weight_gradient = np.where(_reachable(wiring), weight_gradient, 0)
    np.testing.assert_allclose(weight_gradient, expected[1][0], rtol=0, atol=1e-10)
    np.testing.assert_allclose(register_gradient, expected[1][1], rtol=0, atol=1e-10)
    np.testing.assert_allclose(memory_gradient, expected[1][2], rtol=0, atol=1e-10)


@pytest.mark.parametrize(("name", "renormalising"), [("paper", True), ("mixed", True), ("mixed", False)])
def test_circuit_and_its_gradients_equal_the_naive_ones_at_every_clip(name, renormalising, naive, quick_jit, float64):
    wiring, size = WIRINGS[name]
    inputs, gradients = _inputs(wiring, size, slack=0.2 if renormalising else 0.0)
    real, expected = _real(quick_jit, wiring, renormalising), _naive(quick_jit, naive, wiring, renormalising)
    unclipped = real(jnp.inf, inputs, gradients)
    for clip in (jnp.inf, 1.0, 0.1, 1e-3):
        found = real(clip, inputs, gradients)
        _assert_equal(wiring, found, expected(naive.Crops(*[jnp.asarray(clip)] * 4), inputs, gradients))
        # The clip bites, and only in the backward pass.
        assert clip >= 1 or np.abs(found[1][0] - unclipped[1][0]).max() > 1e-3
        np.testing.assert_array_equal(found[0][0], unclipped[0][0])


@places
def test_every_place_of_the_clipping_shows_in_the_gradients(place, naive, quick_jit, float64):
    """So that the test above could not pass if one of them were forgotten."""
    expected = _naive(quick_jit, naive, MIXED, False)
    inputs, gradients = _inputs(MIXED, 4, slack=0.0)
    everywhere = naive.Crops(*[jnp.asarray(0.1)] * 4)
    clipped = expected(everywhere, inputs, gradients)[1][0]
    all_but_one = expected(everywhere._replace(**{place: jnp.asarray(jnp.inf)}), inputs, gradients)[1][0]
    assert np.abs(clipped - all_but_one).max() > 1e-3


def test_renormalising_mends_sums_and_leaves_gradients_alone(float64):
    """Backward, the rescaling of what comes out is taken for the identity."""
    wiring = Wiring(2, select_modules(["INC"]))
    keep = jnp.array([[1.0, 0, 0], [0, 0, 1], [0, 1, 0]])  # INC(r1); r1 := INC; r2 := r2
    registers = jnp.array([[0.1, 0.2, 0.1], [0.6, 0.9, 0.5]])  # sums 0.4 and 2
    memory = jnp.eye(3)
    gradient = jnp.array([[1.0, 2, 4], [8, 16, 32]])
    for renormalising, sums in ((True, (1.0, 1.0)), (False, (0.4, 2.0))):
        (out, _), pull = jax.vjp(
            lambda held, on=renormalising: run_circuit(wiring, on, jnp.asarray(jnp.inf), keep, held, memory)[:2],
            registers,
        )
        np.testing.assert_allclose(out.sum(-1), sums, rtol=1e-14)
        np.testing.assert_allclose(out[1], registers[1] * sums[1] / 2, rtol=1e-14)
        np.testing.assert_allclose(out[0], jnp.roll(registers[0], 1) * sums[0] / 0.4, rtol=1e-14)
        (received,) = pull((gradient, jnp.zeros((3, 3))))
        np.testing.assert_allclose(received, [[2, 4, 1], [8, 16, 32]], rtol=1e-14)


def test_registers_are_all_updated_at_once():
    wiring = Wiring(3, select_modules(["INC"]))
    rotate = np.zeros((4, 4), np.float32)
    rotate[[0, 1, 2, 3], [0, 1, 2, 0]] = 1  # INC(r1); r1 := r2, r2 := r3, r3 := r1
    registers = jnp.eye(5)[jnp.array([1, 3, 4])]
    out, _, _ = run_circuit(wiring, True, jnp.float32(jnp.inf), jnp.asarray(rotate), registers, jnp.eye(5))
    np.testing.assert_array_equal(out.argmax(-1), [3, 4, 1])


def test_a_module_sees_the_memory_as_the_modules_before_it_left_it():
    wiring = Wiring(1, select_modules(["READ", "ONE", "WRITE", "READ", "WRITE"]))
    # READ(r1) = 2; ONE; WRITE(r1, ONE); READ(r1) = 1; WRITE(ONE, first READ); r1 := second READ
    chosen = [0, 0, 2, 0, 2, 1, 4]
    weights = jnp.asarray(np.eye(6, dtype=np.float32)[chosen])
    out, memory, _ = run_circuit(
        wiring, True, jnp.float32(jnp.inf), weights, jnp.eye(3)[:1], jnp.eye(3)[jnp.array([2, 0, 0])]
    )
    np.testing.assert_array_equal(out.argmax(-1), [1])
    np.testing.assert_array_equal(memory.argmax(-1), [1, 2, 0])
