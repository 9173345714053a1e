"""The recording of an episode: every distribution in it, by brute force, and the gradients of those that training
does not use."""

from __future__ import annotations

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from nram.extensions import select_modules
from nram.machine import Options, Wiring, record_soft, run_hard, run_soft, soft_step
from nram.machine.circuit import run_circuit
from nram.machine.soft import start_soft

WIRING = Wiring(2, select_modules(["READ", "ONE", "SUB", "LESS-THAN", "WRITE", "MIN", "READ"]))
SIZE, STEPS = 4, 4


@pytest.fixture
def make(random_controllers):
    return partial(random_controllers, wiring=WIRING, seed=3, output_scale=3.0, halt_scale=0.1, halt_bias=-1.0)


def _tape(seed: int = 0) -> jax.Array:
    """Distributions, none of them certain."""
    return jnp.asarray(np.random.default_rng(seed).dirichlet(np.ones(SIZE), SIZE))


def _enumerated(module, memory: np.ndarray, arguments: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Equation 2 by all values of the arguments, one after the other: the module's output and the new memory."""
    output, new = np.zeros(SIZE), np.zeros_like(memory)
    for values in itertools.product(range(SIZE), repeat=len(arguments)):
        probability = np.prod([argument[value] for argument, value in zip(arguments, values, strict=True)])
        after = memory
        if module.memory == "writes":
            pointer, value = values
            after = memory.copy()
            after[pointer] = np.eye(SIZE)[value]
            output[0] += probability
        elif module.memory == "reads":
            output += probability * memory[values[0]]
        else:
            output[module.integer(SIZE, *values)] += probability
        new += probability * after
    return output, new


@pytest.mark.parametrize("kind", [pytest.param("mlp", marks=pytest.mark.slow), "lstm", "automaton"])
def test_every_distribution_is_that_of_brute_force(kind, make, naive, quick_jit, float64):
    """On a memory of distributions: wires, module outputs, registers, memory, controller state and halting."""
    controller = make(kind)
    record = partial(record_soft, controller, WIRING, limit=STEPS, steps=STEPS, dtype=jnp.float64)
    found = jax.tree.map(np.asarray, quick_jit(lambda memory: record(memory=memory))(_tape()))
    held, memory = np.eye(SIZE)[[0, 0]], np.asarray(_tape())
    state = tuple(part[0] for part in found.controller_state)
    running, average = 1.0, np.zeros((SIZE, SIZE))
    close = partial(np.testing.assert_allclose, rtol=0, atol=1e-12)
    for t in range(STEPS):
        close(found.registers[t], held)
        close(found.memory[t], memory)
        outputs, state = naive.network(kind, controller, jnp.asarray(held[:, 0]), state)
        ends = np.cumsum(WIRING.lengths)
        for wire, (length, end) in enumerate(zip(WIRING.lengths, ends, strict=True)):
            scores = np.exp(np.asarray(outputs[end - length : end]))
            close(found.wires[t, wire, :length], scores / scores.sum())
            assert (found.wires[t, wire, length:] == 0).all()
        values, weights = list(held), iter(found.wires[t])
        for index, module in enumerate(WIRING.modules):
            arguments = [next(weights)[: len(values)] @ np.stack(values) for _ in module.arguments]
            output, memory = _enumerated(module, memory, arguments)
            close(found.module_outputs[t, index], output)
            values.append(output)
        held = np.stack([weight @ np.stack(values) for weight in weights])
        halt, rest = outputs[WIRING.logits], outputs[WIRING.logits + 1 :]
        if kind == "automaton":
            state = (jax.nn.softmax(rest),)
        for part, expected in zip(found.controller_state, state, strict=True):
            close(part[t + 1], expected)
        close(found.willing[t], 1 / (1 + np.exp(-halt)))
        stop = 1.0 if t == STEPS - 1 else found.willing[t]
        close(found.finish[t], running * stop)
        average += running * stop * memory
        running *= 1 - stop
    close(found.registers[STEPS], held)
    close(found.memory[STEPS], memory)
    close(found.final_memory, memory)
    close(found.output, average)
    assert found.finish.min() > 0.02  # every step matters


def test_it_is_the_episode_that_training_and_evaluation_run(make, quick_jit):
    controller, memory = make("automaton"), jnp.array([3, 1, 0, 2])

    def both(limit):
        run = controller, WIRING, memory, limit, STEPS
        return record_soft(*run), run_soft(*run, observe=lambda step: step.state.memory)

    recording, episode = quick_jit(jax.vmap(both))(jnp.arange(1, STEPS + 1))
    for name in ("output", "finish", "entropy"):
        np.testing.assert_array_equal(getattr(recording, name), getattr(episode, name))
    np.testing.assert_array_equal(recording.memory[:, 1:], episode.observed)
    step = quick_jit(partial(soft_step, controller.prepare(WIRING), WIRING, Options()))
    state = start_soft(controller, WIRING, memory)
    for t in range(STEPS):
        found = step(state)
        np.testing.assert_allclose(recording.wires[0, t], found.wires, atol=1e-6)
        np.testing.assert_allclose(recording.registers[0, t], state.registers, atol=1e-6)
        state = found.state


def test_the_wires_are_split_into_arguments_and_registers(make, quick_jit):
    recording = quick_jit(lambda memory: record_soft(make("mlp"), WIRING, memory, STEPS, STEPS))(_tape())
    assert WIRING.wire_names == (
        *("READ.p", "SUB.a", "SUB.b", "LESS-THAN.x", "LESS-THAN.y", "WRITE.p", "WRITE.a", "MIN.a", "MIN.b"),
        *("READ#2.p", "r1", "r2"),
    )
    assert WIRING.value_names == ("r1", "r2", "READ", "ONE", "SUB", "LESS-THAN", "WRITE", "MIN", "READ#2")
    assert recording.argument_wires.shape == (STEPS, 10, 9) and recording.register_wires.shape == (STEPS, 2, 9)
    together = jnp.concatenate([recording.argument_wires, recording.register_wires], -2)
    np.testing.assert_array_equal(together, recording.wires)
    np.testing.assert_allclose(together.sum(-1), 1, rtol=1e-6)


def test_a_hard_recording_is_the_run_of_the_discrete_machine(random_controllers, quick_jit):
    count = 60
    controllers = random_controllers("automaton", WIRING, 7, (count,), output_scale=2.0, halt_bias=-0.5)
    memories = jnp.asarray(np.random.default_rng(1).integers(SIZE, size=(count, SIZE)))

    def both(controller, memory):
        recording = record_soft(controller, WIRING, memory, STEPS, STEPS, Options(hard=True))
        return recording, run_hard(controller, WIRING, memory, STEPS)

    recording, hard = jax.tree.map(np.asarray, quick_jit(jax.vmap(both))(controllers, memories))
    np.testing.assert_array_equal(recording.output, np.eye(SIZE)[hard.memory])
    np.testing.assert_array_equal(recording.finish, np.eye(STEPS)[hard.steps - 1])
    at_the_end = recording.registers[np.arange(count), hard.steps]
    np.testing.assert_array_equal(at_the_end, np.eye(SIZE)[hard.registers])
    assert 0.1 < hard.halted.mean() < 0.9 and (hard.memory != memories).any(-1).mean() > 0.5


def test_module_outputs_pass_gradients_on(quick_jit, float64):
    """True ones, and cropped where the paper's activation clipping crops the gradient of a module's output."""
    rng = np.random.default_rng(5)
    reachable = np.arange(WIRING.values)[None, :] < np.array(WIRING.lengths)[:, None]
    weights = np.where(reachable, rng.random(reachable.shape), 0)
    registers, memory = rng.dirichlet(np.ones(SIZE), 2), rng.dirichlet(np.ones(SIZE), SIZE)
    slopes = rng.normal(size=(len(WIRING.modules), SIZE))

    def total(weights, registers, memory, clip=jnp.inf):
        inputs = weights * reachable, registers, memory
        registers, memory, outputs = run_circuit(WIRING, False, jnp.asarray(clip), *inputs, complete=True)
        assert outputs is not None
        return jnp.sum(registers**2) + jnp.sum(memory**2) + jnp.sum(slopes * outputs)

    check_grads(jax.jit(total), (weights, registers, memory), order=1, modes=["rev"], rtol=1e-6)
    # READ(r1) alone: the slope of its output, cropped, reaches the register by the memory that it reads.
    wiring = Wiring(1, select_modules(["READ"]))
    wires = jnp.array([[1.0, 0], [1, 0]])

    def read(register, clip):
        inputs = jnp.asarray(clip), wires, register, jnp.asarray(memory)
        outputs = run_circuit(wiring, False, *inputs, complete=True)[2]
        assert outputs is not None
        return jnp.sum(jnp.array([3.0, 0.5, -4.0, 0.1]) * outputs[0])

    found = quick_jit(jax.grad(read))(jnp.asarray(registers[:1]), 1.0)
    np.testing.assert_allclose(found[0], np.clip(memory @ np.array([1.0, 0.5, -1.0, 0.1]), -1, 1), rtol=1e-12)
