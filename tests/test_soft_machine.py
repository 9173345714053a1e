"""The public soft machine: a PyTree under jit, vmap and grad. It learns in a user's own loop and becomes a program."""

from __future__ import annotations

import dataclasses
import re
from functools import partial
from pathlib import Path
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree

import nram
from nram import SoftMachine, UsageError
from nram.kinds import ControllerKind
from nram.machine import run_hard
from nram.programs.extract.from_run import Form
from nram.programs.library import find_entry, zoo_entries, zoo_weights
from nram.training.evaluation import soft_memories
from nram.training.member import Hyper, batch_outcomes, draw_batch
from nram.training.run_folder import RunFolder, load_weights

RUN = Path(__file__).parent / "compatibility" / "0.1" / "finished"
ZOO = [entry.name for entry in zoo_entries() if entry.has_weights]
FEW = ("READ", "ONE", "SUB", "WRITE")
STEPS = 3


def small(kind: ControllerKind = "mlp", seed: int = 0, **options) -> SoftMachine:
    return SoftMachine.create(key=jax.random.key(seed), modules=FEW, registers=2, kind=kind, hidden=6, **options)


def memories(count: int, size: int = 4) -> jax.Array:
    return jnp.asarray(np.random.default_rng(count).integers(size, size=(count, size)))


def close(found, expected, atol=1e-6):
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=atol)


# ---- a PyTree


def test_its_leaves_are_the_parameters_alone():
    machine = small("automaton", states=3)
    assert all(eqx.is_inexact_array(leaf) for leaf in jax.tree.leaves(machine))
    # R + S -> hidden -> hidden -> logits, the halting scalar and S.
    logits = machine.wiring.logits
    assert machine.parameters == (5 * 6 + 6) + (6 * 6 + 6) + 7 * (logits + 1 + 3)
    assert repr(machine) == f"<SoftMachine: Automaton, 2 registers, 4 modules, {machine.parameters} parameters>"
    same = jax.tree.unflatten(jax.tree.structure(machine), jax.tree.leaves(machine))
    assert eqx.tree_equal(same, machine)


def test_jit_vmap_and_a_batch_all_give_the_same(quick_jit):
    machine, batch, limits = small("lstm"), memories(5), jnp.array([1, 2, 3, 3, 2])
    together = machine(batch, STEPS, limits, keep_memory=True)
    assert (
        together.memory is not None
        and together.memory.shape == (5, STEPS + 1, 4, 4)
        and together.registers.shape == (5, STEPS + 1, 2, 4)
    )

    @quick_jit
    def others(machine, batch, limits):
        mapped = jax.vmap(lambda memory, limit: machine(memory, STEPS, limit))
        single = machine(batch[1], STEPS, 2)
        return mapped(batch, limits), machine(jax.nn.one_hot(batch, 4), STEPS, limits), single

    mapped, from_tape, single = others(machine, batch, limits)
    assert mapped.memory is None
    without = dataclasses.replace(together, memory=None)
    close(mapped, without)
    close(from_tape, without)
    close(single, jax.tree.map(lambda leaf: leaf[1], without))


def test_a_population_of_machines_is_one_machine_with_another_axis(quick_jit):
    population = jax.vmap(lambda key: SoftMachine.create(key=key, modules=FEW))(jax.random.split(jax.random.key(0), 3))
    run = quick_jit(jax.vmap(lambda machine: machine(memories(2), STEPS).output))
    outputs = run(population)
    assert outputs.shape == (3, 2, 4, 4)
    close(run(jax.tree.map(lambda leaf: leaf[::-1], population)), outputs[::-1])
    assert np.abs(outputs[0] - outputs[1]).max() > 0.01


# ---- gradients


def test_gradients_are_true_with_respect_to_weights_and_tape(quick_jit, float64):
    """Against finite differences, of a loss on everything that is recorded."""
    machine = small("automaton", states=2).astype(jnp.float64)
    machine = dataclasses.replace(machine, renormalising=False)  # backward it counts as the identity, which it is not
    vector, back = ravel_pytree((machine, jnp.asarray(np.random.default_rng(0).dirichlet(np.ones(4), (2, 4)))))

    def loss(vector):
        machine, tape = back(vector)
        parts = jax.tree.leaves(machine(tape, STEPS, keep_memory=True))
        assert all(part.dtype == jnp.float64 for part in parts)
        rng = np.random.default_rng(1)
        return sum(jnp.sum(part * rng.normal(size=part.shape)) for part in parts)

    gradient = quick_jit(jax.grad(loss))(vector)
    directions = np.random.default_rng(2).normal(size=(6, vector.size))
    offsets = 1e-3 * np.array([-2, -1, 1, 2])
    points = vector[None, None] + offsets[None, :, None] * directions[:, None, :]
    at = quick_jit(jax.vmap(jax.vmap(loss)))(points)
    np.testing.assert_allclose(directions @ gradient, at @ np.array([1, -8, 8, -1]) / 12e-3, rtol=1e-6)
    assert np.abs(gradient[-32:]).min() > 1e-6  # each entry of both tapes


