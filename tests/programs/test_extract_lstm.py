"""Extraction from LSTMs: found where there is a finite program, refused with evidence where there is none.

The LSTMs are made by hand, so that what they do is known. Their only cell that changes counts: by a little every step,
or whenever the first register is 0. The circuit and the halting follow from how far it has counted.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nram.errors import NramError, UsageError
from nram.extensions import get_task, select_modules
from nram.limits import StepLimit
from nram.machine import Wiring, run_hard
from nram.machine.controllers import LSTM, Dense
from nram.modules import MODULE_NAMES
from nram.programs.extract.lstm import extract_lstm
from nram.programs.extract.lstm_runs import Recorder
from nram.programs.interpret import interpret
from nram.programs.simplify import simplify
from nram.tasks.base import Task

WIRING = Wiring(2, select_modules(["READ", "ZERO", "INC", "INC", "MAX", "WRITE"]))
R1, R2, READ, ZERO, INC, INC_AGAIN, MAX, WRITE = range(8)  # what a wire can choose
# The arguments of READ, INC, INC, MAX (two), WRITE (two), then the new r1 and r2.
FOLLOW = [R1, READ, R1, R2, R1, R2, R2, INC, R1]  # r1 := READ(r1) + 1, r2 := r1
FETCH = [R1, R2, R1, R2, R1, ZERO, READ, R1, R2]  # cell 0 := READ(r1)
STEP = [R2, READ, R2, R2, R1, R2, INC, READ, INC_AGAIN]  # cell r2 := READ(r2) + 1, r1 := READ(r2), r2 := r2 + 1
SPOIL = [R2, R2, R2, R1, R1, R2, ZERO, R1, INC_AGAIN]  # cell r2 := 0, r2 := r2 + 1
JUNK = [R1, R1, R2, INC, R2, R1, READ, R2, INC]  # cell r1 := READ(r1), and the registers go on counting


def counting_lstm(
    first: list[int], then: list[int], switch: int, halt: int | None, *, rate: float = 0.3, zeros: bool = False
) -> LSTM:
    """Chooses the circuit `first`, and `then` from when it has counted to `switch`; halts when it has to `halt`.

    It counts the steps from 1, or with `zeros` the steps at which r1 is 0.
    """
    width, sure = 2, 30.0
    hidden = np.zeros((WIRING.registers, width), np.float32)
    hidden[0, 0] = 1.0  # unit 0 is the flag of r1
    gates = np.zeros((2 * width, 4 * width), np.float32)
    bias = np.repeat([sure, sure, 0.0, sure], width).astype(np.float32)  # admit, keep, fresh, emit
    fresh = 2 * width
    if zeros:
        gates[0, fresh] = np.arctanh(rate)
    else:
        bias[fresh] = np.arctanh(rate)

    def at_least(count: int) -> tuple[float, float]:
        """Weight and bias of an output that is positive from this count on."""
        between = (np.tanh(rate * (count - 1)) + np.tanh(rate * count)) / 2
        return 1e4, -1e4 * float(between)

    weight, offset = np.zeros((width, WIRING.logits + 1)), np.full(WIRING.logits + 1, -1e6)
    for wire, places in enumerate(WIRING.layout):
        rises, level = at_least(switch)
        weight[0, places[first[wire]]] -= rises
        offset[places[first[wire]]] = -level
        if then[wire] == first[wire]:
            weight[0, places[first[wire]]] = 0.0
            offset[places[first[wire]]] = 0.0
        else:
            weight[0, places[then[wire]]] += rises
            offset[places[then[wire]]] = level
    if halt is not None:
        weight[0, -1], offset[-1] = at_least(halt)
    layers = [(hidden, np.zeros(width)), (gates, bias), (weight, offset)]
    return LSTM(*[Dense(jnp.asarray(w, jnp.float32), jnp.asarray(b, jnp.float32)) for w, b in layers])


def numbers_task(steps: StepLimit) -> Task:
    """Any memory is an instance."""
    return Task(
        name="numbers",
        summary="nothing is asked for",
        layout="numbers",
        min_complexity=1,
        trained_up_to=10,
        step_limit=steps,
        least_memory=lambda n: n + 2,
        sample_input=lambda rng, n, size: [rng.randrange(size) for _ in range(size)],
        oracle=lambda memory: (list(memory), []),
        sample_traced=lambda key, n, size: pytest.fail("the plain sampler suffices"),
    )


@pytest.fixture(autouse=True)
def _quick_machines(quick_jit, monkeypatch):
    """The machines of these tests take longer to compile than to run."""
    monkeypatch.setattr("nram.programs.extract.lstm.jit", quick_jit)


# ---- where there is a program


def test_steps_that_are_told_apart_by_time_alone_become_states():
    access = get_task("access")
    found = extract_lstm(counting_lstm(FOLLOW, FETCH, 2, 2), WIRING, access)
    assert len(found.program.states) == 2
    assert found.tested == ()
    assert found.largest_complexity == 50
    assert found.program.task == "access" and not found.program.needs_limit
    for instance in access.sample(30, 50, seed=1):
        ending = found.program.run(instance.input)
        assert (ending.memory[0], ending.steps, ending.halted) == (instance.output[0], 2, True)
    assert simplify(found.program).operations == 5


def test_what_was_seen_long_ago_is_remembered_in_a_state():
    increment = get_task("increment")
    lstm = counting_lstm(STEP, STEP, 1, 2, zeros=True)
    found = extract_lstm(lstm, WIRING, increment)
    assert len(found.program.states) == 2
    assert found.tested == (0,)
    for instance in increment.sample(20, 50, seed=1, memory_size=30):
        ending = found.program.run(instance.input)
        assert ending.halted and ending.steps == 22
        assert [ending.memory[cell] for cell in instance.cells] == [instance.output[cell] for cell in instance.cells]


def test_a_machine_that_idles_is_in_a_state_that_does_nothing():
    access = get_task("access")
    # After the first step it goes on computing numbers, and even writes them, but where they already are.
    lstm = counting_lstm(SPOIL, JUNK, 2, None)
    found = extract_lstm(lstm, WIRING, access)
    assert len(found.program.states) == 2
    assert [len(row.operations) for rows in simplify(found.program).states for row in rows] == [1, 0]
    assert found.program.run([3, 1, 2, 4, 0], max_steps=50).steps == 50


def test_a_program_for_the_limit_alone_says_that_it_needs_it():
    access = get_task("access")
    lstm = counting_lstm(FETCH, SPOIL, 30, None, rate=0.02)
    with pytest.raises(NramError):
        extract_lstm(lstm, WIRING, access, max_states=8)
    found = extract_lstm(lstm, WIRING, access, max_states=8, limits=("T",))
    assert found.program.needs_limit
    assert len(found.program.states) == 1


def test_the_program_of_a_random_lstm_ends_as_its_hard_machine_does(random_controller, quick_jit):
    task, size, limit = numbers_task(StepLimit(1, 4)), 9, 40
    lstm = random_controller("lstm", WIRING, 7, halt_bias=-2.0)
    found = extract_lstm(lstm, WIRING, task)
    assert len(found.rounds) > 1 and len(found.program.states) == found.rounds[-1] > 3 and found.tested
    memories = [instance.input for instance in task.sample(7, 100, 77, size)]
    ended = quick_jit(jax.vmap(lambda memory: run_hard(lstm, WIRING, memory, limit)))(jnp.asarray(memories))
    for i, memory in enumerate(memories):
        ending = interpret(found.program, memory, limit)
        assert ending.memory == ended.memory[i].tolist()
        assert (ending.steps, ending.halted) == (ended.steps[i], ended.halted[i])


# ---- where there is none


def test_an_lstm_that_counts_too_far_is_refused_with_the_evidence():
    numbers = numbers_task(StepLimit(2, 4))
    lstm = counting_lstm(STEP, SPOIL, 40, None, rate=0.01)
    with pytest.raises(NramError) as caught:
        extract_lstm(lstm, WIRING, numbers, max_states=6)
    said = str(caught.value)
    assert caught.value.exit_status == 1
    assert "more than 6 states" in said
    assert "states after each round: 1" in said
    assert "n = 1, memory " in said and "at step 40 the LSTM saw" in said
    assert "        WRITE(0, 0)" in said and "        o2 = INC(o1)" in said  # what each of them did
    assert "limits=('T',)" in said


def test_bad_requests_are_refused(random_controller):
    access = get_task("access")
    lstm = random_controller("lstm", WIRING, 0)
    with pytest.raises(UsageError, match="choose from T, 2T"):
        extract_lstm(lstm, WIRING, access, limits=("3T",))
    with pytest.raises(UsageError, match="max_states is 0"):
        extract_lstm(lstm, WIRING, access, max_states=0)
    with pytest.raises(UsageError, match="extract_table"):
        mlp = random_controller("mlp", WIRING, 0)
        extract_lstm(mlp, WIRING, access)


# ---- the machine in NumPy


@pytest.mark.parametrize(("registers", "size"), [(3, 7), (4, 12)])
def test_recorded_runs_are_those_of_the_hard_machine(registers, size, random_controller, quick_jit):
    wiring = Wiring(registers, select_modules(MODULE_NAMES))
    lstms = random_controller("lstm", wiring, size, (10,), halt_bias=-2.0)
    memories = np.random.default_rng(1).integers(0, size, (10, 20, size))
    limits = jnp.arange(20) * 5

    def run(lstm, memories):
        return jax.vmap(lambda memory, limit: run_hard(lstm, wiring, memory, limit))(memories, limits)

    ended = jax.tree.map(np.asarray, quick_jit(jax.vmap(run))(lstms, jnp.asarray(memories)))
    assert 0 < ended.halted.mean() < 1
    for number in range(10):
        recorder = Recorder(jax.tree.map(lambda leaf: leaf[number], lstms), wiring)  # noqa: B023
        # Among memories of other sizes, which must not matter.
        others = [[1, 2, 0], list(range(size + 5))]
        runs = recorder.record([*others, *memories[number].tolist()], [1] * 22, [30, 30, *limits.tolist()])[2:]
        for i, recorded in enumerate(runs):
            assert recorded.memory == tuple(ended.memory[number, i].tolist())
            assert (len(recorded.choices), recorded.halted) == (ended.steps[number, i], ended.halted[number, i])
