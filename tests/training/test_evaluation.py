"""Judging by the CPU's kernel: the same answers as by the plain path, however the instances are dealt out."""

import json
from typing import Any

import jax
import numpy as np
import pytest
from support.table_controller import table_controller

from nram.learning.task import training_tasks
from nram.machine import init_controller, run_soft
from nram.programs.files import program_from
from nram.tasks.example_files import read_examples
from nram.training import evaluation, predictions
from nram.training.config import MachineConfig, StageConfig, TrainConfig
from nram.training.evaluation import Examination, Trial, draw_trial, evaluate, examine
from nram.training.member import machine_options, wiring_of
from nram.training.predictions import BATCH, kernel_predictions

MODULES = ("READ", "ADD", "LESS-THAN", "MAX", "WRITE")
COUNT = 2 * BATCH + 5  # not as many as the batches hold, on two devices
STEPS = 6


def config_of(kind: Any = "mlp") -> TrainConfig:
    machine = MachineConfig(registers=3, hidden=6, states=3, modules=MODULES, controller=kind)
    return TrainConfig("increment", machine=machine, stages=(StageConfig(3, 10, 4),))


def controller_of(config: TrainConfig, seed: int = 0):
    """A controller that knows what it wants, at random."""
    machine = config.machine
    sizes = {"hidden": machine.hidden, "states": machine.states, "output_scale": 4.0}
    made = jax.jit(lambda key: init_controller(machine.controller, wiring_of(machine), **sizes, key=key))
    return jax.tree.map(np.asarray, made(jax.random.key(seed)))


def plain_outputs(config: TrainConfig, controller, memories: np.ndarray, limits: np.ndarray, jit) -> np.ndarray:
    """The averaged memories, from the definition."""

    def one(memory, limit):
        return run_soft(controller, wiring_of(config.machine), memory, limit, STEPS, machine_options(config)).output

    return np.asarray(jit(jax.vmap(one))(memories, limits))


@pytest.mark.parametrize("kind", ["mlp", "lstm", "automaton"])
def test_predictions_are_those_of_the_plain_path(kind, quick_jit):
    config, rng = config_of(kind), np.random.default_rng(3)
    controller = controller_of(config)
    memories = rng.integers(0, 5, (COUNT, 5)).astype(np.int32)
    limits = rng.integers(1, STEPS + 1, COUNT)
    output = plain_outputs(config, controller, memories, limits, quick_jit)
    ordered = np.sort(output, axis=-1)
    decided = ordered[..., -1] - ordered[..., -2] > 1e-4
    found = kernel_predictions(config, controller, memories, limits)
    assert found is not None and np.mean(decided) > 0.9
    np.testing.assert_array_equal(found[decided], np.argmax(output, axis=-1)[decided])
    assert np.any(found != memories)


def test_instances_are_judged_alike_alone_and_among_others():
    config, rng = config_of(), np.random.default_rng(4)
    controller = controller_of(config, 1)
    memories = rng.integers(0, 5, (COUNT, 5)).astype(np.int32)
    limits = rng.integers(1, 40, COUNT)
    together = kernel_predictions(config, controller, memories, limits)
    assert together is not None
    for some in (slice(0, 1), slice(7, 7 + BATCH)):
        np.testing.assert_array_equal(
            kernel_predictions(config, controller, memories[some], limits[some]), together[some]
        )


def test_the_soft_score_is_that_of_the_plain_path(monkeypatch):
    config, trial = config_of(), Trial("increment", 3, 20, 0, "test")
    controller = controller_of(config)
    fast = evaluate(config, controller, trial, "soft")
    monkeypatch.setenv("NRAM_PLAIN", "1")
    assert evaluate(config, controller, trial, "soft") == fast
    assert 0 < fast.error <= 1 and fast.halted is None


def test_the_plain_path_is_taken_where_there_is_no_kernel_or_no_room_for_it(monkeypatch):
    config, memories, limits = config_of(), np.zeros((2, 5), np.int32), np.array([1, 2])
    controller = controller_of(config)
    monkeypatch.setattr(predictions, "WORKSPACE_BYTES", 1000)
    assert kernel_predictions(config, controller, memories, limits) is None
    monkeypatch.undo()
    monkeypatch.setenv("NRAM_PLAIN", "1")
    assert kernel_predictions(config, controller, memories, limits) is None


def test_the_hard_score_counts_who_halts():
    config = config_of()
    controller = controller_of(config)
    halt = wiring_of(config.machine).logits

    def with_halting(value: float):
        bias = np.array(controller.output.bias)
        weight = np.array(controller.output.weight)
        bias[halt], weight[:, halt] = value, 0
        leaves, tree = jax.tree.flatten(controller)
        changed = [bias if leaf is controller.output.bias else leaf for leaf in leaves]
        changed = [weight if leaf is controller.output.weight else leaf for leaf in changed]
        return jax.tree.unflatten(tree, changed)

    trial = Trial("increment", 3, 12, 0, "test")
    assert evaluate(config, with_halting(1.0), trial, "hard").halted == 1.0
    assert evaluate(config, with_halting(-1.0), trial, "hard").halted == 0.0


def test_trials_are_drawn_on_the_cpu_and_the_same_every_time():
    trial = Trial("increment", 4, 12, 5, "examination")
    instances, complexity = draw_trial(trial)
    draw_trial.cache_clear()
    again, complexity_again = draw_trial(trial)
    for one, other in zip(instances, again, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(complexity, complexity_again)
    assert isinstance(instances.input, np.ndarray) and np.all(complexity[1::2] == 4)


def test_an_examination_stops_at_the_first_limit_that_is_failed():
    config = config_of()
    assert examine(config, controller_of(config), 0, 8) == Examination(False, False, False, limit="T")


def test_an_examination_names_the_first_part_that_failed():
    assert Examination(soft=True, hard=True, far=True).failed is None
    assert Examination(soft=False, hard=True, far=True).failed == "soft"
    assert Examination(soft=False, hard=True, far=False).failed == "far"
    assert Examination(soft=False, hard=False, far=False).failed == "hard"


def test_examples_of_a_file_are_examined_as_they_are_and_not_beyond(tmp_path, monkeypatch):
    """The right program of a problem that depends on M: x becomes M-1-x."""
    rows = [([x, *[0] * (m - 1)], [m - 1 - x, *[0] * (m - 1)]) for m in (4, 6) for x in range(m)]
    file = tmp_path / "complement.jsonl"
    file.write_text("\n".join(json.dumps({"input": start, "output": end}) for start, end in rows))
    (task,) = training_tasks(read_examples(file).examples, "complement")
    machine = MachineConfig(registers=1, modules=("READ", "ZERO", "DEC", "SUB", "WRITE"))
    config = TrainConfig(task.name, machine=machine, stages=(StageConfig(1, 10, 4),))
    text = "nram program 1\nregisters: r1\n\nalways:\n a = READ(r1)\n b = DEC(0)\n c = SUB(b, a)\n WRITE(0, c)\n halt\n"
    right = table_controller(program_from(text), wiring_of(machine))
    monkeypatch.setattr(evaluation, "FAR", None)  # nothing is drawn at n = 50
    monkeypatch.setattr(evaluation, "LIMIT_NAMES", ("T",))  # each is compiled, for each memory size
    monkeypatch.setenv("NRAM_PLAIN", "1")
    assert examine(config, right, 0, 20).passed
    wrong = table_controller(program_from(text.replace("DEC(0)", "DEC(a)")), wiring_of(machine))
    assert examine(config, wrong, 0, 20).failed == "hard"
