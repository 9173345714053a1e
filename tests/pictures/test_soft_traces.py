"""Soft traces: the distributions of every step are those of the machine, and where nothing is fuzzy, its integers."""

from __future__ import annotations

import re
from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from nram.errors import UsageError
from nram.extensions import get_task, select_modules
from nram.machine import Wiring, hard_step, run_soft
from nram.machine.hard import HardState
from nram.pictures.soft_pictures import draw_soft_trace
from nram.pictures.soft_traces import (
    SoftTrace,
    record_soft_trace,
    soft_trace_to_json,
    soft_trace_to_text,
    value_in_words,
)

WIRING = Wiring(3, select_modules(("READ", "ONE", "INC", "ADD", "LESS-THAN", "WRITE")))
STEPS = 6


@pytest.fixture(scope="module")
def instance():
    return get_task("copy").sample(2, 1, 0)[0]


@pytest.fixture(scope="module")
def blurry(random_controllers, instance) -> tuple[object, SoftTrace]:
    """A controller that is sure of nothing, and its trace."""
    controller = random_controllers("mlp", WIRING, 1, output_scale=2.0)
    return controller, record_soft_trace(controller, WIRING, instance.input, STEPS, instance=instance)


def test_a_sharp_controller_gives_the_trace_of_the_hard_machine(random_controllers):
    compared = changed = 0
    step = eqx.filter_jit(hard_step)
    for seed in range(12):
        controller = random_controllers("automaton", WIRING, seed, output_scale=1e5, halt_bias=-3e4)
        memory = np.random.default_rng(seed).integers(5, size=5)
        trace = record_soft_trace(controller, WIRING, memory.tolist(), STEPS)
        if trace.registers.max(-1).min() < 1 or not np.isin(trace.finish, (0, 1)).all():
            continue  # a tie in some wire
        ready = controller.prepare(WIRING)
        state = HardState(ready.start(), jnp.zeros(3, jnp.int32), jnp.asarray(memory, jnp.int32))
        halts = []
        for t in range(STEPS + 1):
            np.testing.assert_array_equal(trace.memory[t].argmax(-1), state.memory)
            np.testing.assert_array_equal(trace.registers[t].argmax(-1), state.registers)
            if t < STEPS:
                state, halt = step(ready, WIRING, state)
                halts.append(bool(halt))
        last = halts.index(True) if True in halts else STEPS - 1
        np.testing.assert_array_equal(trace.finish, np.eye(STEPS)[last])
        np.testing.assert_array_equal(trace.output, trace.memory[last + 1])
        compared += 1
        changed += bool((np.asarray(state.memory) != memory).any())
    assert compared >= 8 and changed >= 4


def test_a_fuzzy_trace_ends_like_the_machine_s_own_episode(blurry, instance):
    controller, trace = blurry
    episode = run_soft(controller, WIRING, jnp.asarray(instance.input), STEPS, STEPS)
    np.testing.assert_allclose(trace.finish, episode.finish, atol=1e-6)
    np.testing.assert_allclose(trace.output, episode.output, atol=1e-6)
    np.testing.assert_allclose(trace.memory.sum(-1), 1, atol=1e-5)
    np.testing.assert_allclose(trace.finish.sum(), 1, atol=1e-6)
    assert trace.memory.shape == (STEPS + 1, 5, 5) and trace.registers.shape == (STEPS + 1, 3, 5)


def test_values_are_told_with_their_probabilities_unless_certain():
    assert value_in_words(np.array([0.0, 0.0, 1.0])) == "2"
    assert value_in_words(np.array([0.17, 0.83, 0.0])) == "1~.83"
    assert value_in_words(np.array([0.004, 0.0, 0.996])) == "2"
    assert value_in_words(np.array([0.994, 0.006, 0.0])) == "0~.99"


def test_the_table_shows_every_distribution_of_the_trace(blurry):
    _, trace = blurry
    text = soft_trace_to_text(trace, width=None, most_steps=None)
    rows = [line.split("|") for line in text.split("\n\n")[0].splitlines() if "|" in line][1:]
    assert [row[0].strip() for row in rows] == [*map(str, range(1, STEPS + 1)), "end", "out"]
    for t, row in enumerate(rows[: STEPS + 1]):
        assert row[1].split() == [value_in_words(cell) for cell in trace.memory[t]]
        assert row[2].split() == [value_in_words(held) for held in trace.registers[t]]
        if t < STEPS:
            assert row[3].split() == [f"{trace.willing[t]:.3f}", f"{trace.finish[t]:.3f}"]
    assert rows[-1][1].split() == [value_in_words(cell) for cell in trace.output]
    assert "~" in text and "left out" not in text


def made_up(steps: int, size: int) -> SoftTrace:
    rng = np.random.default_rng(steps)
    memory = rng.dirichlet(np.ones(size), (steps + 1, size))
    return SoftTrace(memory, memory[:, :3], rng.random(steps), rng.dirichlet(np.ones(steps)), memory[-1])


def test_a_narrow_page_says_what_it_leaves_out():
    trace = made_up(9, 30)
    text = soft_trace_to_text(trace, width=100, most_steps=4)
    head = [word for word in text.splitlines()[0].split("|")[1].split() if word != "..."]
    assert f"left out: {30 - len(head)} of 30 cells and 5 of 9 steps" in text
    assert "... | 5 steps" in text


def test_json_has_likeliest_values_and_on_demand_the_distributions(blurry, instance):
    _, trace = blurry
    value = soft_trace_to_json(trace)
    assert value["steps"][0]["memory"] == {"values": instance.input, "probabilities": [1.0] * 5}
    assert len(value["steps"]) == STEPS and "distributions" not in value["output"]
    right = all(np.argmax(trace.output[cell]) == instance.output[cell] for cell in instance.cells)
    assert value["instance"]["right"] == right
    full = soft_trace_to_json(trace, distributions=True)
    np.testing.assert_array_equal(full["steps"][3]["registers"]["distributions"], trace.registers[3])


@pytest.mark.parametrize("steps", [1, 40])
def test_a_picture_of_few_and_of_many_steps_is_written(tmp_path, steps):
    draw_soft_trace(made_up(steps, 4), tmp_path / "soft.svg", "a $title_")
    words = (tmp_path / "soft.svg").read_text()
    panels = re.findall(r">(step \d+|end)(?:, stopped)?</text>", words)
    assert "f_t" not in words and "p_t" not in words
    assert panels[0] == "step 1" and panels[-1] == "end"
    assert len(panels) == (2 if steps == 1 else 18)
    assert ("18 of 41 states" in words) == (steps == 40)


def test_a_picture_marks_the_steps_after_the_stop(tmp_path):
    trace = replace(made_up(5, 4), finish=np.array([0, 0.999, 0.001, 0, 0]))
    draw_soft_trace(trace, tmp_path / "soft.svg")
    words = (tmp_path / "soft.svg").read_text()
    assert re.findall(r">(step \d+|end), stopped</text>", words) == ["step 3", "step 4", "step 5", "end"]
    assert ">after the stop</text>" in words


def test_what_cannot_be_kept_is_refused(random_controllers):
    controller = random_controllers("mlp", WIRING, 4)
    with pytest.raises(UsageError, match="max_steps"):
        record_soft_trace(controller, WIRING, [0] * 1000, 1000)
    with pytest.raises(UsageError, match="at least 1 step"):
        record_soft_trace(controller, WIRING, [0] * 5, 0)