def test_the_modes_differ_in_what_is_certain_and_what_learns(quick_jit):
    machine, batch = small(), memories(6)

    def total(machine, mode):
        recording = machine(batch, STEPS, mode=mode)
        return jnp.sum(recording.output * jnp.arange(96.0).reshape(6, 4, 4)), recording

    found = {}
    for mode in ("soft", "straight-through", "hard"):
        gradient_of = quick_jit(partial(jax.grad(total, has_aux=True), mode=mode))
        gradient, recording = gradient_of(machine)
        found[mode] = recording, max(float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(gradient))
    close(found["straight-through"][0], found["hard"][0])  # an MLP has no state
    assert found["soft"][1] > 0 and found["straight-through"][1] > 0 and found["hard"][1] == 0
    assert set(np.unique(found["hard"][0].output)) == {0, 1} and 0.1 < found["soft"][0].output.max() < 1
    hard = quick_jit(jax.vmap(lambda memory: run_hard(machine.controller, machine.wiring, memory, STEPS)))(batch)
    np.testing.assert_array_equal(found["hard"][0].output.argmax(-1), hard.memory)


def test_second_derivatives_and_clipping_work(quick_jit):
    machine = dataclasses.replace(small(), clip=1e-3)
    tape = jax.nn.one_hot(memories(1)[0], 4)
    slope = jax.grad(lambda tape: machine(tape, STEPS).output[0, 1])

    def steepness(tape):
        return jnp.sum(slope(tape) ** 2), slope(tape)

    second, first = quick_jit(jax.grad(steepness, has_aux=True))(tape)
    assert 0 < np.abs(first).max() <= 1e-3 * STEPS
    assert np.isfinite(second).all() and np.abs(second).max() > 0


# ---- the same machine as training's


def test_the_loss_is_that_of_training(quick_jit):
    run = RunFolder.open(RUN)
    config, controller, _ = run.load_member(0)
    stage, limit = config.stages[0], config.first_limit
    mode = "straight-through" if stage.straight_through else "soft"
    hyper = Hyper(*[jnp.float32(jnp.inf)] * len(Hyper._fields))
    hyper = hyper._replace(steps_per_item=jnp.float32(limit.per_item), steps_constant=jnp.float32(limit.constant))
    level, key = jnp.int32(1), jax.random.key(4)
    steps = config.loop_steps(stage)

    @quick_jit
    def both(machine, controller):
        batch = (*examples, _), limits = draw_batch(config, stage, hyper, level, key)
        expected = batch_outcomes(config, stage, hyper, controller, batch)
        found = machine.outcome(*examples, steps=steps, limits=limits, mode=mode)
        return found, machine.loss(*examples, steps=steps, limits=limits, mode=mode), expected

    found, loss, expected = both(nram.load_machine(RUN), controller)
    close(found, expected)
    close(loss, jnp.mean(expected.loss))
    assert expected.loss.shape == (config.batch,) and expected.entropy.min() > 0.01


def test_a_run_its_folder_and_the_file_of_a_member_are_the_same_machine():
    machine = nram.load_machine(RUN)
    for source in (str(RUN), RUN / "best" / "0.safetensors", nram.Run(RUN, {})):
        assert eqx.tree_equal(nram.load_machine(source), machine)
    assert machine.task == "access" and machine.wiring.registers == 2


@pytest.mark.parametrize(
    "name", ["access", *(pytest.param(name, marks=pytest.mark.slow) for name in ZOO if name != "access")]
)
def test_weights_of_the_zoo_solve_their_task_and_answer_as_in_evaluation(name, quick_jit):
    machine, task = nram.load_machine(name), nram.get_task(name)
    batch = nram.stack_instances(task.sample(6, 40, seed=3))
    steps = task.step_limit(6)
    outcome = quick_jit(lambda *examples: machine.outcome(*examples, steps=steps))(*batch[:3])
    assert outcome.loss.shape == (40,) and outcome.exact.all()
    entry = find_entry(f"{name}@trained")
    assert entry is not None
    with zoo_weights(entry) as path:
        config, controller, _ = load_weights(path)
    evaluated = soft_memories(config, controller, np.asarray(batch.input), np.full(40, steps))
    predicted = quick_jit(lambda batch: machine(batch, steps).output)(batch.input).argmax(-1)
    np.testing.assert_array_equal(np.where(batch.cells, predicted, 0), np.where(batch.cells, evaluated, 0))
    assert machine.task == name and machine.loss_kind == config.loss


@pytest.mark.slow
def test_it_learns_in_a_loop_with_optax_and_becomes_a_program(quick_jit):
    task, steps, size = nram.get_task("access"), 4, 6
    machine = SoftMachine.create(key=jax.random.key(1), modules=("READ", "INC", "WRITE"), registers=2, hidden=16)
    optimiser = optax.adam(0.03)

    def draw(key):
        complexity = jax.random.randint(key, (), 1, 4)
        return task.draw_traced(key, complexity, size)

    def update(carry, key):
        machine, state = carry
        batch = jax.vmap(draw)(jax.random.split(key, 32))
        loss, gradient = jax.value_and_grad(lambda machine: machine.loss(*batch[:3], steps=steps))(machine)
        updates, state = optimiser.update(gradient, state)
        return (optax.apply_updates(machine, updates), state), loss

    keys = jax.random.split(jax.random.key(0), 80)
    (machine, _), losses = quick_jit(lambda *start: jax.lax.scan(update, start, keys))(machine, optimiser.init(machine))
    assert losses[0] > 2 and losses[-10:].max() < 0.01
    test = nram.stack_instances(task.sample(3, 100, seed=1, memory_size=size))
    assert quick_jit(lambda machine: machine.outcome(*test[:3], steps=steps))(machine).exact.all()
    program = machine.to_program(task="access")
    assert program.task == "access" and program.origin == "trained"
    for instance in task.sample(40, 20, seed=2):
        assert program.run(instance.input, max_steps=steps).memory[0] == instance.output[0]


# ---- programs, files


def test_its_program_is_that_of_the_run():
    machine = nram.load_machine(RUN)
    forms: tuple[Form, ...] = ("raw", "every-input", "task")
    for form in forms:
        assert machine.to_program(form).states == nram.extract(RUN, form=form).states
    assert machine.to_program() == machine.to_program("task")
    untold = dataclasses.replace(machine, task=None)
    program = untold.to_program()
    assert program.states == machine.to_program("every-input").states and program.task is None
    with pytest.raises(UsageError, match="the form 'task' needs a task"):
        untold.to_program("task")
    with pytest.raises(UsageError, match="an LSTM needs a task"):
        small("lstm").to_program()


def test_weights_are_saved_and_loaded_by_equinox(tmp_path):
    machine = small("lstm", seed=3)
    eqx.tree_serialise_leaves(tmp_path / "machine.eqx", machine)
    assert eqx.tree_equal(eqx.tree_deserialise_leaves(tmp_path / "machine.eqx", small("lstm")), machine)


def test_instances_are_stacked_into_arrays():
    instances = nram.get_task("swap").sample(2, 3, seed=0)
    batch = nram.stack_instances(instances)
    for row, instance in enumerate(instances):
        assert batch.input[row].tolist() == instance.input and batch.output[row].tolist() == instance.output
        assert np.flatnonzero(batch.cells[row]).tolist() == sorted(instance.cells)
        assert np.flatnonzero(batch.scored[row]).tolist() == sorted(instance.scored)


# ---- refusals


def refusals():
    machine, tape = small(), jnp.full((4, 4), 0.25)
    task = nram.get_task("copy")
    return {
        "shape [2]": lambda: machine([1, 0], 3),
        "shape [4, 3]": lambda: machine(tape[:, :3], 3),
        "shape [4]": lambda: machine(tape[0], 3),
        "holds 0 to 4: give 0 to 3": lambda: machine([0, 1, 2, 4], 3),
        "every row must be probabilities": lambda: machine(2 * tape, 3),
        "memory holds bool": lambda: machine(tape > 0, 3),
        "steps is 0": lambda: machine(tape, 0),
        "no traced value": lambda: jax.jit(lambda steps: machine(tape, steps))(3),
        "mode is 'sharp'": lambda: machine(tape, 3, mode=cast(Any, "sharp")),
        "cells [4]: both must be [4]": lambda: machine.loss(tape, [0, 1, 2], [1, 1, 1, 1], steps=3),
        "jax_enable_x64": lambda: machine.astype(jnp.float64),
        "registers is 0": lambda: SoftMachine.create(key=jax.random.key(0), registers=0),
        "modules is empty": lambda: SoftMachine.create(key=jax.random.key(0), modules=()),
        "there is no run and no file nowhere": lambda: nram.load_machine("nowhere"),
        "copy@searched has no weights": lambda: nram.load_machine("copy@searched"),
        "copy holds one member": lambda: nram.load_machine("copy", 1),
        "has no member 7": lambda: nram.load_machine(RUN, 7),
        "5 and 7 cells": lambda: nram.stack_instances(task.sample(2, 1, 0) + task.sample(3, 1, 0)),
    }


@pytest.mark.parametrize("words", refusals())
def test_what_cannot_be_used_is_refused_in_words(words):
    with pytest.raises(UsageError, match=re.escape(words)):
        refusals()[words]()
